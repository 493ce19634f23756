"""Commits on runs that are created together or not at all (decision 17).

open ──► stage … ──► commit ──► show … ──► over          visible from the commit on
  └────────┴──────► abort ───► discard … ──► over          never visible
A staged row names its batch, and counts for nobody until the batch is committed: `visible` is how object rows are
read. Staged conversations are not due and nobody knows their uids. Between them, one row decides: the batch's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nodus_core.journal import changes
from nodus_core.journal.access import making
from nodus_core.journal.codec import from_row
from nodus_core.journal.keys import batch_key, conversation_key, input_key, object_key
from nodus_core.journal.lines import OPEN, due
from nodus_core.journal.receipts import remember
from nodus_core.journal.store import (
    MOST_OPERATIONS,
    Absent,
    Check,
    Delete,
    Equals,
    Key,
    Operation,
    Put,
    Row,
    Store,
    Update,
    both,
)
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.objects import AGENT_RUN, Batch, Conversation, Input, Object, ObjectKey, Receipt
from nodus_core.kernel.states import BatchState

PATIENCE = timedelta(minutes=1)
"""Time that a call has to commit its batch: longer than an invocation of `api` lives. Then anybody may abort it."""


SLICE = 25
"""Runs of one commit: three rows each, and a transaction has at most 4 MB."""

MOST_AGENTS = MOST_OPERATIONS - 3
"""Agents that one batch may name: the commit makes sure that each is still the one that was read."""


@dataclass(frozen=True)
class Staged:
    """A run as it is to be: its object, its conversation, which no execution has been started for, its first input."""

    object: Object
    conversation: Conversation
    first: Input


@dataclass(frozen=True)
class Wrapped:
    """What of a run still names its batch; None: that row does not, or is not there."""

    object: Row | None
    conversation: Row | None


class Batches:
    """Commits on batches."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def open(self, batch: Batch) -> None:
        """From here on the batch's rows are found by the sweeper, whatever becomes of its caller. Condition: it is new."""
        key = batch_key(batch.id)
        row = stored(key, batch, **due(key.pk, batch.opened_at + PATIENCE))
        self._writer.commit("open-batch", Put(row, when=Absent()))

    def stage(self, batch: Batch, runs: Sequence[Staged]) -> None:
        """Writes runs, which nobody sees, and takes their names.

        Condition: the batch is open, and nothing has these names: not even an open batch. Raises `ConditionFailed`;
        position 0 is the batch, and the object of the n-th run has 3 n + 1.
        """
        operations: list[Operation] = [Check(batch_key(batch.id), _is(BatchState.OPEN))]
        for run in runs:
            head = conversation_key(run.conversation.id)
            entry = input_key(run.first.conversation, run.first.seq)
            operations += [
                Put(stored(object_key(run.object.key), run.object, batch=batch.id), when=Absent()),
                Put(stored(head, run.conversation, batch=batch.id), when=Absent()),
                Put(stored(entry, run.first), when=Absent()),
            ]
        self._writer.commit("stage-batch", *operations)

    def commit(self, batch: Batch, agents: Iterable[Object], receipt: Receipt, now: datetime) -> None:
        """All runs of the batch are there from here on.

        Condition: the batch is open, the receipt's key is free, each agent is still the one that was read, the
        project is not being deleted. Raises `ConditionFailed`, and for the project `Refusal` `Conflict`.
        """
        key, place = batch_key(batch.id), ObjectKey(batch.org, batch.project, AGENT_RUN, "")
        decided = {"state": BatchState.COMMITTED.value, **due(key.pk, now)}
        making(
            self._writer,
            "commit-batch",
            place,
            Update(key, when=_is(BatchState.OPEN), assign=decided),
            remember(receipt, now),
            *(Check(object_key(agent.key), Equals("version", agent.version)) for agent in agents),
        )

    def abort(self, batch: Batch, now: datetime) -> None:
        """None of its runs will ever be there, and none can be staged any more. Condition: it is open."""
        key = batch_key(batch.id)
        decided = {"state": BatchState.ABORTED.value, **due(key.pk, now)}
        self._writer.commit("abort-batch", Update(key, when=_is(BatchState.OPEN), assign=decided))

    def show(self, batch: Batch, wrapped: Sequence[Wrapped], now: datetime) -> None:
        """Rows of a committed batch become like any other's: their change is told, their lines are due.

        Condition: they are as they were read. Raises `ConditionFailed`.
        """
        operations = [operation for run in wrapped for operation in _unwrapped(batch, run, now)]
        self._writer.commit("show-batch", *operations)

    def discard(self, batch: Batch, wrapped: Sequence[Wrapped]) -> None:
        """Rows of an aborted batch go. Condition: they are the batch's. Raises `ConditionFailed`."""
        operations: list[Operation] = []
        for run in wrapped:
            for row in (run.object, run.conversation):
                if row is not None:
                    operations.append(Delete(_key(row), when=Equals("batch", batch.id)))
            if run.conversation is not None:
                operations.append(Delete(input_key(run.conversation["id"], 1)))
        self._writer.commit("discard-batch", *operations)

    def over(self, batch: Batch) -> None:
        """No row names the batch any more."""
        self._writer.commit("batch-over", Delete(batch_key(batch.id)))

    def wrapped(self, batch: Batch) -> list[Wrapped]:
        """The runs of which some row still names the batch."""
        found: list[Wrapped] = []
        members = list(zip(batch.names, batch.uids, strict=True))
        for start in range(0, len(members), MOST_OPERATIONS // 2):
            part = members[start : start + MOST_OPERATIONS // 2]
            keys = [
                key
                for name, uid in part
                for key in (
                    object_key(ObjectKey(batch.org, batch.project, AGENT_RUN, name)),
                    conversation_key(uid),
                )
            ]
            rows = [
                row if row is not None and row.get("batch") == batch.id else None
                for row in self._writer.store.get(keys)
            ]
            found += map(Wrapped, rows[::2], rows[1::2])
        return [run for run in found if run.object is not None or run.conversation is not None]


def visible(store: Store, rows: Sequence[Row | None]) -> list[Row | None]:
    """Object rows as readers may see them: those of a batch that is not committed are not there."""
    found = list(rows)
    while names := {row["batch"] for row in found if row is not None and "batch" in row}:
        batches = sorted(names)
        heads = dict(zip(batches, store.get([batch_key(name) for name in batches]), strict=True))
        for place, row in enumerate(found):
            if row is None or "batch" not in row:
                continue
            head = heads[row["batch"]]
            if head is None:  # the batch has been over since the row was read
                found[place] = store.get([_key(row)])[0]
            elif head["state"] == BatchState.COMMITTED.value:
                found[place] = {name: value for name, value in row.items() if name != "batch"}
            else:
                found[place] = None
    return found


def _unwrapped(batch: Batch, run: Wrapped, now: datetime) -> Iterable[Operation]:
    same = Equals("batch", batch.id)
    if run.object is not None:
        obj = from_row(Object, run.object)
        shown = replace(obj, version=changes.next_version(obj.version, now))
        yield Update(
            _key(run.object),
            when=both(same, Equals("version", obj.version)),
            assign={"version": shown.version, "outbox": "changed"},
            remove=("batch",),
        )
        yield changes.added(shown, now)
    if run.conversation is not None:
        key = _key(run.conversation)
        if run.conversation.get("closed"):
            yield Update(key, when=same, remove=("batch",))
        else:
            begins = {"outbox": "line", **due(key.pk, now)}
            yield Update(key, when=both(same, OPEN), assign=begins, remove=("batch",))


def _is(state: BatchState) -> Equals:
    return Equals("state", state.value)


def _key(row: Row) -> Key:
    return Key(row["pk"], row["sk"])
