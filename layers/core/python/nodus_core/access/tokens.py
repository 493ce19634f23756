"""Bearer tokens: 32 random bytes behind a prefix by which a leaked one is recognised. Only hashes are stored."""

import base64
from collections.abc import Callable

PREFIX = "nodus_"
BYTES = 32
LONGEST = 512
"""Characters that are looked at; no token of ours is longer."""


def issue(entropy: Callable[[int], bytes]) -> str:
    """A new token, urlsafe. `entropy` gives as many random bytes as it is asked for."""
    return PREFIX + base64.urlsafe_b64encode(entropy(BYTES)).rstrip(b"=").decode()


def bearer(authorization: str | None) -> str | None:
    """The token of an `Authorization` header; None when it carries none."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and 0 < len(token) <= LONGEST else None
