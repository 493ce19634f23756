"""Logging in by AWS identity: from a signed request to a key that lives for some hours (NODQ-98)."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nodus_core.access.door import Place
from nodus_core.access.grant import Grant, Rate
from nodus_core.access.identities import Identities, normalised
from nodus_core.access.limits import Limits
from nodus_core.access.signed_calls import Judge
from nodus_core.conversations.api_keys import ApiKeys
from nodus_core.conversations.races import MOST_TRIES
from nodus_core.conversations.shelf import Outcome
from nodus_core.journal.identities import Identity, IdentityRows
from nodus_core.journal.receipts import binds, remember
from nodus_core.kernel.errors import ConditionFailed, Refusal, TerminalError
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Receipt
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.login import DEFAULT_TTL, LoginSpec
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata

RATE = Rate(per_second=1, burst=10)
"""Logins from one address: each may cost a call to AWS, and needs no key."""

COUNTED = timedelta(minutes=5)
"""How long an address is remembered: longer than it takes until all of its burst is there again."""

_NETWORK = 64
"""Bits of an IPv6 address that tell callers apart: whoever has one has the whole network of them."""

_NAME_BYTES = 6


@dataclass(frozen=True)
class Logins:
    """Use cases of whoever has no key yet."""

    keys: ApiKeys
    rows: IdentityRows
    identities: Identities
    judge: Judge
    limits: Limits

    def log_in(self, asked: LoginSpec, organization: str | None, source: str) -> dict[str, Any]:
        """The Login with its token, as it is answered.

        Args:
            asked: what the body says.
            organization: what the header `Nodus-Org` says.
            source: the address that the call comes from, which counts.

        Raises `Refusal`: `TooManyRequests`, `Invalid`, `BadRequest` without an organization where several know the
        identity, `Unauthorized` for what AWS or this server does not accept, `Forbidden` for an identity that is not
        mapped; `RetryableError` when AWS does not answer.
        """
        self.limits.spend(counted(source), RATE, whose="logins from this address", kept=COUNTED)
        org = _agreed(asked.organization, organization)
        call = self.judge.judge(asked.aws, self._now())
        receipt = Receipt(digest(f"login {call.signature}"), call.signature, "{}", self._now())
        self._check_unused(receipt)
        said = self.identities.whose(call)
        arn = normalised(said)
        if arn is None:
            raise TerminalError(f"AWS named an identity that is none: {said[:200]!r}")
        mapped = _chosen(self.rows.of(arn), arn, org)
        return _answer(asked, mapped, self._key(mapped, asked.ttl or DEFAULT_TTL, receipt))

    def _key(self, mapped: Identity, ttl: str, receipt: Receipt) -> Outcome:
        """A new key, in one commit with the receipt by which the signed request is spent."""
        place = Place(mapped.org, "", mapped.arn, Grant(mapped.permissions, mapped.projects))
        spec = {"permissions": list(mapped.permissions), "projects": list(mapped.projects), "ttl": ttl}
        for _ in range(MOST_TRIES):
            name = f"login-{self.keys.entropy(_NAME_BYTES).hex()}"
            try:
                spent = remember(receipt, self._now())
                return self.keys.make(place, Manifest(self.keys.kind, Metadata(name), spec), None, spent)
            except ConditionFailed:
                self._check_unused(receipt)
        raise Refusal("Conflict", "no key could be made; sign a new request and try again")

    def _check_unused(self, receipt: Receipt) -> None:
        known = self.keys.shelf.journal.receipt(receipt.key)
        if known is not None and binds(known, self._now()):
            message = "this signed request was used before, and each logs in once; sign a new one"
            raise Refusal("Unauthorized", message)

    def _now(self) -> datetime:
        return self.keys.shelf.clock.now()


def counted(source: str) -> str:
    """Under which name the logins from an address are counted."""
    try:
        address = ipaddress.ip_address(source.partition("%")[0])
    except ValueError:  # API Gateway says what it is, whatever that may be
        return digest(f"login {source}")
    if isinstance(address, ipaddress.IPv6Address):
        network = ipaddress.ip_network((address, _NETWORK), strict=False)
        return digest(f"login {address.ipv4_mapped or network}")
    return digest(f"login {address}")


def _agreed(in_body: str | None, in_header: str | None) -> str | None:
    if in_body is not None and in_header is not None and in_body != in_header:
        raise Refusal("BadRequest", "spec.organization and the header Nodus-Org name two organizations")
    return in_body or in_header


def _chosen(known: list[Identity], arn: str, org: str | None) -> Identity:
    """The mapping that is meant. What other organizations exist, or know the identity, is not told."""
    fitting = [identity for identity in known if org in (None, identity.org)]
    if not fitting:
        where = "any organization" if org is None else f"organization {org[:63]!r}"
        message = f"{arn} is not mapped to {where}; ask the operator to map it (MapIdentity)"
        raise Refusal("Forbidden", message)
    if len(fitting) > 1:
        names = ", ".join(identity.org for identity in fitting)
        raise Refusal("BadRequest", f"name one in spec.organization: {arn} is mapped to {names}")
    return fitting[0]


def _answer(asked: LoginSpec, mapped: Identity, made: Outcome) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Login",
        "metadata": {},
        "spec": {"organization": mapped.org, "ttl": asked.ttl or DEFAULT_TTL},
        "status": {
            "token": made.object.status["token"],
            "expiresAt": made.spec["expiresAt"],
            "apiKey": made.object.key.name,
            "identity": mapped.arn,
            "projects": list(mapped.projects),
            "permissions": list(mapped.permissions),
        },
    }
