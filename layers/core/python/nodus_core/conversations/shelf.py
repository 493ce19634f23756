"""What the kinds share in storage: finding an object, its spec's text, changing it under its version."""

import base64
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.sources import NOTHING_ALLOWED, Allowed
from nodus_core.journal.journal import Journal
from nodus_core.journal.objects import versioned
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock, Ids
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, Refusal, RetryableError
from nodus_core.kernel.objects import AGENT_RUN, Conversation, Object, ObjectKey
from nodus_core.kernel.text import Stored, Text
from nodus_core.resources.fields import LONGEST_NAME, is_name
from nodus_core.resources.kinds import BY_NAME
from nodus_core.resources.manifest import Manifest, check_changed
from nodus_core.resources.metadata import GENERATED, Metadata
from nodus_core.resources.patch import same
from nodus_core.resources.selectors import selectable

_READERS = 16

log = logging.getLogger(__name__)

Texts = tuple[dict[str, Any], dict[str, str]]
"""What stands of an object in texts: its spec and its annotations."""


@dataclass(frozen=True)
class Outcome:
    """What a call came to. `spec` is what the person wrote; `replayed`: an idempotency key's first outcome.

    `removed`: the object is no more.
    """

    object: Object
    spec: dict[str, Any] = field(repr=False)
    created: bool = False
    replayed: bool = False
    removed: bool = False


@dataclass(frozen=True)
class Shelf:
    """Objects of one journal with their specs. `allowed` is what the operator lets projects read."""

    journal: Journal
    payloads: Payloads
    clock: Clock
    allowed: Allowed = NOTHING_ALLOWED

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
        metadata = Metadata(obj.key.name, dict(obj.labels), self.annotations(obj))
        return Manifest(obj.key.kind, metadata, self.spec(obj))

    def annotations(self, obj: Object) -> dict[str, str]:
        """What others note on the object. Raises `Refusal` `NotFound` when it is removed meanwhile."""
        if obj.annotations is None:
            return {}
        with self.reading(obj):
            return json.loads(self.payloads.get(scope_of(obj), obj.annotations))

    def noted(self, scope: Scope, annotations: Mapping[str, str] | None) -> Text | None:
        """Annotations as they stand in a row."""
        return self.payloads.put(scope, as_text(dict(annotations))) if annotations else None

    @contextmanager
    def making(self, scope: Scope) -> Iterator[None]:
        """Around what stores a new object's texts and then makes it: what is not made leaves no texts behind.

        Where it is not known whether it was made (`RetryableError`), they stay: a row may name them.
        """
        try:
            yield
        except RetryableError:
            raise
        except Exception:
            self.forget(scope)
            raise

    def forget(self, scope: Scope) -> None:
        """Removes the texts of an object that is not there. What fails here is logged and hides no other error."""
        try:
            self.payloads.delete_scope(scope)
        except Exception:  # no row names them: only the space that they take is left
            log.exception("texts of %s in %s are left over", scope.id, scope.org)

    def texts(self, objects: Sequence[Object]) -> list[Texts | None]:
        """Specs and annotations in the same order, None for an object that is removed meanwhile.

        Those that stand outside their rows are fetched side by side.
        """
        outside = [obj for obj in objects for text in (obj.spec, obj.annotations) if isinstance(text, Stored)]
        if len(outside) < 2:
            return [self._texts_if_there(obj) for obj in objects]
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(self._texts_if_there, objects))

    def _texts_if_there(self, obj: Object) -> Texts | None:
        try:
            return self.spec(obj), self.annotations(obj)
        except Refusal:
            return None

    def revise(self, old: Object, manifest: Manifest, *more: Operation, exact: bool = False) -> Outcome:
        """The object with the manifest's spec, labels and annotations; what means the same changes nothing.

        `more` is what the kind keeps beside it and changes with it.

        `exact`: the manifest's version must be the stored one even when nothing changes. Raises `Refusal`
        `Conflict` for a version that is not the stored one, `Invalid` for a change that the kind does not allow,
        `ConditionFailed` when the object changed since.
        """
        spec = self.spec(old)
        new_spec = not same(spec, manifest.spec)
        if exact or new_spec or self.is_renoted(old, manifest.metadata):
            self.check_seen(old, manifest.metadata)
        else:
            return Outcome(old, spec)
        new = self.renoted(old, manifest.metadata)
        if new_spec:
            check_changed(old.key.kind, old.key.name, spec, manifest.spec)
            text = self.payloads.put(scope_of(old), as_text(manifest.spec))
            new = replace(new, spec=text, selectable=selectable(manifest.spec), generation=old.generation + 1)
        if new == old:
            return Outcome(old, spec)
        now = self.clock.now()
        new = versioned(replace(new, revised_at=now) if new_spec else new, now)
        self.journal.objects.replace(old, new, now, *more)
        return Outcome(new, manifest.spec if new_spec else spec)

    def is_renoted(self, old: Object, said: Metadata) -> bool:
        """Whether other labels or annotations are said than the object has."""
        return said.labels not in (None, old.labels) or (
            said.annotations is not None and said.annotations != self.annotations(old)
        )

    def renoted(self, old: Object, said: Metadata) -> Object:
        """The object with the labels and annotations that are said; what nothing is said about stays."""
        if not self.is_renoted(old, said):
            return old
        notes = old.annotations if said.annotations is None else self.noted(scope_of(old), said.annotations)
        return replace(old, labels=old.labels if said.labels is None else said.labels, annotations=notes)

    def check_seen(self, old: Object, said: Metadata) -> None:
        """Raises `Refusal` `Conflict` when the writer has seen another version, or another object, than is stored."""
        kind, name = old.key.kind, old.key.name
        if said.uid not in (None, old.uid):
            message = f"{kind} {name!r} has another uid: it was deleted and made again; read it again"
            raise Refusal("Conflict", message, kind=kind, name=name)
        if said.version not in (None, str(old.version)):
            message = (
                f"{kind} {name!r} was changed since version {said.version[:40]}; "
                "read it again and repeat your change"
            )
            raise Refusal("Conflict", message, kind=kind, name=name)


def head_of(journal: Journal, obj: Object) -> Conversation:
    """The conversation of a run. Raises `CorruptRow` when it is missing: the run is removed, or broken."""
    head = journal.conversation(obj.uid)
    if head is None:
        raise CorruptRow(f"AgentRun {obj.key.name!r} ({obj.uid}) has no conversation")
    return head


def named(manifest: Manifest, ids: Ids) -> Manifest:
    """The manifest under its name, or under one that is generated anew with each call (`metadata.generateName`)."""
    if manifest.metadata.generate_name is None:
        return manifest
    entropy = hashlib.sha256(ids.fresh("name").encode()).digest()
    return manifest.named(base64.b32encode(entropy).decode()[:GENERATED].lower())


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
    where = "project" if BY_NAME[kind].namespaced else "organization"
    return Refusal("NotFound", f"there is no {kind} {name!r} in this {where}", kind=kind, name=name)


def expired(name: str) -> Refusal:
    message = f"the texts of AgentRun {name!r} were kept for 30 days after its end and are gone; its steps, times and costs stay"
    return Refusal("PayloadExpired", message, kind=AGENT_RUN, name=name)


def check_unseen(manifest: Manifest) -> None:
    """Raises `Refusal` `Conflict` for a new object whose writer has seen one: that one is gone, or is another."""
    said = manifest.metadata
    if said.uid is None and said.version is None:
        return
    message = (
        f"{manifest.kind} {said.name!r} is to be created, and its manifest means one that was there: leave out "
        "metadata.uid and metadata.resourceVersion to make a new one"
    )
    raise Refusal("Conflict", message, kind=manifest.kind, name=said.name or None)


def check_free(manifest: Manifest, wanted: Manifest, *, taken: bool) -> None:
    """Whether a manifest may become a new object, under the name `wanted` has.

    Raises `Refusal`: `AlreadyExists`, `Conflict` for one that was seen before; `ConditionFailed` where a name was
    generated and is taken: another one may be free.
    """
    if taken and manifest.name:
        raise exists(manifest.kind, manifest.name)
    if taken:
        raise ConditionFailed("generate-name", {})
    check_unseen(wanted)


def exists(kind: str, name: str) -> Refusal:
    instead = (
        "or delete it first: what a run is to do cannot change"
        if kind == AGENT_RUN
        else "or apply to change it"
    )
    message = f"{kind} {name!r} exists; take another name, {instead}"
    return Refusal("AlreadyExists", message, kind=kind, name=name)
