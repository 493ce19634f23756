"""Messages that a run has accepted and could not read before it ended: shown, then settled (FLD-12)."""

from nodus_core.conversations.session import Session
from nodus_core.kernel import projection
from nodus_core.kernel.errors import CorruptRow

RETURNED_AT_ONCE = 90
"""Inputs that one commit settles, within 100 operations."""


def with_undelivered(session: Session, status: projection.Status, reason: str | None) -> projection.Status:
    """The status of a run that ends now, with the messages that it has not read and why.

    The commit that ends it has the condition that no further one was accepted.
    """
    head = session.conversation
    unread = head.accepted - head.opened
    if unread == 0:
        return status
    first = session.ports.journal.inputs_of(
        head.id, after=head.opened, limit=min(unread, projection.MOST_UNDELIVERED + 1)
    )
    keys = [entry.message_key for entry in first if entry.message_key is not None]
    prompts = len(first) - len(keys)  # a run's own prompt is no message
    return projection.undelivered(status, keys, unread - prompts, reason or "Failed")


def return_unread(session: Session) -> None:
    """Settles the next of them."""
    head = session.conversation
    behind = head.opened + head.returned
    entries = session.ports.journal.inputs_of(
        head.id, after=behind, limit=min(head.accepted - behind, RETURNED_AT_ONCE)
    )
    if not entries:
        raise CorruptRow(f"conversation {head.id}: {head.accepted} inputs were accepted, {behind} are there")
    session.conversation = session.ports.journal.inputs.return_unread(session.fence, head, entries)
