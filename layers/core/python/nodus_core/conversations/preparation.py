"""What comes before the first model call of a run: its sandbox and its setup."""

import logging
import secrets
from dataclasses import replace

from nodus_core.billing.compute import Lacking
from nodus_core.conversations import commands, metered, sandbox_ends
from nodus_core.conversations.funding import wait_for
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.resting import rest_until_due, wait_until
from nodus_core.conversations.session import Session
from nodus_core.journal.steps import Changes
from nodus_core.journal.store import Operation
from nodus_core.kernel import ids, metering, projection
from nodus_core.kernel.decide import ENDED
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, RetryableError, TerminalError
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import Guarantee, SandboxState, TaskKind, TaskState
from nodus_core.kernel.tasks import Task
from nodus_core.sandboxes.tools import exec_order

log = logging.getLogger(__name__)

START_WAIT_S = 10.0
"""Seconds that a worker waits for a new sandbox's daemon before it lets the line rest."""

PROBE_S = 2.0
"""Seconds between questions to the provider whether the task that is to come up has ended."""

NO_ROOM_S = 15.0
"""Seconds until a start that the provider had no room for is tried again."""

START_LIMIT_S = 300.0
"""Seconds after which a sandbox that has not come up counts as failed."""

MOST_STARTS = 3
"""Tries to start a sandbox (NOD-054)."""

CPU_UNITS = 1024
"""Units of one virtual processor."""

SETUP_TIMEOUT_S = 3600

HARD_DEADLINE_S = 24 * 3600 * 7
"""Seconds after which a daemon ends itself whatever happens: no forgotten bill (FLD-10)."""


def start_sandbox(session: Session, task: Task | None) -> Directive | None:
    """Requests a sandbox for the run and waits until its daemon has come up."""
    if task is None:
        made = metered.opened(session, _new_sandbox(session))
        if isinstance(made, Lacking):
            return wait_for(session, made.account, made.need)
        task = _request(session, *made)
    sandbox = session.ports.journal.sandbox(commands.sandbox_of(task))
    if sandbox is None:
        raise CorruptRow(f"task {task.run}/{task.key}: its sandbox has no row")
    if sandbox.task is None and sandbox.state is SandboxState.REQUESTED:
        try:
            _launch(session, sandbox)
        except TerminalError as error:
            sandbox_ends.record_gone(session, sandbox, str(error))
        except RetryableError as error:
            return _no_room(session, sandbox, error)
    return _await(session, task, sandbox.id)


def _no_room(session: Session, sandbox: Sandbox, error: RetryableError) -> Directive | None:
    """The provider has no capacity now: tried again until the start has taken too long."""
    log.warning("sandbox %s cannot start yet: %s", sandbox.id, error)
    if (session.ports.clock.now() - sandbox.created_at).total_seconds() >= START_LIMIT_S:
        sandbox_ends.record_gone(session, sandbox, str(error))
        return None
    return wait_until(session, NO_ROOM_S)


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
        session.fence, head, run, task, sandbox, more=(*held, *session.shows(status))
    )
    session.tasks = {**session.tasks, task.key: task}
    session.fresh.add(task.key)
    return task


def _new_sandbox(session: Session) -> Sandbox:
    return Sandbox(
        id=ids.sandbox_id(session.conversation.id, session.conversation.sandboxes + 1),
        conversation=session.conversation.id,
        state=SandboxState.REQUESTED,
        enrol_hash="",
        created_at=session.ports.clock.now(),
        image=session.context.image,
        egress=session.context.egress,
    )


def _launch(session: Session, sandbox: Sandbox) -> None:
    """Asks the provider for the task, unless a worker before this one did and died before it noted it.

    The enrolment code is made here and only its hash is kept: a code that no task was given is replaced.
    """
    existing = session.ports.tasks.find(sandbox.id)
    if existing is not None:
        session.ports.journal.sandboxes.note_task(sandbox.id, existing)
        return
    code = secrets.token_urlsafe(24)
    now = session.ports.clock.now()
    session.ports.journal.sandboxes.issue_code(session.fence, sandbox.id, ids.digest(code), now)
    task = session.ports.tasks.run(
        sandbox.id,
        {
            **session.ports.link,
            "NODUS_SANDBOX_ID": sandbox.id,
            "NODUS_ENROL_CODE": code,
            "NODUS_WORKSPACE": session.context.working_dir,
            "NODUS_HARD_DEADLINE_S": str(HARD_DEADLINE_S),
        },
        cpu=session.context.cpu * CPU_UNITS,
        memory=session.context.memory,
        tags={"nodus:run": session.conversation.id, "nodus:egress": session.context.egress},
    )
    session.ports.journal.sandboxes.note_task(sandbox.id, task)


def _await(session: Session, task: Task, sandbox_id: str) -> Directive | None:
    clock, started = session.ports.clock, session.ports.clock.now()
    interval, probed = 0.02, 0.0
    while True:
        sandbox = session.ports.journal.sandbox(sandbox_id)
        if sandbox is None:
            raise CorruptRow(f"sandbox {sandbox_id} has no row")
        session.sandbox = sandbox
        if sandbox.state is SandboxState.RUNNING:
            return _came_up(session, task, sandbox)
        if sandbox.state is not SandboxState.REQUESTED:
            return _start_failed(session, task, sandbox)
        if session.is_overdue():
            return None
        waited = (clock.now() - started).total_seconds()
        if waited >= START_WAIT_S or session.remaining() < START_WAIT_S:
            return _rest_for_start(session, sandbox)
        if waited - probed >= PROBE_S:
            probed = waited
            sandbox_ends.probe(session, sandbox)
        clock.sleep(interval)
        interval = min(interval * 1.3, 0.5)


def _came_up(session: Session, task: Task, sandbox: Sandbox) -> None:
    done = replace(task, state=TaskState.COMPLETED, finished_at=session.ports.clock.now())
    status = projection.with_sandbox(session.object.status, session.conversation, sandbox, projection.RUNNING)
    session.record(Changes(settled=(done,)), status)


def _rest_for_start(session: Session, sandbox: Sandbox) -> Directive | None:
    age = (session.ports.clock.now() - sandbox.created_at).total_seconds()
    sandbox_ends.probe(session, sandbox)
    if age >= START_LIMIT_S:
        sandbox_ends.record_gone(session, sandbox, f"no daemon after {START_LIMIT_S:.0f} s")
        return None
    try:
        session.ports.journal.sandboxes.want_sandbox(sandbox.id)
    except ConditionFailed:
        return None
    return rest_until_due(session, 30)


def _start_failed(session: Session, task: Task, sandbox: Sandbox) -> Directive | None:
    """Tries again with a new sandbox, at most three times; the reason stays on the step."""
    sandbox_ends.end_task(session, sandbox, "its start has failed")
    if metering.is_unbooked(sandbox):
        return None  # that comes first
    if task.attempt < MOST_STARTS:
        made = metered.opened(session, _new_sandbox(session))
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
            more=(*held, *session.shows(None)),
        )
        session.tasks = {**session.tasks, task.key: retaken}
        return None
    reason = sandbox.reason or "it did not come up"
    failed = session.failure(task, "SandboxStartFailed", f"The sandbox could not be started: {reason}")
    session.record(Changes(settled=(failed,)))
    return None
