"""What comes before the first model call of a run: its sandbox and its setup."""

from dataclasses import replace
from datetime import datetime

from nodus_core.billing.compute import Lacking
from nodus_core.conversations import commands, launching, metered, restoring, runs_sandboxes, sandbox_ends
from nodus_core.conversations.funding import wait_for
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.resting import rest_until_due
from nodus_core.conversations.session import Session
from nodus_core.journal.steps import Changes
from nodus_core.journal.store import Operation
from nodus_core.kernel import ids, metering, projection
from nodus_core.kernel.decide import ENDED
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import Guarantee, SandboxState, TaskKind, TaskState
from nodus_core.kernel.tasks import Result, Task
from nodus_core.kernel.text import Inline, Text
from nodus_core.kernel.times import stamp
from nodus_core.sandboxes.tools import exec_order

MOST_STARTS = 3
"""Tries to start a sandbox (NOD-054)."""

SETUP_TIMEOUT_S = 3600


def start_sandbox(session: Session, task: Task | None) -> Directive | None:
    """Requests a sandbox for the run and waits until its daemon has come up."""
    if task is None:
        made = metered.opened(session, launching.new_sandbox(session))
        if isinstance(made, Lacking):
            return wait_for(session, made.account, made.need)
        task = _request(session, *made)
    sandbox = session.ports.journal.sandbox(commands.sandbox_of(task))
    if sandbox is None:
        raise CorruptRow(f"task {task.run}/{task.key}: its sandbox has no row")
    found = launching.come_up(session, sandbox)
    if isinstance(found, Sandbox) and found.state is SandboxState.RUNNING and found.restore is not None:
        found = restoring.restore(session, found)
    if not isinstance(found, Sandbox):
        return found
    if found.state is SandboxState.RUNNING and found.restore is None:
        return _came_up(session, task, found)
    return _start_failed(session, task, found)


def run_setup(session: Session, task: Task | None) -> Directive | None:
    """Runs the setup command once in a sandbox, before the model is asked (NOD-158)."""
    if task is None:
        task, command = setup_claim(session)
        session.record(Changes(begun=(task,), commands=(command,)))
        commands.ring(session)
    news = commands.wait_for(session, (task,))
    if not news.outcomes:
        return None if news.stopped else pause(session, (task,))
    done = commands.settled(session, task, news.outcomes[task.key])
    if done.state is TaskState.COMPLETED and done.result is not None and done.result.is_error:
        word = ENDED if done.result.error == ENDED else "SetupFailed"
        done = replace(done, state=TaskState.FAILED, result=replace(done.result, error=word))
    session.record(Changes(settled=(done,)))
    return None


def setup_claim(session: Session) -> tuple[Task, Command]:
    """The setup's task and command, not yet written."""
    context, sandbox = session.context, session.conversation.sandbox
    if sandbox is None or context.setup is None:
        raise CorruptRow(f"conversation {session.conversation.id}: setup without a sandbox or a command")
    place = session.open_run.sandboxes
    order = exec_order(context.setup, context.working_dir, SETUP_TIMEOUT_S, context.env)
    task = Task(
        run=session.open_run.uid,
        key=ids.setup_key(place),
        kind=TaskKind.TOOL,
        tool=ids.SETUP,
        state=TaskState.RUNNING,
        guarantee=Guarantee.AT_MOST_ONCE,
        number=session.tasks[ids.sandbox_key(place)].number,
        started_at=session.ports.clock.now(),
        claim=session.claim(),
        input=session.keep(context.setup),
        sandbox=sandbox,
    )
    return task, commands.new_command(session, sandbox, task.key, order)


def pause(session: Session, tasks: tuple[Task, ...]) -> Directive | None:
    """Lets the line rest until a command ends; None when one has ended meanwhile."""
    if not commands.ask_for_kick(session, tasks):
        return None
    return rest_until_due(session, 60)


def _request(session: Session, sandbox: Sandbox, held: tuple[Operation, ...]) -> Task:
    """The conversation's first sandbox, or a further one in the place of one that is gone."""
    now, head, run = session.ports.clock.now(), session.conversation, session.open_run
    task = Task(
        run=run.uid,
        key=ids.sandbox_key(run.sandboxes + 1),
        kind=TaskKind.TOOL,
        tool=ids.SANDBOX,
        state=TaskState.RUNNING,
        guarantee=Guarantee.EXACTLY_ONCE,
        number=head.sandboxes + 1,
        head=ids.round_key(run.rounds) if run.rounds else None,
        started_at=now,
        claim=session.claim(),
        sandbox=sandbox.id,
    )
    status = None
    if head.sandboxes:
        owning = replace(head, attempts=head.attempts + 1)
        status = projection.with_sandbox(session.object.status, owning, sandbox, projection.PENDING)
    session.conversation, session.run = session.ports.journal.steps.request_sandbox(
        session.fence,
        head,
        run,
        task,
        sandbox,
        more=(*held, *runs_sandboxes.appears(session, sandbox), *session.shows(status)),
    )
    session.tasks = {**session.tasks, task.key: task}
    session.fresh.add(task.key)
    return task


def _came_up(session: Session, task: Task, sandbox: Sandbox) -> None:
    result = None if sandbox.restored_at is None else Result(text=_restored(sandbox, sandbox.restored_at))
    done = replace(task, state=TaskState.COMPLETED, finished_at=session.ports.clock.now(), result=result)
    status = projection.with_sandbox(session.object.status, session.conversation, sandbox, projection.RUNNING)
    session.record(Changes(settled=(done,), more=runs_sandboxes.comes_up(session, sandbox)), status)


def _restored(sandbox: Sandbox, saved_at: datetime) -> Text:
    """What a step says of the folder that its sandbox has taken up."""
    return Inline(f"The folder {sandbox.state_dir} is restored as it was saved at {stamp(saved_at)}.")


def _start_failed(session: Session, task: Task, sandbox: Sandbox) -> Directive | None:
    """Tries again with a new sandbox, at most three times; the reason stays on the step."""
    sandbox_ends.end_task(session, sandbox, "its start has failed")
    if metering.is_unbooked(sandbox):
        return None  # that comes first
    if task.attempt < MOST_STARTS:
        made = metered.opened(session, launching.new_sandbox(session))
        if isinstance(made, Lacking):
            return wait_for(session, made.account, made.need)
        again, held = made
        retaken = replace(task, attempt=task.attempt + 1, claim=session.claim(), sandbox=again.id)
        session.conversation, session.run = session.ports.journal.steps.replace_sandbox(
            session.fence,
            session.conversation,
            session.open_run,
            old=task,
            new=retaken,
            sandbox=again,
            more=(*held, *runs_sandboxes.appears(session, again), *session.shows(None)),
        )
        session.tasks = {**session.tasks, task.key: retaken}
        return None
    reason = sandbox.reason or "it did not come up"
    failed = session.failure(task, "SandboxStartFailed", f"The sandbox could not be started: {reason}")
    session.record(Changes(settled=(failed,)))
    return None
