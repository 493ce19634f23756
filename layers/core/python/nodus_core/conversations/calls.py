"""The tool calls of a model's message: their claims, their commands, their results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodus_core.conversations import (
    backoff,
    commands,
    cooling,
    funding,
    requests,
    resolved,
    sandbox_ends,
)
from nodus_core.conversations.ports import AGAIN, Directive
from nodus_core.conversations.preparation import pause
from nodus_core.conversations.session import Prepared, Session
from nodus_core.conversations.transcript import tool_results
from nodus_core.inference.exchange import AssistantMessage, ModelReply, ToolCall
from nodus_core.journal.steps import Changes
from nodus_core.journal.terms import Terms
from nodus_core.kernel import ids
from nodus_core.kernel.decide import CUT, is_up, room
from nodus_core.kernel.decisions import Ask
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.sandboxes import Command
from nodus_core.kernel.states import Guarantee, TaskKind, TaskState
from nodus_core.kernel.tasks import PlannedCall, Result, Task
from nodus_core.sandboxes.outcome import Outcome, withdrawn
from nodus_core.sandboxes.tools import Misuse, Order, plan

BEGUN_AT_ONCE = 30
"""Calls of one message that one commit begins: task, command and its mark of each, within 100 operations."""

MOST_CALLS = 128
"""Calls of one message that become steps: all of them stand in the round's row, which has at most 400 KB."""

JOIN_LIMIT_S = 120.0
"""Seconds that a stopped run's commands have to end; a daemon that does not obey loses its sandbox then."""

LIMIT_REACHED = "The tool limit of this turn is reached; this call was not run. Give your final answer."
CUT_OFF = "Your reply was cut off by the output limit, so none of its calls was run. Send a shorter one."


@dataclass(frozen=True)
class CallPlan:
    """What becomes of a message's calls: all of them, those refused at once, and those that begin."""

    calls: tuple[PlannedCall, ...]
    refused: tuple[Task, ...] = ()
    begun: tuple[Task, ...] = ()
    commands: tuple[Command, ...] = ()


def planned(session: Session, parent: Task, reply: ModelReply, *, was_cut: bool) -> CallPlan:
    """The plan for a fresh reply; what does not fit into one commit is placed by the next ones.

    Calls beyond `MOST_CALLS`, or the journal's room, become no steps; the transcript refuses them.
    """
    first = session.open_run.calls
    most = min(MOST_CALLS, room(session.conversation, session.open_run))
    plans = tuple(
        PlannedCall(ids.call_key(parent.number, index), call.name, first + index + 1)
        for index, call in enumerate(reply.message.calls[:most])
    )
    if session.is_overdue():
        return CallPlan(plans)
    tasks = _tasks(session, parent, plans[:BEGUN_AT_ONCE], reply.message, was_cut=was_cut)
    return CallPlan(plans, *tasks)


def place(session: Session, calls: Sequence[PlannedCall]) -> None:
    """Begins calls of the last message that have not begun; without a sandbox they are refused."""
    key = ids.round_key(session.open_run.rounds)
    parent, message = session.tasks[key], requests.transcript(session).replies[key]
    was_cut = parent.result is not None and parent.result.error == CUT
    refused, begun, rows = _tasks(session, parent, tuple(calls[:BEGUN_AT_ONCE]), message, was_cut=was_cut)
    session.record(Changes(settled=refused, begun=begun, commands=rows))
    if begun:
        commands.ring(session)
    hear(session)


def watch(session: Session, tasks: Sequence[Task]) -> Directive | None:
    """Waits for running calls; settles what has ended, and claims the next round with the last of them."""
    news = commands.wait_for(session, tasks, cooling.place(session))
    if news.outcomes:
        settled = tuple(
            commands.settled(session, task, news.outcomes[task.key])
            for task in tasks
            if task.key in news.outcomes
        )
        settle(session, settled, news.terms)
        return None
    if news.stopped:
        return None
    return AGAIN if session.remaining() < commands.WAIT_S * 2 else pause(session, tuple(tasks))


def cut(session: Session, keys: Sequence[str]) -> Directive | None:
    """Ends what is open of a stopped run, waits until it has joined, and settles it (NOD-045, NOD-046)."""
    tasks = session.ports.journal.tasks(session.open_run.uid, keys)
    running = tuple(
        task
        for task in tasks.values()
        if task.sandbox and ids.preparation(task.key) != ids.SANDBOX and task.state is TaskState.RUNNING
    )
    outcomes: dict[str, Outcome] = {}
    if running:
        commands.cancel(session, running)
        outcomes = commands.wait_for(session, running).outcomes
        if len(outcomes) < len(running):
            if _is_overdue(session):
                sandbox_ends.give_up(session, "its daemon did not end the commands of a stopped run")
                return None
            return pause(session, tuple(task for task in running if task.key not in outcomes))
    session.cut([_canceled(session, task, outcomes.get(task.key)) for task in tasks.values()])
    return None


def _is_overdue(session: Session) -> bool:
    stop = session.open_run.stop
    return stop is not None and (session.ports.clock.now() - stop.at).total_seconds() >= JOIN_LIMIT_S


def hear(session: Session) -> None:
    """Once every call of the last message is settled, the model hears the results, in declared order."""
    key = ids.round_key(session.open_run.rounds)
    last = session.tasks[key]
    settled = [
        task for call in last.calls if (task := session.tasks.get(call.key)) and task.finished_at is not None
    ]
    if not settled or len(settled) < len(last.calls):
        return
    transcript = requests.transcript(session)
    texts = [session.text(task.result.text) if task.result and task.result.text else "" for task in settled]
    transcript.add_results(tool_results(transcript.replies[key].calls, settled, texts))


def settle(session: Session, settled: tuple[Task, ...], terms: Terms | None = None) -> None:
    """Records results; when the next thing is a model round, its claim goes into the same commit.

    `terms` are what the look that found the results has said of the next model call.
    """
    after = session.decide_after(settled)
    if not isinstance(after, Ask) or after.task is not None:
        session.record(Changes(settled=settled))
        if session.transcript is not None:  # else it is read with them
            hear(session)
        return
    session.tasks = {**session.tasks, **{task.key: task for task in settled}}
    hear(session)
    request = requests.sealed(session, after.round)
    claim = requests.round_claim(session, after.round, request)
    # What this invocation has no time to make, it does not claim: the next one would take it for made.
    in_time = session.remaining() >= backoff.CALL_TIME_S
    begun = (claim,) if in_time and funding.is_secured(session, claim.reserved or ZERO, terms) else ()
    session.record(Changes(settled=settled, begun=begun))
    if begun:
        free = terms is not None and cooling.remaining(session, terms.cooling) is None
        session.prepared = Prepared(claim.key, request, gate_is_free=free)


def _tasks(
    session: Session,
    parent: Task,
    plans: tuple[PlannedCall, ...],
    message: AssistantMessage,
    *,
    was_cut: bool,
) -> tuple[tuple[Task, ...], tuple[Task, ...], tuple[Command, ...]]:
    """Tasks refused at once, tasks that begin, and their command rows."""
    by_key = {ids.call_key(parent.number, index): call for index, call in enumerate(message.calls)}
    refused: list[Task] = []
    begun: list[Task] = []
    rows: list[Command] = []
    for planned_call in plans:
        call = by_key[planned_call.key]
        task = _task(session, parent, planned_call, call)
        match _order(session, planned_call, call, was_cut=was_cut):
            case Misuse(text=text):
                refused.append(_refused(session, task, text))
            case Order() if not is_up(session.sandbox):
                refused.append(commands.settled(session, task, withdrawn(session.machine.state_dir)))
            case Order() as order:
                begun.append(task)
                rows.append(commands.new_command(session, _sandbox(session), task.key, order))
    return tuple(refused), tuple(begun), tuple(rows)


def _order(session: Session, planned_call: PlannedCall, call: ToolCall, *, was_cut: bool) -> Order | Misuse:
    if was_cut:
        return Misuse(CUT_OFF)
    if call.error is not None:
        return Misuse(call.error)
    if planned_call.number > session.context.max_tool_calls:
        return Misuse(LIMIT_REACHED)
    return plan(call.name, call.arguments, session.context.working_dir, session.context.env)


def _task(session: Session, parent: Task, planned_call: PlannedCall, call: ToolCall) -> Task:
    return Task(
        run=parent.run,
        key=planned_call.key,
        kind=TaskKind.TOOL,
        tool=planned_call.tool,
        state=TaskState.RUNNING,
        guarantee=Guarantee.AT_MOST_ONCE,
        number=planned_call.number,
        parent=parent.key,
        placer=parent.key,
        head=parent.key,
        started_at=session.ports.clock.now(),
        claim=session.claim(),
        input=session.keep(call.arguments),
        sandbox=session.conversation.sandbox,
    )


def _refused(session: Session, task: Task, text: str) -> Task:
    return replace(
        task,
        state=TaskState.FAILED,
        finished_at=task.started_at,
        result=Result(text=session.keep(text), is_error=True, error="Refused"),
    )


def _canceled(session: Session, task: Task, result: Outcome | None) -> Task:
    """A task of a stopped run: what it really came to is kept; what was ended for the stop is canceled.

    A model call that is still open here may have run, so its reserve is booked, unless nobody was making it and no
    try before was lost. What is not known stays so, unless a person has said it.
    """
    now = session.ports.clock.now()
    if task.state is TaskState.UNCERTAIN:
        return resolved.ended(session, task) if task.resolution else replace(task, finished_at=now)
    if result is None:
        cost = ZERO if task.claim is None and not task.resent else task.cost
        return replace(task, state=TaskState.CANCELED, finished_at=now, cost=cost)
    done = commands.settled(session, task, result)
    harmless = result.state is TaskState.UNCERTAIN and task.guarantee is Guarantee.AT_LEAST_ONCE
    return replace(done, state=TaskState.CANCELED) if harmless or result.error == "Cancelled" else done


def _sandbox(session: Session) -> str:
    if session.conversation.sandbox is None:
        raise CorruptRow(f"conversation {session.conversation.id}: a command without a sandbox")
    return session.conversation.sandbox
