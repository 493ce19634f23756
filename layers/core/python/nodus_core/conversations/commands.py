"""Waiting for commands: the command rows are the truth, the bell only makes the daemon look sooner.

claimed in the journal ─► ring ─► look at the rows with a growing interval, for at most 10 s
                                    ├─ done: settle                (and claim what is next)
                                    ├─ stop: back to deciding
                                    └─ still running: ask for a kick, rest
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from nodus_core.conversations import bells, sandbox_ends
from nodus_core.conversations.session import Session
from nodus_core.journal.sandboxes import Sandboxes
from nodus_core.journal.terms import CallPlace, Terms
from nodus_core.kernel import ids
from nodus_core.kernel.errors import ConditionFailed, CorruptRow
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import CommandState, SandboxState
from nodus_core.kernel.tasks import Result, Task
from nodus_core.kernel.text import Inline, Stored, Text
from nodus_core.sandboxes.outcome import CANCELED, LOST, Outcome, outcome, withdrawn
from nodus_core.sandboxes.tools import Order

log = logging.getLogger(__name__)

WAIT_S = 10.0
"""Seconds for which a worker waits for commands before it lets the line rest (design: hot loop)."""

FIRST_INTERVAL_S = 0.01
LAST_INTERVAL_S = 0.5

QUICK_S = 0.1
"""Seconds of a wait whose looks also bring the terms of the next model call, three rows more. To a longer wait one
read of them at its end is nothing, and it has many looks."""

FILE_TIME_S = 60
"""Seconds that a command without a time-out of its own may take: reading or writing a file."""

SILENCE_S = 180
"""Seconds beyond a command's time-out after which its daemon's silence counts as the loss of the sandbox."""

PROBE_S = 5.0
"""Seconds without news after which the provider is asked whether the sandbox's task still runs."""

OVER = (CommandState.DONE, CommandState.LOST, CommandState.WITHDRAWN)


@dataclass(frozen=True)
class News:
    """What one wait brought: outcomes by task key; `stopped` when the run got a stop marker meanwhile.

    `terms` are those of the next model call, where the last look has brought them.
    """

    outcomes: dict[str, Outcome]
    stopped: bool = False
    terms: Terms | None = None


def new_command(session: Session, sandbox: str, key: str, order: Order) -> Command:
    """The pending row of a task's command: the same task, the same id, the same digest."""
    request = session.keep(canonical(order.request), head=False)  # its step's `input` has the head
    name = ids.command_id(session.open_run.uid, key)
    return pending(sandbox, name, order, request, session.ports.clock.now())


def pending(sandbox: str, name: str, order: Order, request: Text, now: datetime) -> Command:
    """The row of a command that no daemon has yet; `request` is the canonical text of the order's."""
    return Command(
        sandbox=sandbox,
        id=name,
        kind=order.kind,
        request=request,
        digest=digest_of(order),
        state=CommandState.PENDING,
        created_at=now,
        limit_s=int(order.request.get("timeoutS", FILE_TIME_S)) + SILENCE_S,
    )


def digest_of(order: Order) -> str:
    """What tells an order from another one."""
    return ids.digest(canonical({"kind": order.kind, "request": order.request}))


def same_again(session: Session, task: Task, sandbox: str) -> Command:
    """The command of the attempt before `task`, pending for `task`'s own attempt in a sandbox."""
    place, name = sandbox_of(task), ids.command_id(task.run, task.key, task.attempt - 1)
    before = session.ports.journal.command(place, name)
    if before is None:
        raise CorruptRow(f"run {task.run}: command {name!r} of sandbox {place} has no row")
    return Command(
        sandbox=sandbox,
        id=ids.command_id(task.run, task.key, task.attempt),
        kind=before.kind,
        request=before.request,
        digest=before.digest,
        state=CommandState.PENDING,
        created_at=session.ports.clock.now(),
        limit_s=before.limit_s,
    )


def canonical(value: dict[str, Any]) -> str:
    """JSON that is the same text for the same value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def ring(session: Session) -> None:
    """Asks the daemon to look now; a bell that is not heard only costs time."""
    session.rung = session.sandbox.connection if session.sandbox else None
    if session.sandbox is not None:
        bells.ring(session.ports.bell, session.sandbox)


def wait_for(session: Session, tasks: Sequence[Task], call: CallPlace | None = None) -> News:
    """Outcomes of those of the tasks' commands that have ended, all of them if they end in time.

    With `call`, the looks at commands that are quickly done bring the terms of a model call there.
    """
    clock = session.ports.clock
    started, interval, probed = clock.now(), FIRST_INTERVAL_S, 0.0
    if all(task.key in session.fresh for task in tasks):
        clock.sleep(interval)  # they have only just been placed: no daemon can be that quick
    while True:
        quick = (clock.now() - started).total_seconds() < QUICK_S
        sandbox, commands, stopped, terms = _look(session, tasks, call if quick else None)
        if not stopped and session.is_overdue():
            session.expire()
            stopped = True
        over = [command.state in OVER for command in commands]
        if sandbox.connection != session.rung and not all(over):
            # The daemon has connected since: it may have pulled just before the commands were there.
            ring(session)
        waited = (clock.now() - started).total_seconds()
        if all(over) or stopped or waited >= WAIT_S:
            outcomes = _outcomes(session, tasks, commands)
            if stopped:
                session.reload()  # what was decided before the stop marker holds no longer
            return News(outcomes, stopped, terms)
        if sandbox.state is SandboxState.GONE:
            write_off(session, sandbox, commands)
            continue
        if any(_is_silent(command, clock.now()) for command in commands):
            sandbox_ends.give_up(
                session, "its daemon has said nothing of a command long after the command's time-out"
            )
            continue
        if waited - probed >= PROBE_S:
            probed = waited
            sandbox_ends.probe(session, sandbox)
        clock.sleep(interval)
        interval = min(interval * 1.5, LAST_INTERVAL_S)


def ask_for_kick(session: Session, tasks: Sequence[Task]) -> bool:
    """Wants a kick at the end of each command. False when one has ended already: look again."""
    try:
        for task in tasks:
            sandbox, name = _place(task)
            session.ports.journal.sandboxes.want_command(sandbox, name)
    except ConditionFailed:
        return False
    return True


def cancel(session: Session, tasks: Sequence[Task]) -> None:
    """Withdraws commands that no daemon has, and asks the daemon to end the others (NOD-045)."""
    sandboxes, now = session.ports.journal.sandboxes, session.ports.clock.now()
    for task in tasks:
        sandbox, name = _place(task)
        try:
            sandboxes.withdraw_command(sandbox, name, now)
        except ConditionFailed as lost:
            if lost.current[0].get("state") == CommandState.CLAIMED.value:
                sandboxes.cancel_command(sandbox, name)
    ring(session)


def end(sandboxes: Sandboxes, command: Command, now: datetime) -> None:
    """Takes back a command that no daemon has, or has its daemon end it. Raises `ConditionFailed` when it has moved on."""
    if command.state is CommandState.PENDING:
        sandboxes.withdraw_command(command.sandbox, command.id, now)
    else:
        sandboxes.cancel_command(command.sandbox, command.id)


def write_off(session: Session, sandbox: Sandbox, commands: Sequence[Command]) -> None:
    """Commands of a sandbox that is gone: claimed ones are lost, the others certainly never ran."""
    sandboxes, now = session.ports.journal.sandboxes, session.ports.clock.now()
    for command in commands:
        if command.state in OVER:
            continue
        try:
            if command.state is CommandState.CLAIMED:
                sandboxes.lose_command(sandbox.id, command.id, now)
            else:
                sandboxes.withdraw_command(sandbox.id, command.id, now)
        except ConditionFailed:
            continue  # the daemon's last word came first: it is read in the next look


def settled(session: Session, task: Task, result: Outcome) -> Task:
    """The final task of an outcome."""
    return replace(
        task,
        state=result.state,
        finished_at=session.ports.clock.now(),
        result=Result(
            text=session.keep(result.text) if isinstance(result.text, str) else result.text,
            is_error=result.is_error,
            error=result.error,
            exit_code=result.exit_code,
            raw_bytes=result.raw_bytes,
            dropped_bytes=result.dropped_bytes,
        ),
    )


def _is_silent(command: Command, now: datetime) -> bool:
    return command.state not in OVER and now >= command.created_at + timedelta(seconds=command.limit_s)


def _look(
    session: Session, tasks: Sequence[Task], call: CallPlace | None
) -> tuple[Sandbox, list[Command], bool, Terms | None]:
    sandbox_id = sandbox_of(tasks[0])
    names = [_place(task)[1] for task in tasks]
    seen = session.ports.journal.progress(session.open_run.uid, sandbox_id, names, call)
    commands = [row for row in seen.commands if row is not None]
    if seen.sandbox is None or seen.run is None or len(commands) != len(tasks):
        raise CorruptRow(f"run {session.open_run.uid}: a claimed command or its sandbox has no row")
    session.sandbox = seen.sandbox
    newly_stopped = seen.run.stop is not None and session.open_run.stop is None
    return seen.sandbox, commands, newly_stopped, seen.terms


def sandbox_of(task: Task) -> str:
    """The sandbox that a task starts, or in which its command runs. Raises `CorruptRow` when it names none."""
    if task.sandbox is None:
        raise CorruptRow(f"task {task.run}/{task.key} names no sandbox")
    return task.sandbox


def _place(task: Task) -> tuple[str, str]:
    return sandbox_of(task), ids.command_id(task.run, task.key, task.attempt)


def _outcomes(session: Session, tasks: Sequence[Task], commands: Sequence[Command]) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for task, command in zip(tasks, commands, strict=True):
        match command.state:
            case CommandState.DONE:
                found[task.key] = _done(session, command)
            case CommandState.LOST:
                found[task.key] = LOST
            case CommandState.WITHDRAWN:
                found[task.key] = CANCELED if session.open_run.stop else withdrawn(session.machine.state_dir)
            case _:
                pass
    return found


def _done(session: Session, command: Command) -> Outcome:
    """The outcome of a finished command; a long text stays where the link has stored it."""
    result = outcome(command.kind, session.text(command.result) if command.result else "{}")
    match command.told:
        case None:
            return result
        case Inline(text=text):
            return replace(result, text=text)
        case Stored() as stored:
            return replace(result, text=stored)
