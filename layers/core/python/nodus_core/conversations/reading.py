"""What people read: objects with their live figures, lists, answers. Nothing here changes anything."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from nodus_core.access.door import Place
from nodus_core.billing import balance
from nodus_core.conversations.api_keys import KIND as API_KEY
from nodus_core.conversations.api_keys import with_last_use
from nodus_core.conversations.conditions import CLOSING, with_conditions
from nodus_core.conversations.connections import KIND as CONNECTION
from nodus_core.conversations.connections import status_of
from nodus_core.conversations.control import finished
from nodus_core.conversations.runs_sandboxes import is_over
from nodus_core.conversations.shelf import Outcome, Shelf, Texts, expired, scope_of
from nodus_core.conversations.sources import Allowed
from nodus_core.journal import keys
from nodus_core.journal.access import Project
from nodus_core.journal.codec import from_row
from nodus_core.journal.store import Key
from nodus_core.kernel import machine_status, metering, projection
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.money import BUDGET, ZERO
from nodus_core.kernel.objects import AGENT_RUN, SANDBOX, Conversation, Object, Owner, Run, Turn
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.text import Inline, Text
from nodus_core.kernel.times import stamp
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.metadata import SANDBOX_FINALIZER

PROJECT = "Project"

LARGEST_ANSWER = 4_000_000
"""Bytes of an answer above which the reader is sent to the payload store (docs/protocols.md §1)."""

_LARGEST_BODY = 5_500_000
_CHUNK = 16

Shown = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Elsewhere:
    """An answer too large for a reply: the address from which it can be read for a while."""

    url: str


@dataclass(frozen=True)
class Reading:
    """Reads of one journal. Each raises `Refusal` `NotFound` for what is not there."""

    shelf: Shelf

    def object(self, place: Place, kind: str, name: str) -> Shown:
        """One object as it is now."""
        obj = self.shelf.find(place, kind, name)
        return self.shown(Outcome(obj, self.shelf.spec(obj)))

    def shown(self, outcome: Outcome) -> Shown:
        """The object of a call's outcome; a replayed one is shown as the first call saw it."""
        obj, texts = outcome.object, (outcome.spec, self.shelf.annotations(outcome.object))
        if outcome.replayed and obj.key.kind != CONNECTION:  # whose status is never stored
            return envelope(obj, texts, obj.status, obj.created_at, self.shelf.allowed)
        return envelope(
            obj, texts, self._statuses([obj], [texts])[0], self.shelf.clock.now(), self.shelf.allowed
        )

    def answer(self, place: Place, name: str) -> str | Elsewhere:
        """The answer of the latest finished turn that has one (NOD-067, NOD-069).

        Raises `Refusal` `AnswerNotReady` while there is none, `PayloadExpired` when it is kept no longer.
        """
        obj = self.shelf.find(place, AGENT_RUN, name)
        if obj.expired_at is not None:
            raise expired(name)
        with self.shelf.reading(obj):
            return self._answer(obj)

    def _answer(self, obj: Object) -> str | Elsewhere:
        text = self._latest_answer(obj.uid)
        if text is None:
            self.shelf.check_there(obj)
            phase, name = obj.status.get("phase", "Queued"), obj.key.name
            hint = "it ended without one" if finished(obj) else "ask again when its turn has finished"
            message = f"AgentRun {name!r} is {phase} and has no answer: {hint}"
            raise Refusal("AnswerNotReady", message, kind=AGENT_RUN, name=name)
        if isinstance(text, Inline):
            return text.text
        if text.size <= LARGEST_ANSWER:
            whole = self.shelf.payloads.get(scope_of(obj), text)
            if len(json.dumps(whole)) <= _LARGEST_BODY:
                return whole
        return Elsewhere(self.shelf.payloads.presign(scope_of(obj), text))

    def _latest_answer(self, conversation: str) -> Text | None:
        partition, after = keys.conversation_partition(conversation), None
        while True:
            page = self.shelf.journal.store.query(
                partition, "turn#", after=after, limit=_CHUNK, newest_first=True
            )
            for row in page.rows:
                turn = from_row(Turn, row)
                if turn.answer is not None and turn.finished_at is not None:
                    return turn.answer
            if page.after is None:
                return None
            after = page.after

    def all_shown(self, objects: Sequence[Object]) -> list[Shown]:
        """Objects of one kind as they are shown, but for those that are removed meanwhile."""
        every = self.shelf.texts(objects)
        statuses, now = self._statuses(objects, every), self.shelf.clock.now()
        return [
            envelope(obj, texts, status, now, self.shelf.allowed)
            for obj, texts, status in zip(objects, every, statuses, strict=True)
            if texts is not None
        ]

    def _statuses(self, objects: Sequence[Object], every: Sequence[Texts | None]) -> list[Shown]:
        """The statuses with what changes between two projections: money, a stop that was asked for."""
        if objects and objects[0].key.kind == CONNECTION:
            return [
                status_of(self.shelf, obj, texts[0]) if texts else {}
                for obj, texts in zip(objects, every, strict=True)
            ]
        if objects and objects[0].key.kind == BUDGET:
            accounts = self.shelf.journal.accounts.accounts([obj.uid for obj in objects])
            return [
                obj.status if account is None else balance.shown(account)
                for obj, account in zip(objects, accounts, strict=True)
            ]
        if objects and objects[0].key.kind == API_KEY:
            return with_last_use(self.shelf, objects)
        if objects and objects[0].key.kind == SANDBOX:
            return self._sandbox_statuses(objects)
        if objects and objects[0].key.kind == PROJECT:
            return self._project_statuses(objects)
        return self._run_statuses(objects)

    def _project_statuses(self, objects: Sequence[Object]) -> list[Shown]:
        rows = self._rows(Project, [keys.project_key(obj.key.org, obj.key.name) for obj in objects])
        return [
            {**obj.status, "phase": CLOSING} if row and row.closing else obj.status
            for obj, row in zip(objects, rows, strict=True)
        ]

    def _run_statuses(self, objects: Sequence[Object]) -> list[Shown]:
        live = [
            obj for obj in objects if obj.key.kind == AGENT_RUN and not (finished(obj) and _is_let_go(obj))
        ]
        heads = self._rows(Conversation, [keys.conversation_key(obj.uid) for obj in live])
        runs = self._rows(Run, [keys.run_key(head.run) for head in heads if head and head.run])
        spent, compute = {run.conversation: run.spent for run in runs if run}, self._compute(heads)
        now = {
            obj.uid: live_status(obj.status, head, spent.get(head.id, ZERO), compute[head.id])
            for obj, head in zip(live, heads, strict=True)
            if head
        }
        return [now.get(obj.uid, obj.status) for obj in objects]

    def _sandbox_statuses(self, objects: Sequence[Object]) -> list[Shown]:
        """With what their machines have cost until now, and use; a run's as its row is (NOD-408, NOD-414)."""
        heads = self._rows(
            Conversation, [keys.conversation_key(obj.owner.uid if obj.owner else obj.uid) for obj in objects]
        )
        ids = [
            obj.uid if obj.owner else head.sandbox if head else None
            for obj, head in zip(objects, heads, strict=True)
        ]
        found = self._rows(Sandbox, [keys.sandbox_key(name) for name in ids if name])
        rooms, now = {room.id: room for room in found if room}, self.shelf.clock.now()
        return [
            _sandbox_status(obj, head, rooms.get(name or ""), now)
            for obj, head, name in zip(objects, heads, ids, strict=True)
        ]

    def _compute(self, heads: Sequence[Conversation | None]) -> dict[str, Decimal]:
        """What all sandboxes of each conversation have cost until now (NOD-144, NOD-414)."""
        there = [head for head in heads if head]
        rooms = self._rows(Sandbox, [keys.sandbox_key(head.sandbox) for head in there if head.sandbox])
        now = self.shelf.clock.now()
        until_now = {room.conversation: metering.total(room, now) for room in rooms if room}
        return {head.id: until_now.get(head.id, head.compute) for head in there}

    def _rows(self, cls: type[T], wanted: list[Key]) -> list[T | None]:
        rows = self.shelf.journal.store.get(wanted) if wanted else []
        return [None if row is None else from_row(cls, row) for row in rows]


def live_status(status: Shown, head: Conversation, spent: Decimal, compute: Decimal) -> Shown:
    """The projection, with what has been spent since and a stop that has not been joined yet.

    `spent` is what the open turn's calls have cost, `compute` what all its sandboxes have cost until now.
    """
    cost = {**status.get("cost", {}), "totalUSD": projection.dollars(head.spent + spent)}
    shown = projection.computed({**status, "cost": cost}, compute)
    is_stopping = head.stop is not None and status.get("phase") not in projection.FINAL_PHASES
    return projection.stopping(shown, head.stop.reason) if head.stop and is_stopping else shown


def _sandbox_status(obj: Object, head: Conversation | None, room: Sandbox | None, now: datetime) -> Shown:
    if head is None or (obj.owner is not None and room is None):
        return obj.status
    if obj.owner is None or room is None:
        cost, status = metering.total(room, now) if room else head.compute, obj.status
    else:
        cost = metering.spent(room, now)
        status = machine_status.as_reported(obj.status, room, ended=is_over(head))
    return machine_status.using(machine_status.costing(status, cost), room)


def _reference(owner: Owner) -> Shown:
    kind = {"apiVersion": API_VERSION, "kind": AGENT_RUN}
    return {**kind, "name": owner.name, "uid": owner.uid, "controller": True}


def _is_let_go(obj: Object) -> bool:
    """Whether nothing of a run costs anything any more: its sandbox, if it had one, is gone."""
    return obj.status.get("sandbox", {}).get("phase", projection.DELETED) == projection.DELETED


def envelope(obj: Object, texts: Texts, status: Shown, now: datetime, allowed: Allowed) -> Shown:
    """The five keys of every object, as of a moment (NOD-002), and of what the operator lets projects read."""
    spec, annotations = texts
    metadata: Shown = {
        "name": obj.key.name,
        **({"namespace": obj.key.project} if obj.key.project else {}),
        "uid": obj.uid,
        "resourceVersion": str(obj.version),
        "generation": obj.generation,
        "creationTimestamp": stamp(obj.created_at),
    }
    if obj.deleted_at is not None:
        metadata |= {"deletionTimestamp": stamp(obj.deleted_at), "finalizers": [SANDBOX_FINALIZER]}
    if obj.owner is not None:
        metadata["ownerReferences"] = [_reference(obj.owner)]
    if obj.labels:
        metadata["labels"] = dict(obj.labels)
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": API_VERSION,
        "kind": obj.key.kind,
        "metadata": metadata,
        "spec": spec,
        "status": with_conditions(obj, spec, status, now, allowed),
    }
