"""The line of a Sandbox at work: its machine is started, kept while it is used and paid, and stood still (NOD-399)."""

from datetime import datetime, timedelta
from decimal import Decimal

from nodus_core.billing.compute import Lacking
from nodus_core.conversations import commands, launching, metered, restoring, sandbox_ends, saving, turns
from nodus_core.conversations.ports import REST, Directive
from nodus_core.conversations.session import Session
from nodus_core.kernel import machine_status, machines, metering
from nodus_core.kernel.decisions import Pause, Rest, Settle
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.saving import WINDOW, checkpoint_at, is_kept
from nodus_core.kernel.states import ALIVE_SANDBOXES, OPEN_COMMANDS, CommandState, SandboxState
from nodus_core.sandboxes.tools import TERMINAL

RINGS, RING_S = 5, 0.2
"""How often the bell is rung for a command that nobody takes, and the seconds between."""


def launch(session: Session) -> Directive | None:
    """Asks for the machine, or goes on waiting for the one that was asked for."""
    head = session.conversation
    if head.sandbox is None:
        made = metered.opened(session, launching.new_sandbox(session))
        if isinstance(made, Lacking):
            return stand_still(session, machines.UNPAID)
        sandbox, held = made
        shown = machine_status.requested(session.object.status, sandbox, head.attempts + 1)
        session.conversation = session.ports.journal.machines.request(
            session.fence, head, sandbox, (*held, *session.projected(shown))
        )
        session.sandbox = sandbox
    if session.sandbox is None:
        raise CorruptRow(f"conversation {head.id}: its sandbox {head.sandbox} has no row")
    if _is_spent(session, session.sandbox, session.ports.clock.now()):
        return stand_still(session, machines.COST_REACHED)
    found = launching.come_up(session, session.sandbox)
    if isinstance(found, Sandbox) and found.state is SandboxState.RUNNING and found.restore is not None:
        found = restoring.restore(session, found)
    return None if isinstance(found, Sandbox) else found


def keep(session: Session) -> Directive | None:
    """Shows that the machine runs, and rests until it must be looked at: idle, to be paid, at its end.

    Of one that has died unheard the sweeper tells (`task_sweep`).
    """
    sandbox, now = _running(session), session.ports.clock.now()
    if sandbox_ends.has_gone(session):
        return None
    if _is_spent(session, sandbox, now):
        return stand_still(session, machines.COST_REACHED)
    idle_at = _idle_at(session, sandbox)
    opened = [each for each in session.ports.journal.open_commands(sandbox.id) if each.state in OPEN_COMMANDS]
    if any(command.state is CommandState.PENDING for command in opened):
        _ring(session, sandbox)
    if idle_at is not None and now >= idle_at:
        has_come_just_now = session.object.status.get("phase") != machine_status.RUNNING
        # What is typed into a terminal is noted when it is.
        if not has_come_just_now and all(command.kind == TERMINAL for command in opened):
            return stand_still(session, machines.IDLE)
        session.ports.journal.machines.works(sandbox.id, now)
        idle_at = now + timedelta(seconds=session.machine.idle_s or 0)
    checkpoint = _checkpoint_at(session, sandbox, at_work=bool(opened))
    if checkpoint is not None and now >= checkpoint:
        return saving.begin(session, None)
    looks = [at for at in (idle_at, _spent_at(session, sandbox), checkpoint) if at is not None]
    shown = machine_status.running(session.object.status, sandbox)
    operations = session.projected(shown) if shown != session.object.status else ()
    due = session.next_look(min(looks, default=None))
    session.ports.journal.lines.rest(session.fence, session.conversation, due, *operations)
    return REST


def extend(session: Session) -> Directive | None:
    """Pays for the machine's next period, or lets it stand still."""
    return None if metered.extend(session) is None else stand_still(session, machines.UNPAID)


def stand_still(session: Session, reason: str) -> None:
    """From now on the machine is wanted to stand still; what runs is let go next."""
    head = session.conversation
    session.conversation = session.ports.journal.machines.pause(session.fence, head, reason)


def pause(session: Session, decision: Pause) -> Directive | None:
    """Ends a machine that is wanted to stand still; it is settled when it is gone and booked."""
    sandbox = session.sandbox
    if sandbox is not None and sandbox.state in ALIVE_SANDBOXES:
        session.ports.journal.sandboxes.release(sandbox.id)
        session.sandbox = session.ports.journal.sandbox(sandbox.id)
    if session.sandbox is None:
        raise CorruptRow(f"conversation {session.conversation.id}: a machine without a row")
    return turns.let_go(session, session.sandbox, f"its Sandbox is paused: {decision.reason}")


def settle(session: Session, decision: Settle) -> None:
    """Lets go of a machine that is gone, and shows why nothing runs."""
    head, sandbox = session.conversation, decision.sandbox
    # A machine may be gone by our word alone: its daemon never came, or was refused. What it runs on must not stay.
    sandbox_ends.end_task(session, sandbox, f"its Sandbox lets it go: {sandbox.reason}")
    reason = machines.why_gone(head, sandbox)
    shown = machine_status.paused(
        session.object.status, reason, session.object.key.name, None if head.paused else sandbox.reason
    )
    session.conversation = session.ports.journal.machines.settle(
        session.fence, head, sandbox, reason, session.projected(shown)
    )


def rest(session: Session, decision: Rest) -> Directive:
    """Nothing runs until somebody asks for it; shows why."""
    status = session.object.status
    operations = ()
    if status.get("reason") != decision.reason:
        operations = session.projected(
            machine_status.paused(status, decision.reason, session.object.key.name)
        )
    session.ports.journal.lines.rest(session.fence, session.conversation, None, *operations)
    return REST


def _ring(session: Session, sandbox: Sandbox) -> None:
    """Asks the daemon to look for commands, until it has taken all or does not hear."""
    for _ in range(RINGS):
        commands.ring(session)
        session.ports.clock.sleep(RING_S)
        opened = session.ports.journal.open_commands(sandbox.id)
        if all(command.state is not CommandState.PENDING for command in opened):
            return


def _running(session: Session) -> Sandbox:
    sandbox = session.sandbox
    if sandbox is None or sandbox.state is not SandboxState.RUNNING:
        raise CorruptRow(f"conversation {session.conversation.id}: no machine that could be kept")
    return sandbox


def _idle_at(session: Session, sandbox: Sandbox) -> datetime | None:
    """When the machine is stopped if nothing is done in it any more; work counts, and nothing else."""
    if session.machine.idle_s is None:
        return None
    worked = sandbox.worked_at or sandbox.started_at or sandbox.created_at
    return worked + timedelta(seconds=session.machine.idle_s)


def _checkpoint_at(session: Session, sandbox: Sandbox, *, at_work: bool) -> datetime | None:
    """When the machine's folder is saved next; None while nothing was done in it since it was saved."""
    begun_at = session.conversation.save_begun_at
    worked = sandbox.worked_at is not None and (begun_at is None or sandbox.worked_at > begun_at)
    return checkpoint_at(sandbox, begun_at) if is_kept(sandbox) and (worked or at_work) else None


def _most(session: Session) -> Decimal | None:
    return None if session.machine.most_usd is None else Decimal(session.machine.most_usd)


def _is_spent(session: Session, sandbox: Sandbox, now: datetime) -> bool:
    most = _most(session)
    return most is not None and metering.total(sandbox, now + _last_save(sandbox)) >= most


def _last_save(sandbox: Sandbox) -> timedelta:
    """What the last save of a machine may take: it is part of what the machine may cost."""
    return WINDOW if sandbox.state_dir else timedelta()


def _spent_at(session: Session, sandbox: Sandbox) -> datetime | None:
    """When its time will have cost what it may cost."""
    most = _most(session)
    if most is None or sandbox.meter is None:
        return None
    return metering.reaches(sandbox, sandbox.meter, most - sandbox.meter.earlier) - _last_save(sandbox)
