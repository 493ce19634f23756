"""A sandbox whose next period no Budget pays is stopped (NODQ-108).

unpaid ──► its commands are ended, their outcome is known ──► (its folder is saved) ──► released ──► gone ──► booked
                                                                  the run goes on: without it, until it needs another
"""

from nodus_core.conversations import calls, commands, metered, preparation, saving, sourcing
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.session import Session
from nodus_core.kernel import ids, machines
from nodus_core.kernel.saving import is_kept
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.tasks import Task


def extend(session: Session) -> Directive | None:
    """Pays for the sandbox's next period, or stops it. May be repeated until every command has ended."""
    if metered.extend(session) is None:
        return None
    running = _running(session)
    if running:
        commands.cancel(session, running)
        match ids.preparation(running[0].key):
            case ids.SETUP:
                return preparation.run_setup(session, running[0])
            case ids.SOURCE:
                return sourcing.copy_source(session, running[0])
        return calls.watch(session, running)
    if is_kept(session.sandbox):
        return saving.begin(session, machines.UNPAID)
    sandbox = session.conversation.sandbox
    if sandbox is not None:
        session.ports.journal.sandboxes.release(sandbox)
        session.sandbox = session.ports.journal.sandbox(sandbox)
    return None


def _running(session: Session) -> tuple[Task, ...]:
    """Steps of the open run that are commands in its sandbox, and have not ended."""
    return tuple(
        task
        for task in session.tasks.values()
        if task.state is TaskState.RUNNING
        and task.sandbox is not None
        and task.sandbox == session.conversation.sandbox
        and ids.preparation(task.key) != ids.SANDBOX
    )
