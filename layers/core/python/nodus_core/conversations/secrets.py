"""Secrets: their values go to the vault, their field names to the journal (NOD-118, NOD-465).

note ──► vault ──► object, which takes the note        a crash in between leaves a note, and the sweeper
object away, leaving a note ──► vault ──► note away    removes the values that nothing names
Changed values become another version beside the old one; the object's commit says which one counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.shelf import Outcome, key_of
from nodus_core.journal.loose_values import left, loose, taken
from nodus_core.journal.objects import versioned
from nodus_core.journal.payloads import Scope
from nodus_core.journal.store import Operation
from nodus_core.journal.vault import ValueGone, Vault, VaultPlace
from nodus_core.kernel.errors import Cause, Refusal, RetryableError
from nodus_core.kernel.objects import Object, ValueRef
from nodus_core.kernel.text import Inline
from nodus_core.resources.document import canonical
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.refusals import invalid
from nodus_core.resources.secret import sealed_digest

KIND = "Secret"
_SHOWN = "{}"
"""The spec of every Secret as it is stored and read: what may be written may not be read."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where `kubectl apply` notes all that it has sent, values included."""

Values = Mapping[str, str]


@dataclass(frozen=True)
class Secrets(Definitions):
    """Use cases of Secrets. Each raises `Refusal`; a refusal has changed nothing."""

    kind: str = KIND
    vault: Vault = field(kw_only=True)

    def create(self, place: Place, manifest: Manifest, promised: Promise | None = None) -> Outcome:
        """A new Secret. `AlreadyExists`, `Invalid` without values, `IdempotencyKeyConflict`, `Conflict`."""
        _required(manifest)
        return super().create(place, manifest, promised)

    def removed(self, old: Object) -> Sequence[Operation]:
        """The note of its values: from this commit on no call can be made with them."""
        return (left(old, self.shelf.clock.now()),)

    def shown(self, manifest: Manifest, obj: Object) -> dict[str, Any]:
        """Nothing: what may be written may not be read."""
        return {}

    def patched(self, old: Object, place: Place, patch: Mapping[str, Any]) -> Manifest:
        """What the patch makes of it; one that changes values names every field."""
        _check_complete(old, patch)
        return super().patched(old, place, patch)

    def make(self, place: Place, manifest: Manifest, promised: Promise | None) -> Outcome:
        """One try of a new Secret, its values first. `Invalid` without values."""
        values, said = _required(manifest), manifest.metadata
        _check_notes(manifest)
        now, uid = self.shelf.clock.now(), self.ids.fresh("secret")
        obj = Object(
            key=key_of(place, KIND, manifest.name),
            uid=uid,
            version=0,
            generation=1,
            spec=Inline(_SHOWN),
            created_at=now,
            status=_status(values),
            labels=said.labels or {},
            annotations=self.shelf.noted(Scope(place.org, uid), said.annotations),
        )
        self.shelf.journal.loose_values.expect(loose(obj), now)
        try:
            version = self.vault.create(vault_place(obj), values)
            obj = replace(obj, value=ValueRef(version, _digest(obj, values)))
            return self.commit(obj, manifest, promised, taken(obj))
        except RetryableError:  # it may have been made
            raise
        except Exception:
            self.clear(obj)
            raise

    def revise(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """The Secret with other labels, other values, or both; the same ones change nothing."""
        _check_notes(manifest)
        values: Values | None = manifest.spec.get("data")
        if values is None or (old.value is not None and _digest(old, values) == old.value.digest):
            return super().revise(old, replace(manifest, spec={}), exact=exact)
        self.shelf.check_seen(old, manifest.metadata)
        new = self.shelf.renoted(old, manifest.metadata)
        try:
            version = self.vault.replace(vault_place(old), values)
        except ValueGone:
            self.shelf.check_there(old)
            message = f"the values of Secret {old.key.name!r} are gone from the vault; delete it and create it again"
            raise Refusal("Conflict", message, kind=KIND, name=old.key.name) from None
        now = self.shelf.clock.now()
        new = replace(
            new,
            value=ValueRef(version, _digest(old, values)),
            status=_status(values),
            revised_at=now,
            generation=old.generation + 1,
        )
        new = versioned(new, now)
        self.shelf.journal.objects.replace(old, new, now)
        return Outcome(new, {})

    def sweep_up(self, old: Object) -> None:
        """Removes the values, whose note stays due, so that the sweeper does it if this fails; and then the texts."""
        Reclaim(self.shelf.journal, self.vault, self.shelf.clock).reclaim(old.uid)
        super().sweep_up(old)


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


def _check_notes(manifest: Manifest) -> None:
    """Refuses a note that would hold the values where everybody who may list Secrets reads them."""
    if LAST_APPLIED in (manifest.metadata.annotations or {}):
        message = "would keep the values readable: use kubectl apply --server-side, or kubectl create"
        raise invalid(KIND, manifest.name, (Cause(f"metadata.annotations.{LAST_APPLIED}", message),))


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
