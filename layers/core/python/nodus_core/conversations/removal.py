"""Removing what a run has left, once it is to be deleted and nothing works on it any more.

delete:  stop (if unfinished) ──► deletionTimestamp ──► line closed? ──yes──► purge, by the caller
                                                            └─no──► purge instead of close, by the line's worker
The mark and the close change one version of the object, so each sees the other. A worker purges while it holds
the line: when it dies, the line is due and the next one goes on. A caller that dies had no answer: it deletes
again, since the object goes last.
"""

from collections.abc import Iterable

from nodus_core.journal.fence import Fence
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import (
    conversation_key,
    conversation_partition,
    run_partition,
    sandbox_partition,
)
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock
from nodus_core.journal.store import MOST_OPERATIONS, Absent, Delete, Equals, Key, Operation, both
from nodus_core.kernel import ids
from nodus_core.kernel.objects import Conversation, Object

_CLOSED = both(Equals("ended", True), Absent("sandbox"), Absent("line.lease_until"))


def is_closed(head: Conversation) -> bool:
    """Whether nothing works on a conversation any more and nothing of it is left to be cleared."""
    return head.ended and head.sandbox is None and head.line.lease_until is None


def purge(
    journal: Journal, payloads: Payloads, clock: Clock, obj: Object, *, fence: Fence | None = None
) -> None:
    """Removes all that a run has left, the object and its conversation's head last and together.

    `fence`: the worker that holds the ended line; without one, the line must be closed. May be repeated after a
    crash at any point. Raises `ConditionFailed` when the line is another's or the run is gone already,
    `StoreUnavailable`.
    """
    head = journal.conversation(obj.uid)
    payloads.delete_scope(Scope(obj.key.org, obj.uid))
    last: list[Operation] = []
    if head is not None:
        for pk in _partitions(head):
            _clear(journal, pk)
        last.append(Delete(conversation_key(head.id), when=fence.on_conversation if fence else _CLOSED))
    journal.objects.remove(obj, clock.now(), *last)


def _partitions(head: Conversation) -> Iterable[str]:
    for number in range(1, head.opened + 1):
        yield run_partition(ids.run_id(head.id, number))
    for ordinal in range(1, head.sandboxes + 1):
        yield sandbox_partition(ids.sandbox_id(head.id, ordinal))
    yield conversation_partition(head.id)


def _clear(journal: Journal, pk: str) -> None:
    """Deletes the rows of a partition, but a conversation's head, which says what else there is."""
    spared = conversation_key(pk.removeprefix("conv#"))
    after: str | None = None
    while True:
        page = journal.store.query(pk, after=after, limit=MOST_OPERATIONS)
        keys = [Key(pk, row["sk"]) for row in page.rows]
        operations: list[Operation] = [Delete(key) for key in keys if key != spared]
        if operations:
            journal.writer.commit("purge", *operations)
        if page.after is None:
            return
        after = page.after
