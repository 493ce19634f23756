"""Kinds that only say something: created, applied, patched and deleted. Nothing runs because of it (NOD-007)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.access.permissions import SECRETS_READ, allows
from nodus_core.conversations import promises
from nodus_core.conversations.last_cells import last_cells
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.races import look_again
from nodus_core.conversations.shelf import (
    Outcome,
    Shelf,
    as_text,
    check_free,
    check_unseen,
    key_of,
    named,
    scope_of,
)
from nodus_core.journal.objects import versioned
from nodus_core.journal.payloads import Scope
from nodus_core.journal.ports import Ids
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import Object
from nodus_core.kernel.text import Inline
from nodus_core.resources.deletion import ANY, Preconditions
from nodus_core.resources.manifest import Manifest, merged
from nodus_core.resources.selectors import selectable

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Definitions:
    """Use cases of the objects of one kind. Each raises `Refusal`; a refusal has stored nothing.

    A kind that keeps something beside its objects says so by overriding `added`, `changed` and `removed`:
    operations that go into the object's commit. They are asked anew for each try. One whose objects are made or
    changed in another way, or not all shown, overrides `make`, `revise`, `patched`, `shown` and `sweep_up`; one whose
    objects' status is not stored with them, `status`.
    """

    shelf: Shelf
    ids: Ids
    kind: str

    def begun(self, manifest: Manifest) -> dict[str, Any]:
        """The status of a new object; what a replayed create and a rehearsed one show."""
        return {}

    def added(self, obj: Object, manifest: Manifest) -> Sequence[Operation]:
        """What comes with a new object."""
        return ()

    def changed(self, old: Object, manifest: Manifest) -> Sequence[Operation]:
        """What changes when `old` becomes what the manifest says."""
        return ()

    def removed(self, old: Object) -> Sequence[Operation]:
        """What goes with an object."""
        return ()

    def status(self, old: Object) -> Mapping[str, Any]:
        """The status of an object as it is read."""
        return old.status

    def create(self, place: Place, manifest: Manifest, promised: Promise | None = None) -> Outcome:
        """A new object. `AlreadyExists` when the name is taken, `IdempotencyKeyConflict`, `Conflict`."""

        def attempt() -> Outcome:
            wanted = named(manifest, self.ids)
            key = key_of(place, self.kind, wanted.name)
            # The name before the receipt: an equal call that takes both in between is then seen as what it is.
            taken = self.shelf.journal.object(key) is not None
            receipt = promised and promises.kept(self.shelf.journal, promised, self.shelf.clock.now())
            if receipt:
                first = promises.first_outcome(receipt, key, manifest)
                return Outcome(first, self.shown(manifest, first), created=True, replayed=True)
            check_free(manifest, wanted, taken=taken)
            check_may_use(place, wanted)
            return self.make(place, wanted, promised)

        return look_again(self.kind, manifest.name, attempt)

    def apply(self, place: Place, manifest: Manifest) -> Outcome:
        """The object as the manifest has it, created when there is none (NOD-009). `Conflict`."""

        def attempt() -> Outcome:
            old = self.shelf.journal.object(key_of(place, self.kind, manifest.name))
            check_may_use(place, manifest)
            if old is not None:
                return self.revise(old, manifest, exact=False)
            check_unseen(manifest)
            return self.make(place, manifest, None)

        return look_again(self.kind, manifest.name, attempt)

    def patch(self, place: Place, name: str, patch: Mapping[str, Any]) -> Outcome:
        """The object with a merge patch (NOD-471). `NotFound`, `Invalid`, `Conflict`."""

        def attempt() -> Outcome:
            old = self.shelf.find(place, self.kind, name)
            manifest = self.patched(old, place, patch)
            check_may_use(place, manifest)
            return self.revise(old, manifest, exact=True)

        return look_again(self.kind, name, attempt)

    def update(self, place: Place, manifest: Manifest) -> Outcome:
        """The object as the manifest has it, and nothing else of what it was. `NotFound`, `Invalid`, `Conflict`."""

        def attempt() -> Outcome:
            old = self.shelf.find(place, self.kind, manifest.name)
            check_may_use(place, manifest)
            return self.revise(old, manifest.complete(), exact=True)

        return look_again(self.kind, manifest.name, attempt)

    def delete(self, place: Place, name: str, wanted: Preconditions = ANY) -> Outcome:
        """Removes the object; runs keep what they were admitted with (NODQ-58). `NotFound`, `Conflict`."""

        def attempt() -> Outcome:
            old = self.shelf.find(place, self.kind, name)
            wanted.check(old)
            self.end(old)
            self.clear(old)
            return Outcome(old, {}, removed=True)

        return look_again(self.kind, name, attempt)

    def end(self, old: Object) -> None:
        """One try of the commit that ends an object. Raises `ConditionFailed` when it has changed since."""
        self.remove(old, *self.removed(old))

    def remove(self, old: Object, *more: Operation) -> None:
        """The commit that ends an object; `more` goes with it. Raises `ConditionFailed` when it has changed since."""
        cells = last_cells(self.shelf, old, self.status(old))
        self.shelf.journal.objects.remove(old, self.shelf.clock.now(), *more, cells=cells)

    def shown(self, manifest: Manifest, obj: Object) -> dict[str, Any]:
        """The spec of a create that is answered again."""
        return manifest.spec

    def patched(self, old: Object, place: Place, patch: Mapping[str, Any]) -> Manifest:
        """What the merge patch makes of the object. Raises `Refusal` `Invalid`."""
        return merged(self.shelf.manifest(old), place.project, patch)

    def revise(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """One try of a change. Raises `Refusal`, and `ConditionFailed` when the object changed since."""
        return self.shelf.revise(old, manifest, *self.changed(old, manifest), exact=exact)

    def clear(self, old: Object) -> None:
        """Removes what an object that is not, or no longer, has left where no commit reaches.

        The answer was decided by a commit before: whatever fails here, known or not, is logged and changes it no more.
        """
        try:
            self.sweep_up(old)
        except Exception:
            log.exception("%s %s (%s) is gone, and has left something over", self.kind, old.key.name, old.uid)

    def sweep_up(self, old: Object) -> None:
        """What `clear` does. Where it fails, no row names the texts any more: only the space that they take is left."""
        self.shelf.payloads.delete_scope(scope_of(old))

    def make(self, place: Place, manifest: Manifest, promised: Promise | None) -> Outcome:
        """One try of a new object. Raises `ConditionFailed` when the name was taken meanwhile."""
        uid, said = self.ids.fresh(self.kind.lower()), manifest.metadata
        scope, text = Scope(place.org, uid), as_text(manifest.spec)
        obj = Object(
            key=key_of(place, self.kind, manifest.name),
            uid=uid,
            version=0,
            generation=1,
            spec=Inline(""),
            created_at=self.shelf.clock.now(),
            status=self.begun(manifest),
            labels=said.labels or {},
            selectable=selectable(manifest.spec),
        )
        more = self.added(obj, manifest)  # which may refuse it, before anything is stored
        with self.shelf.making(scope):
            notes = self.shelf.noted(scope, said.annotations)
            obj = replace(obj, spec=self.shelf.payloads.put(scope, text), annotations=notes)
            return self.commit(obj, manifest, promised, *more)

    def commit(self, obj: Object, manifest: Manifest, promised: Promise | None, *more: Operation) -> Outcome:
        """The commit that makes a new object, under its first version. Raises `Refusal`, `ConditionFailed`."""
        now = self.shelf.clock.now()
        obj = versioned(obj, now)
        receipt = promises.receipt_of(promised, obj, now) if promised else None
        self.shelf.journal.objects.create(obj, now, *more, receipt=receipt)
        return Outcome(obj, self.shown(manifest, obj), created=True)


def check_may_use(place: Place, manifest: Manifest) -> None:
    """Raises `Refusal` `Forbidden` where an object names Secrets and its writer may not read any.

    Whoever writes what runs beside a value can print it: to name a Secret is to read it.
    """
    if manifest.spec.get("secrets") and not allows(place.grant.permissions, SECRETS_READ):
        message = (
            f"spec.secrets of {manifest.kind} {manifest.name!r} would show values of Secrets to its commands: "
            f"the key needs the permission {SECRETS_READ}"
        )
        raise Refusal("Forbidden", message, kind=manifest.kind, name=manifest.name)
