"""Texts of a run that ended long ago are removed; what it was, what it did and what it cost stays (NOD-077).

closed ──30 days──► due ──► the object says that it is expired ──► texts removed, in slices ──► due no more
                               └─ from here on readers hear `PayloadExpired`
A sweep that dies, or has no more time, leaves the run due, and the next one goes on with what is left.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from nodus_core.conversations.removal import clear
from nodus_core.conversations.shelf import as_text
from nodus_core.journal import keys
from nodus_core.journal.codec import to_value
from nodus_core.journal.journal import Journal
from nodus_core.journal.objects import versioned
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock
from nodus_core.journal.store import Equals, Row, Update
from nodus_core.kernel import ids, projection
from nodus_core.kernel.objects import Conversation, Object
from nodus_core.kernel.text import Inline

RESERVE_S = 5.0
"""Seconds of an invocation that are left when an expiry stops: one slice takes less."""

SLICE = 25
"""Rows of one commit: a transaction has at most 4 MB, and a row with its texts is far smaller than 100 KB."""

_TEXTS = {"t": ("input", "message"), "in": (), "turn": ("answer",)}
"""Fields of tasks, inputs and turns that go, by the noun of their sort key."""


@dataclass(frozen=True)
class Expiry:
    """Ends the keeping of texts."""

    journal: Journal
    payloads: Payloads
    clock: Clock

    def expire(self, conversation: str, remaining: Callable[[], float]) -> bool:
        """Removes the texts of a run whose time has come. Returns whether all of them are gone.

        `remaining`: seconds that the invocation has left. May be repeated after a crash at any point. Raises
        `ConditionFailed` when the object has changed meanwhile or the run is being removed, `StoreUnavailable`.
        """
        head = self.journal.conversation(conversation)
        obj = None if head is None else self.journal.object(head.object)
        if head is not None and obj is not None and obj.uid == head.id:
            if obj.expired_at is None:
                self._mark(obj, head)
            self.payloads.delete_scope(Scope(obj.key.org, obj.uid))
            for rows in self._slices(head):
                if remaining() < RESERVE_S:
                    return False
                self.journal.keeping.strip(rows)
            for ordinal in range(1, head.sandboxes + 1):
                if remaining() < RESERVE_S:
                    return False
                for partition in keys.sandbox_partitions(ids.sandbox_id(head.id, ordinal)):
                    clear(self.journal, partition)
        self.journal.keeping.over(conversation)
        return True

    def _mark(self, obj: Object, head: Conversation) -> None:
        """Says on the object that its texts are expired, before any of them is gone."""
        spec = json.loads(self.payloads.get(Scope(obj.key.org, obj.uid), obj.spec))
        spec.pop("input", None)
        now = self.clock.now()
        expired = replace(
            obj,
            spec=Inline(as_text(spec)),  # in its row: what stands outside of it is about to be deleted
            status=projection.expired(obj.status),
            expired_at=now,
            annotations=None,  # `kubectl apply` notes the whole spec there
        )
        context = Update(
            keys.conversation_key(head.id),
            when=Equals("closed", True),
            assign={"context": to_value(Inline(""))},
        )
        self.journal.objects.replace(obj, versioned(expired, now), now, context)

    def _slices(self, head: Conversation) -> Iterator[list[Row]]:
        """Rows that still hold texts, as they are without them, in groups of one commit each."""
        places = [(keys.run_partition(ids.run_id(head.id, turn)), "t#") for turn in range(1, head.opened + 1)]
        conversation = keys.conversation_partition(head.id)
        for pk, prefix in (*places, (conversation, "in#"), (conversation, "turn#")):
            after: str | None = None
            while True:
                page = self.journal.store.query(pk, prefix, after=after, limit=SLICE)
                bare = [(row, without_texts(row)) for row in page.rows]
                if changed := [new for old, new in bare if new != old]:
                    yield changed
                if page.after is None:
                    break
                after = page.after


def without_texts(row: Row) -> Row:
    """A task's, input's or turn's row without what people, models and commands have said."""
    noun, _, _ = row["sk"].partition("#")
    bare: dict[str, Any] = {name: value for name, value in row.items() if name not in _TEXTS[noun]}
    if "result" in row:
        bare["result"] = _untold(row["result"])
    if "resolutions" in row:
        bare["resolutions"] = [
            {**said, "result": _untold(said["result"])} if "result" in said else said
            for said in row["resolutions"]
        ]
    if "text" in row:
        bare["text"] = to_value(Inline(""))
    if "prompt" in row:
        bare["prompt"] = ""
    return bare


def _untold(result: Row) -> Row:
    return {name: value for name, value in result.items() if name != "text"}
