"""Secrets: their values go to the vault, their field names to the journal (NOD-118, NOD-465).

note ──► vault ──► object, which takes the note        a crash in between leaves a note, and the sweeper
object away, leaving a note ──► vault ──► note away    removes the values that nothing names
Changed values become another version beside the old one; the object's commit says which one counts.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations import promises
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.shelf import MOST_TRIES, Outcome, Shelf, contested, exists, key_of
from nodus_core.journal.loose_values import left, loose, taken
from nodus_core.journal.objects import next_version
from nodus_core.journal.ports import Ids
from nodus_core.journal.vault import ValueGone, Vault, VaultPlace
from nodus_core.kernel.errors import Cause, ConditionFailed, NodusError, Refusal
from nodus_core.kernel.objects import Object, ValueRef
from nodus_core.kernel.text import Inline
from nodus_core.resources.document import canonical
from nodus_core.resources.manifest import Manifest, merged
from nodus_core.resources.refusals import invalid
from nodus_core.resources.secret import sealed_digest

KIND = "Secret"
_SHOWN = "{}"
"""The spec of every Secret as it is stored and read: what may be written may not be read."""

log = logging.getLogger(__name__)

Values = Mapping[str, str]


@dataclass(frozen=True)
class Secrets:
    """Use cases of Secrets. Each raises `Refusal`; a refusal has changed nothing."""

    shelf: Shelf
    vault: Vault
    ids: Ids

    def create(self, place: Place, manifest: Manifest, promised: Promise | None = None) -> Outcome:
        """A new Secret. `AlreadyExists`, `Invalid` without values, `IdempotencyKeyConflict`, `Conflict`."""
        key = key_of(place, KIND, manifest.name)
        values = _required(manifest)
        for _ in range(MOST_TRIES):
            # The name before the receipt: an equal call that takes both in between is then seen as what it is.
            taken_name = self.shelf.journal.object(key) is not None
            receipt = promised and promises.kept(self.shelf.journal, promised, self.shelf.clock.now())
            if receipt:
                return Outcome(
                    promises.first_outcome(receipt, key, manifest), {}, created=True, replayed=True
                )
            if taken_name:
                raise exists(KIND, manifest.name)
            try:
                return self._create(place, manifest, values, promised)
            except ConditionFailed:
                continue
        raise contested(KIND, manifest.name)

    def apply(self, place: Place, manifest: Manifest) -> Outcome:
        """The Secret with the manifest's values, created when there is none; without `data` they stay.

        `Invalid` for a new one without values, `Conflict`.
        """
        for _ in range(MOST_TRIES):
            old = self.shelf.journal.object(key_of(place, KIND, manifest.name))
            try:
                if old is None:
                    return self._create(place, manifest, _required(manifest), None)
                return self._revise(old, manifest, exact=False)
            except ConditionFailed:
                continue
        raise contested(KIND, manifest.name)

    def patch(self, place: Place, name: str, patch: Mapping[str, Any]) -> Outcome:
        """The Secret with a merge patch, which names every field when it changes values. `NotFound`, `Invalid`, `Conflict`."""
        for _ in range(MOST_TRIES):
            old = self.shelf.find(place, KIND, name)
            _check_complete(old, patch)
            manifest = merged(Manifest(KIND, name, {}, old.labels), place.project, patch)
            try:
                return self._revise(old, manifest, exact=True)
            except ConditionFailed:
                continue
        raise contested(KIND, name)

    def delete(self, place: Place, name: str) -> Object:
        """Removes the Secret: from its commit on no call can be made with it. `NotFound`."""
        for _ in range(MOST_TRIES):
            old, now = self.shelf.find(place, KIND, name), self.shelf.clock.now()
            try:
                self.shelf.journal.objects.remove(old, now, left(old, now))
            except ConditionFailed:
                continue
            self._reclaim(old)
            return old
        raise contested(KIND, name)

    def _create(self, place: Place, manifest: Manifest, values: Values, promised: Promise | None) -> Outcome:
        now, uid, journal = self.shelf.clock.now(), self.ids.fresh("secret"), self.shelf.journal
        obj = Object(
            key=key_of(place, KIND, manifest.name),
            uid=uid,
            version=next_version(0, now),
            generation=1,
            spec=Inline(_SHOWN),
            created_at=now,
            status=_status(values),
            labels=manifest.labels or {},
        )
        journal.loose_values.expect(loose(obj), now)
        try:
            version = self.vault.create(vault_place(obj), values)
            obj = replace(obj, value=ValueRef(version, _digest(obj, values)))
            receipt = promises.receipt_of(promised, obj, now) if promised else None
            journal.objects.create(obj, now, taken(obj), receipt=receipt)
        except ConditionFailed:
            self._reclaim(obj)
            raise
        return Outcome(obj, {}, created=True)

    def _revise(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """The Secret with other labels, other values, or both; the same ones change nothing."""
        values: Values | None = manifest.spec.get("data")
        if values is None or (old.value is not None and _digest(old, values) == old.value.digest):
            return self.shelf.revise(old, replace(manifest, spec={}), exact=exact)
        self.shelf.check_version(old, manifest)
        now = self.shelf.clock.now()
        try:
            version = self.vault.replace(vault_place(old), values)
        except ValueGone:
            self.shelf.check_there(old)
            message = f"the values of Secret {old.key.name!r} are gone from the vault; delete it and create it again"
            raise Refusal("Conflict", message, kind=KIND, name=old.key.name) from None
        new = replace(
            old,
            value=ValueRef(version, _digest(old, values)),
            status=_status(values),
            labels=old.labels if manifest.labels is None else manifest.labels,
            generation=old.generation + 1,
            version=next_version(old.version, now),
        )
        self.shelf.journal.objects.replace(old, new, now)
        return Outcome(new, {})

    def _reclaim(self, obj: Object) -> None:
        """Removes the values of a Secret that is not, or no longer; what fails here the sweeper does."""
        try:
            Reclaim(self.shelf.journal, self.vault, self.shelf.clock).reclaim(obj.uid)
        except NodusError as error:
            log.warning("values of Secret %s are left over for the sweeper: %s", obj.uid, error)


def vault_place(obj: Object) -> VaultPlace:
    """Where a Secret's values stand."""
    return VaultPlace(obj.key.org, obj.key.project, obj.uid)


def fields_of(obj: Object) -> tuple[str, ...]:
    """The names of a Secret's fields."""
    return tuple(obj.status.get("fields", ()))


def _status(values: Values) -> dict[str, Any]:
    return {"fields": sorted(values)}


def _digest(obj: Object, values: Values) -> str:
    return sealed_digest(canonical(dict(values)), salt=obj.uid)


def _required(manifest: Manifest) -> Values:
    values: Values | None = manifest.spec.get("data")
    if values is None:
        cause = Cause("spec.data", "is required: field names and their values", "FieldValueRequired")
        raise invalid(KIND, manifest.name, (cause,))
    return values


def _check_complete(old: Object, patch: Mapping[str, Any]) -> None:
    """Refuses to merge into values that cannot be read: what is not named would be lost."""
    spec: Any = patch.get("spec")
    if not isinstance(spec, Mapping) or "data" not in spec:
        return
    data: Any = spec["data"]
    if data is not None and not isinstance(data, Mapping):
        return  # no object at all, as the check of the whole says
    missing = [field for field in fields_of(old) if field not in (data or {})]
    if missing:
        message = f"must name every field, since values cannot be read back: {', '.join(missing)} (null removes one)"
        raise invalid(KIND, old.key.name, (Cause("spec.data", message),))
