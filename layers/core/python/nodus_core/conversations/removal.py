"""Removing what a run has left, once it is to be deleted and nothing works on it any more.

delete:  stop (if unfinished) ──► deletionTimestamp ──► line closed? ──yes──► purge, by the caller
                                                            └─no──► purge instead of close, by the line's worker
The mark and the close change one version of the object, so each sees the other. A worker purges while it holds
the line: when it dies, the line is due and the next one goes on. A caller that dies had no answer: it deletes
again, since the object goes last.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from nodus_core.conversations.last_cells import last_cells
from nodus_core.conversations.runs_sandboxes import of_run
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.fence import Fence
from nodus_core.journal.journal import Journal
from nodus_core.journal.keeping import forgotten
from nodus_core.journal.keys import (
    conversation_key,
    conversation_partition,
    run_partition,
    sandbox_partitions,
)
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock
from nodus_core.journal.store import MOST_OPERATIONS, Delete, Equals, Key, Operation
from nodus_core.kernel import ids, projection
from nodus_core.kernel.objects import AGENT_RUN, Conversation, Object


def purge(
    journal: Journal, payloads: Payloads, clock: Clock, obj: Object, *, fence: Fence | None = None
) -> None:
    """Removes all that a run has left, the object and its conversation's head last and together.

    `fence`: the worker that holds the ended line; without one, the line must be closed. May be repeated after a
    crash at any point: nothing that a repetition reads is removed before the last commit. Raises `ConditionFailed` when the line is another's or the run is gone already,
    `StoreUnavailable`.
    """
    head = journal.conversation(obj.uid)
    last: list[Operation] = []
    if head is not None:
        _remove_sandboxes(Shelf(journal, payloads, clock), head)
        for pk in _partitions(head):
            clear(journal, pk, spared=conversation_key(head.id))
        held = fence.on_conversation if fence else Equals("closed", True)
        last += [Delete(conversation_key(head.id), when=held), forgotten(head.id)]
    # Before its texts go; a repetition after a crash finds them gone, and knows less.
    cells = last_cells(Shelf(journal, payloads, clock), obj, _at_last(obj, head, clock.now()))
    payloads.delete_scope(Scope(obj.key.org, obj.uid))
    journal.objects.remove(obj, clock.now(), *last, cells=cells)


def _remove_sandboxes(shelf: Shelf, head: Conversation) -> None:
    """Removes the objects of a run's sandboxes. Raises `ConditionFailed` when one has changed since it was read."""
    if head.object.kind != AGENT_RUN:
        return
    for ordinal in range(1, head.sandboxes + 1):
        obj = of_run(shelf.journal, head, ids.sandbox_id(head.id, ordinal))
        if obj is not None:
            cells = last_cells(shelf, obj, obj.status)
            shelf.journal.objects.remove(obj, shelf.clock.now(), cells=cells)


def _at_last(obj: Object, head: Conversation | None, now: datetime) -> dict[str, Any]:
    """The status of a run that goes: one that was stopped for it has ended."""
    if head is None or head.stop is None or obj.status.get("phase") in projection.FINAL_PHASES:
        return obj.status
    return projection.stopped(obj.status, head.stop, now)


def _partitions(head: Conversation) -> Iterable[str]:
    for number in range(1, head.opened + 1):
        yield run_partition(ids.run_id(head.id, number))
    for ordinal in range(1, head.sandboxes + 1):
        yield from sandbox_partitions(ids.sandbox_id(head.id, ordinal))
    yield conversation_partition(head.id)


def clear(journal: Journal, pk: str, *, spared: Key | None = None) -> None:
    """Deletes the rows of a partition, but for one: the conversation's head, which says what else there is."""
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
