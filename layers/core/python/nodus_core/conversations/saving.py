"""Saving the folder of a sandbox: asked of its daemon, followed to its end, and what is not kept any more removed.

begin ──► the daemon packs and PUTs ──► follow: the archive is there as it says ──► complete ──► the oldest is dropped
                                          └─ it took too long, was refused, the sandbox is gone ──► what was stays
"""

import logging
from datetime import timedelta

from nodus_core.conversations import commands, errands, runs_sandboxes
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.session import Session
from nodus_core.journal.store import Absent, Condition, Equals, Operation, both
from nodus_core.kernel import continuity, machines, saving
from nodus_core.kernel.decisions import DropSaves
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.saving import Save, Saving, Shown
from nodus_core.kernel.states import ALIVE_SANDBOXES, CommandState
from nodus_core.sandboxes import folders
from nodus_core.sandboxes.folders import NotDone, Told

log = logging.getLogger(__name__)

_VALID = saving.WINDOW + timedelta(minutes=3)
"""How long the address works: a little longer than the save may take."""

_TOO_LATE = NotDone(
    "window", f"It took longer than {saving.WINDOW.total_seconds():.0f} s, which is what is paid for."
)
_GONE = NotDone("sandbox", "The sandbox was gone before it had ended.")


def begin(session: Session, parting: str | None) -> Directive | None:
    """Asks the daemon for the archive of the folder; what people do in the sandbox of a waiting run comes first."""
    head, sandbox, now = session.conversation, session.sandbox, session.ports.clock.now()
    if sandbox is None or sandbox.state_dir is None:
        raise CorruptRow(f"conversation {head.id}: no sandbox whose folder could be saved")
    if parting == machines.IDLE and head.kind != machines.MACHINE and _is_used(session, sandbox):
        session.ports.journal.machines.works(sandbox.id, now)
        session.sandbox = session.ports.journal.sandbox(sandbox.id)
        return None
    name = f"{head.saves_begun + 1:06d}"
    until = now + saving.WINDOW if sandbox.meter is None else min(now + saving.WINDOW, sandbox.meter.until)
    seconds = max(int((until - now).total_seconds()), 1)
    url = session.ports.archives.put_url(session.scope, name, _VALID)
    order = folders.save_order(sandbox.state_dir, url, seconds)
    request = session.keep(commands.canonical(order.request), head=False)
    command = commands.pending(sandbox.id, f"{folders.SAVE}.{name}", order, request, now)
    started = Saving(name, sandbox.id, command.id, now, until, parting)
    shown = _shown(session, sandbox.id, saving.under_way(head.saves, now))
    steps = continuity.steps_of(head, session.run)
    session.conversation = session.ports.journal.saves.begin(
        session.fence, head, started, command, steps=steps, more=shown
    )
    commands.ring(session)
    return None


def follow(session: Session) -> Directive | None:
    """Waits for the save under way. One that is whole takes the place of the last; any other changes nothing."""
    head = session.conversation
    started = head.saving
    if started is None:
        raise CorruptRow(f"conversation {head.id}: no save to follow")
    found = errands.awaited(session, started.sandbox, started.command, started.until)
    if not isinstance(found, Command):
        return found
    told, parting = _told(session, started, found), _parting(session, started)
    saves = session.ports.journal.saves
    if isinstance(told, Told):
        save = Save(
            started.name, started.at, told.size, told.sha256, told.entries, told.left_out, told.frozen
        )
        shown = _shown(session, started.sandbox, saving.saved(save))
        session.conversation = saves.complete(session.fence, head, save, parting=parting, more=shown)
    else:
        log.warning("sandbox %s was not saved: %s: %s", started.sandbox, told.reason, told.message)
        entry = saving.incomplete(head.saves, started.at, told.reason, told.message)
        shown = _shown(session, started.sandbox, entry)
        session.conversation = saves.fail(session.fence, head, parting=parting, more=shown)
    if parting is not None:
        session.sandbox = session.ports.journal.sandbox(started.sandbox)
    return None


def drop(session: Session, decision: DropSaves) -> None:
    """Removes archives from the store, and then their names."""
    for name in decision.names:
        session.ports.archives.delete(session.scope, name)
    session.conversation = session.ports.journal.saves.drop(
        session.fence, session.conversation, decision.names
    )


def _told(session: Session, started: Saving, command: Command) -> Told | NotDone:
    """What became of the command; an archive that is not in the store as the daemon says is none."""
    if command.state is not CommandState.DONE or command.result is None:
        return _TOO_LATE if session.ports.clock.now() >= started.until else _GONE
    told = folders.saved(session.text(command.result))
    if isinstance(told, Told) and session.ports.archives.size(session.scope, started.name) != told.size:
        return NotDone("transfer", "The archive is not in the store as the sandbox's daemon says.")
    return told


def _parting(session: Session, started: Saving) -> Condition | None:
    """What must still hold of the line's head for the sandbox to be let go now; None: it stays, or is gone already."""
    head = session.conversation
    alive = session.sandbox is not None and session.sandbox.state in ALIVE_SANDBOXES
    if started.parting is None or not alive:
        return None
    if head.kind == machines.MACHINE:
        return Equals("paused", head.paused) if head.paused else None
    if started.parting != machines.IDLE:
        return Absent("stop")
    waits = head.opened == head.accepted
    return both(Equals("accepted", head.accepted), Absent("stop")) if waits else None


def _is_used(session: Session, sandbox: Sandbox) -> bool:
    """Whether somebody's command is at work in the sandbox."""
    opened = session.ports.journal.open_commands(sandbox.id)
    return any(command.state not in commands.OVER for command in opened)


def _shown(session: Session, sandbox: str, entry: Shown) -> tuple[Operation, ...]:
    """What shows a `lastSave`: in a Sandbox's status; for a run in that of its sandbox, and in the run's own."""
    status = session.object.status
    if session.conversation.kind == machines.MACHINE:
        return session.projected({**status, "lastSave": entry})
    shown = {**status, "sandbox": {**status.get("sandbox", {}), "lastSave": entry}}
    return (*session.projected(shown), *runs_sandboxes.is_saved(session, sandbox, entry))
