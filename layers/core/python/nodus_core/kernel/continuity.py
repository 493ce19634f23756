"""When the folder of a run's sandbox is saved, and when its sandbox is stopped for nobody uses it (NODQ-64). Pure."""

from datetime import datetime, timedelta

from nodus_core.kernel.objects import Conversation, Run, Turn
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.saving import checkpoint_at, is_kept

IDLE_AFTER = timedelta(minutes=15)
"""How long a run waits for a message until its sandbox is stopped, where its folder is saved and comes back."""


def steps_of(head: Conversation, run: Run | None) -> int:
    """Steps that a conversation has settled."""
    return head.steps + (run.seq if run else 0)


def next_checkpoint(head: Conversation, run: Run | None, sandbox: Sandbox | None) -> datetime | None:
    """When the folder is saved next; None while nothing was done since it was saved, or nothing may be saved yet.

    Not before the first model call: until then the setup has not ended, and what is restored has been set up.
    """
    prepared = run is None or run.rounds > 0
    if sandbox is None or not is_kept(sandbox) or not prepared or steps_of(head, run) <= head.saved_steps:
        return None
    return checkpoint_at(sandbox, head.save_begun_at)


def idle_at(turn: Turn | None, sandbox: Sandbox | None) -> datetime | None:
    """When the sandbox of a run that waits for a message, and has answered `turn`, is stopped."""
    if turn is None or turn.finished_at is None or sandbox is None or not is_kept(sandbox):
        return None
    return max(turn.finished_at, sandbox.worked_at or turn.finished_at) + IDLE_AFTER
