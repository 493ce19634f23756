"""Restoring the saved folder in a sandbox that has come up, before anything else is run in it.

come up ──► placed ──► the daemon gets and unpacks the archive ──► restored
                          ├─ the archive is damaged or gone ──► that save is dropped: the next start takes the one before
                          └─ anything else ──► the sandbox is given up; a further start tries the same save again
"""

import logging
from datetime import timedelta

from nodus_core.conversations import commands, errands, sandbox_ends
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.session import Session
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.saving import Save
from nodus_core.kernel.states import CommandState
from nodus_core.sandboxes import folders
from nodus_core.sandboxes.folders import NotDone

log = logging.getLogger(__name__)

LIMIT = timedelta(minutes=10)
"""How long a folder may take to be restored."""

_VALID = LIMIT + timedelta(minutes=3)


def restore(session: Session, sandbox: Sandbox) -> Sandbox | Directive | None:
    """Sees to it that the folder is there. Returns the sandbox once it is, or when the sandbox is given up.

    Else what the line does meanwhile; None: look again.
    """
    save = next((save for save in session.conversation.saves if save.name == sandbox.restore), None)
    if save is None or session.ports.archives.size(session.scope, save.name) != save.size:
        return _failed(
            session, sandbox, save, NotDone("damaged", "The archive is not in the store any more.")
        )
    name = f"{folders.RESTORE}.{save.name}"
    command = session.ports.journal.command(sandbox.id, name)
    if command is None:
        command = _placed(session, sandbox, save, name)
    found = errands.awaited(session, sandbox.id, name, command.created_at + LIMIT)
    if not isinstance(found, Command):
        return found
    failure = _failure(session, found)
    if failure is None:
        session.sandbox = session.ports.journal.saves.restored(session.fence, sandbox, save.at)
        return session.sandbox
    return _failed(session, sandbox, save, failure)


def _placed(session: Session, sandbox: Sandbox, save: Save, name: str) -> Command:
    url = session.ports.archives.get_url(session.scope, save.name, _VALID)
    if sandbox.state_dir is None:
        raise CorruptRow(f"sandbox {sandbox.id} is to be restored and has no folder for it")
    order = folders.restore_order(sandbox.state_dir, url, save, int(LIMIT.total_seconds()))
    request = session.keep(commands.canonical(order.request), head=False)
    command = commands.pending(sandbox.id, name, order, request, session.ports.clock.now())
    session.ports.journal.saves.place_restore(session.fence, sandbox, command)
    commands.ring(session)
    return command


def _failure(session: Session, command: Command) -> NotDone | None:
    if command.state is CommandState.DONE and command.result is not None:
        return folders.restored(session.text(command.result))
    if command.state in (CommandState.PENDING, CommandState.CLAIMED):
        return NotDone("timeout", f"It took longer than {LIMIT.total_seconds():.0f} s.")
    return NotDone("sandbox", "The sandbox was gone before it had ended.")


def _failed(session: Session, sandbox: Sandbox, save: Save | None, failure: NotDone) -> Sandbox | None:
    """Ends a sandbox without its folder, in which nothing may be run, and drops a save that is of no use."""
    log.error("sandbox %s was not restored: %s: %s", sandbox.id, failure.reason, failure.message)
    if save is not None and failure.reason in folders.DAMAGED:
        session.ports.archives.delete(session.scope, save.name)
        session.conversation = session.ports.journal.saves.drop(
            session.fence, session.conversation, (save.name,)
        )
    reason = f"its saved folder could not be restored ({failure.reason}): {failure.message}"
    sandbox_ends.end_task(session, sandbox, reason)
    sandbox_ends.record_gone(session, sandbox, reason)
    session.sandbox = session.ports.journal.sandbox(sandbox.id)
    return session.sandbox
