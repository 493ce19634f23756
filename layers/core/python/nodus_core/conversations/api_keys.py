"""ApiKeys: their objects, each with the row that the door reads, in one commit (NOD-467, NODQ-96).

A token leaves in the answer that makes its key and nowhere else: object and receipt know only its beginning.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from nodus_core.access import tokens
from nodus_core.access.door import Place
from nodus_core.access.grant import DEFAULT_RATE, Grant, Rate
from nodus_core.access.permissions import EVERYTHING, ROLES, SCOPES, is_permission
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.shelf import Outcome, Shelf, as_text, key_of
from nodus_core.journal.access import AccessKey, key_gone, key_row
from nodus_core.journal.payloads import Scope
from nodus_core.journal.rates import Rates, rate_gone
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import Cause, CorruptRow, Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Object, ValueRef
from nodus_core.kernel.text import Inline
from nodus_core.kernel.times import stamp
from nodus_core.resources.api_key import ApiKeySpec, with_expiry
from nodus_core.resources.manifest import Manifest, check_spec
from nodus_core.resources.refusals import invalid

KIND = "ApiKey"
LATEST = timedelta(days=3653)
"""Ten years: what is to live longer is to live until it is revoked."""


@dataclass(frozen=True)
class ApiKeys(Definitions):
    """Use cases of ApiKeys. Each raises `Refusal`; a refusal has stored nothing.

    `rate` is that of a key that names none, `entropy` gives random bytes. `shows_tokens`: a new token is shown, as it
    is stored.
    """

    kind: str = KIND
    rate: Rate = field(default=DEFAULT_RATE, kw_only=True)
    entropy: Callable[[int], bytes] = field(default=secrets.token_bytes, kw_only=True)
    shows_tokens: bool = field(default=True, kw_only=True)

    def shown(self, manifest: Manifest, obj: Object) -> dict[str, Any]:
        """The spec with its end as a moment."""
        return with_expiry(manifest.spec, obj.created_at)

    def make(self, place: Place, manifest: Manifest, promised: Promise | None, *more: Operation) -> Outcome:
        """One try of a new key, whose token stands in the outcome's status. `more` is stored with it.

        `Invalid` for words that are none and for an end in the past, `Forbidden` for more than the maker holds.
        """
        now = self.shelf.clock.now()
        spec = check_spec(KIND, manifest.name, manifest.spec)
        if not isinstance(spec, ApiKeySpec):
            raise TypeError(f"{manifest.kind} is no key")
        check_words(manifest.name, spec)
        wanted = self._wanted(manifest.name, spec, now)
        _check_held(manifest.name, place.grant, wanted)
        token, uid = tokens.issue(self.entropy), self.ids.fresh("apikey")
        scope, said = Scope(place.org, uid), manifest.metadata
        fixed = with_expiry(manifest.spec, now)
        obj = Object(
            key=key_of(place, KIND, manifest.name),
            uid=uid,
            version=0,
            generation=1,
            spec=Inline(""),
            created_at=now,
            status={"prefix": token[: tokens.SHOWN], "createdBy": place.caller},
            labels=said.labels or {},
            value=ValueRef("1", digest(token)),
        )
        with self.shelf.making(scope):
            notes = self.shelf.noted(scope, said.annotations)
            obj = replace(obj, spec=self.shelf.payloads.put(scope, as_text(fixed)), annotations=notes)
            made = self.commit(obj, manifest, promised, key_row(_row(obj, wanted, spec)), *more)
        shown = {**obj.status, "token": token} if self.shows_tokens else obj.status
        return replace(made, object=replace(made.object, status=shown))

    def revise(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """The key with other labels. `Invalid` for another spec: what was given does not grow behind its maker."""
        fixed = replace(manifest, spec=with_expiry(manifest.spec, old.created_at))
        return super().revise(old, fixed, exact=exact)

    def status(self, old: Object) -> Mapping[str, Any]:
        """With its last use."""
        return with_last_use(self.shelf, [old])[0]

    def removed(self, old: Object) -> Sequence[Operation]:
        """The row that the door reads: from this commit on the key works for 30 s at most."""
        token_hash = _hash_of(old)
        return key_gone(token_hash), rate_gone(token_hash)

    def _wanted(self, name: str, spec: ApiKeySpec, now: datetime) -> Grant:
        try:
            expiry = spec.expiry(now)
        except OverflowError:
            expiry = datetime.max.replace(tzinfo=now.tzinfo)
        if expiry is not None and not now < expiry <= now + LATEST:
            causes = (Cause("spec.expiresAt", f"must lie ahead, by {LATEST.days} days at most"),)
            raise invalid(KIND, name, causes)
        limit = spec.rate_limit
        rate = Rate(
            (limit and limit.requests_per_second) or self.rate.per_second,
            (limit and limit.burst) or self.rate.burst,
        )
        return Grant(spec.words, tuple(spec.projects), expiry, rate)


def with_last_use(shelf: Shelf, objects: Sequence[Object]) -> list[dict[str, Any]]:
    """The statuses of keys, with when each was used last as far as it is known."""
    uses = Rates(shelf.journal.writer).last_uses([_hash_of(obj) for obj in objects])
    return [
        obj.status if used is None else {**obj.status, "lastUsedAt": stamp(used)}
        for obj, used in zip(objects, uses, strict=True)
    ]


def _row(obj: Object, wanted: Grant, spec: ApiKeySpec) -> AccessKey:
    limit = spec.rate_limit
    return AccessKey(
        token_hash=_hash_of(obj),
        name=obj.key.name,
        org=obj.key.org,
        projects=wanted.projects,
        permissions=wanted.permissions,
        created_at=obj.created_at,
        expires_at=wanted.expires_at,
        requests_per_second=limit and limit.requests_per_second,
        burst=limit and limit.burst,
    )


def _hash_of(obj: Object) -> str:
    if obj.value is None:
        raise CorruptRow(f"ApiKey {obj.key.name!r} ({obj.uid}) does not say which token is its")
    return obj.value.digest


def check_words(name: str, spec: ApiKeySpec) -> None:
    """Raises `Refusal` `Invalid` naming the permissions that are none."""
    unknown = [index for index, word in enumerate(spec.permissions or ()) if not is_permission(word)]
    if unknown:
        known = f"must be one of {', '.join((EVERYTHING, *ROLES, *SCOPES))}"
        raise invalid(KIND, name, tuple(Cause(f"spec.permissions[{index}]", known) for index in unknown))


def _check_held(name: str, own: Grant, wanted: Grant) -> None:
    causes = own.excess(wanted)
    if causes:
        listed = "; ".join(f"{cause.field}: {cause.message}" for cause in causes)
        message = f"a key gives no more than it holds itself: {listed}"
        raise Refusal("Forbidden", message, causes=causes, kind=KIND, name=name)
