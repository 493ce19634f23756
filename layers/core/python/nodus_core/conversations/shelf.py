"""What the kinds share in storage: finding an object, its spec's text, changing it under its version."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.journal.journal import Journal
from nodus_core.journal.objects import next_version
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import CorruptRow, Refusal
from nodus_core.kernel.objects import Conversation, Object, ObjectKey
from nodus_core.kernel.text import Inline
from nodus_core.resources.fields import LONGEST_NAME, is_name
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.patch import same

MOST_TRIES = 8
"""Races that one call may lose before it answers `Conflict`."""

_READERS = 16


@dataclass(frozen=True)
class Outcome:
    """What a call came to. `spec` is what the person wrote; `replayed`: an idempotency key's first outcome."""

    object: Object
    spec: dict[str, Any] = field(repr=False)
    created: bool = False
    replayed: bool = False


@dataclass(frozen=True)
class Shelf:
    """Objects of one journal with their specs."""

    journal: Journal
    payloads: Payloads
    clock: Clock

    def find(self, place: Place, kind: str, name: str) -> Object:
        """Raises `Refusal` `NotFound`."""
        obj = self.journal.object(key_of(place, kind, name)) if is_name(name) else None
        if obj is None:
            raise missing(kind, name)
        return obj

    def spec(self, obj: Object) -> dict[str, Any]:
        """The spec as it was written. Raises `Refusal` `NotFound` when the object is removed meanwhile."""
        with self.reading(obj):
            return json.loads(self.payloads.get(scope_of(obj), obj.spec))

    @contextmanager
    def reading(self, obj: Object) -> Iterator[None]:
        """Around reads of what belongs to an object, which may be removed under the reader's hands.

        Raises `Refusal` `NotFound` then, or `PayloadExpired` when its texts have expired; what is missing of an object that stays is a `CorruptRow` still.
        """
        try:
            yield
        except CorruptRow:
            if self.check_there(obj).expired_at is not None:
                raise expired(obj.key.name) from None
            raise

    def check_there(self, obj: Object) -> Object:
        """The object as it is now. Raises `Refusal` `NotFound` when an object that was read is removed by now, or is being removed."""
        now = self.journal.object(obj.key)
        if now is None or now.uid != obj.uid or now.deleted_at is not None:
            raise missing(obj.key.kind, obj.key.name)
        return now

    def manifest(self, obj: Object) -> Manifest:
        """The object as its writer would send it."""
        return Manifest(obj.key.kind, obj.key.name, self.spec(obj), obj.labels)

    def specs(self, objects: Sequence[Object]) -> list[dict[str, Any] | None]:
        """The specs in the same order, None for an object that is removed meanwhile.

        Those that stand outside their rows are fetched side by side.
        """
        if sum(not isinstance(obj.spec, Inline) for obj in objects) < 2:
            return [self._spec_if_there(obj) for obj in objects]
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(self._spec_if_there, objects))

    def _spec_if_there(self, obj: Object) -> dict[str, Any] | None:
        try:
            return self.spec(obj)
        except Refusal:
            return None

    def revise(self, old: Object, manifest: Manifest, *more: Operation, exact: bool = False) -> Outcome:
        """The object with the manifest's spec and labels; what means the same changes nothing.

        `more` is what the kind keeps beside it and changes with it.

        `exact`: the manifest's version must be the stored one even when nothing changes. Raises `Refusal`
        `Conflict` for a version that is not the stored one, `ConditionFailed` when the object changed since.
        """
        spec = self.spec(old)
        labels = old.labels if manifest.labels is None else manifest.labels
        new_spec = not same(spec, manifest.spec)
        if exact or new_spec or labels != old.labels:
            self.check_version(old, manifest)
        if not new_spec and labels == old.labels:
            return Outcome(old, spec)
        now = self.clock.now()
        text = self.payloads.put(scope_of(old), as_text(manifest.spec)) if new_spec else old.spec
        new = replace(
            old,
            spec=text,
            labels=labels,
            generation=old.generation + (1 if new_spec else 0),
            version=next_version(old.version, now),
        )
        self.journal.objects.replace(old, new, now, *more)
        return Outcome(new, manifest.spec if new_spec else spec)

    def check_version(self, old: Object, manifest: Manifest) -> None:
        """Raises `Refusal` `Conflict` when the manifest was made from another version than the stored one."""
        if manifest.version not in (None, str(old.version)):
            message = (
                f"{old.key.kind} {old.key.name!r} was changed since version {manifest.version[:40]}; "
                "read it again and repeat your change"
            )
            raise Refusal("Conflict", message, kind=old.key.kind, name=old.key.name)


def head_of(journal: Journal, obj: Object) -> Conversation:
    """The conversation of a run. Raises `CorruptRow` when it is missing: the run is removed, or broken."""
    head = journal.conversation(obj.uid)
    if head is None:
        raise CorruptRow(f"AgentRun {obj.key.name!r} ({obj.uid}) has no conversation")
    return head


def key_of(place: Place, kind: str, name: str) -> ObjectKey:
    return ObjectKey(place.org, place.project, kind, name)


def scope_of(obj: Object) -> Scope:
    """Where an object's long texts stand; a run's uid is its conversation's id."""
    return Scope(obj.key.org, obj.uid)


def as_text(spec: dict[str, Any]) -> str:
    """A spec as it is stored."""
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":"))


def missing(kind: str, name: str) -> Refusal:
    name = name[:LONGEST_NAME]
    return Refusal("NotFound", f"there is no {kind} {name!r} in this project", kind=kind, name=name)


def expired(name: str) -> Refusal:
    message = f"the texts of AgentRun {name!r} were kept for 30 days after its end and are gone; its steps, times and costs stay"
    return Refusal("PayloadExpired", message, kind="AgentRun", name=name)


def exists(kind: str, name: str) -> Refusal:
    instead = (
        "or delete it first: what a run is to do cannot change"
        if kind == "AgentRun"
        else "or apply to change it"
    )
    message = f"{kind} {name!r} exists; take another name, {instead}"
    return Refusal("AlreadyExists", message, kind=kind, name=name)


def contested(kind: str, name: str) -> Refusal:
    message = f"{kind} {name!r} is being changed by others again and again; nothing was stored, try again"
    return Refusal("Conflict", message, kind=kind, name=name)
