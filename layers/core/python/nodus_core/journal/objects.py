"""Commits on resources, and the operations by which other commits carry a status projection along.

Every change writes the object's row and an entry of the project's change log in one transaction.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from nodus_core.journal import changes
from nodus_core.journal.access import making
from nodus_core.journal.changes import next_version
from nodus_core.journal.keys import input_key, object_key
from nodus_core.journal.lines import opening
from nodus_core.journal.receipts import remember
from nodus_core.journal.store import (
    Absent,
    Below,
    Check,
    Delete,
    Equals,
    Operation,
    Put,
    Update,
    both,
)
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.objects import Conversation, Input, Object, Receipt
from nodus_core.kernel.times import stamp

_NONE: Mapping[str, Any] = MappingProxyType({})


def projection(obj: Object, now: datetime, *, over: int | None = None) -> tuple[Operation, Operation]:
    """Operations that store `obj.status` under the new `obj.version` and log the change.

    Condition: the stored version is lower, which is enough for the holder of the line; whoever else projects
    names the version that it has read (`over`), and that must be the stored one.
    """
    update = Update(
        object_key(obj.key),
        when=Below("version", obj.version) if over is None else Equals("version", over),
        assign={"status": obj.status, "version": obj.version, "outbox": "changed"},
    )
    return update, changes.modified(obj, now)


def appears(obj: Object, now: datetime) -> tuple[Operation, Operation]:
    """Operations that store a new object which comes with another one's commit. Condition: there is none."""
    return Put(stored(object_key(obj.key), obj, outbox="changed"), when=Absent()), changes.added(obj, now)


def versioned(obj: Object, now: datetime) -> Object:
    """The object under its next version; the version of a new one is 0 before.

    Right before its commit, with nothing slow in between: a version is a position, and nobody waits longer for what
    lies before one than `OVERLAP`.
    """
    return replace(obj, version=next_version(obj.version, now))


class Objects:
    """Commits that create, change and remove resources."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def create(self, obj: Object, now: datetime, *more: Operation, receipt: Receipt | None = None) -> None:
        """Creates an object, and what its kind keeps beside it (`more`).

        Condition: no object has this key, the receipt's key is free, the project is not being deleted. Raises
        `ConditionFailed`, and for the project `Refusal` `Conflict`.
        """
        making(
            self._writer,
            "create-object",
            obj.key,
            *appears(obj, now),
            *([] if receipt is None else [remember(receipt, now)]),
            *more,
        )

    def replace(self, old: Object, new: Object, now: datetime, *more: Operation) -> None:
        """Condition: the stored object is `old`, by uid and version. Raises `ConditionFailed`."""
        self._writer.commit(
            "replace-object",
            Put(
                stored(object_key(new.key), new, outbox="changed"),
                when=both(Equals("uid", old.uid), Equals("version", old.version)),
            ),
            changes.modified(new, now, old),
            *more,
        )

    def remove(self, obj: Object, now: datetime, *more: Operation, cells: Mapping[str, Any] = _NONE) -> None:
        """`cells`: what tables showed of the object at last, by column, for whoever watches them.

        Condition: the stored object is `obj`, by uid and version. Raises `ConditionFailed`.
        """
        gone = versioned(obj, now)
        self._writer.commit(
            "remove-object",
            Delete(object_key(obj.key), when=both(Equals("uid", obj.uid), Equals("version", obj.version))),
            changes.deleted(gone, obj, now, cells),
            *more,
        )

    def admit(
        self,
        obj: Object,
        conversation: Conversation,
        first: Input,
        now: datetime,
        *,
        agent: Object | None,
        receipt: Receipt | None = None,
    ) -> None:
        """Creates an AgentRun: object, conversation and first input at once, due at once.

        Condition: none of the three exists; the agent (if given) is still the one that was read; the
        receipt's key is free; the project is not being deleted. Raises `ConditionFailed`, and for the project
        `Refusal` `Conflict`.
        """
        entry = input_key(first.conversation, first.seq)
        operations: list[Operation] = [
            *appears(obj, now),
            opening(conversation, now),
            Put(stored(entry, first), when=Absent()),
        ]
        if agent is not None:
            operations.append(Check(object_key(agent.key), Equals("version", agent.version)))
        if receipt is not None:
            operations.append(remember(receipt, now))
        making(self._writer, "admit", obj.key, *operations)

    def mark_deleted(self, obj: Object, now: datetime) -> Object:
        """Sets `deletionTimestamp`. Condition: the version is the one seen. Raises `ConditionFailed`."""
        marked = versioned(replace(obj, deleted_at=now), now)
        fields: dict[str, Any] = {
            "deleted_at": stamp(now),
            "version": marked.version,
            "outbox": "changed",
        }
        self._writer.commit(
            "mark-deleted",
            Update(
                object_key(obj.key),
                when=both(Equals("uid", obj.uid), Equals("version", obj.version)),
                assign=fields,
            ),
            changes.modified(marked, now, obj),
        )
        return marked
