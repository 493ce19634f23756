"""Bearer tokens: 32 random bytes behind a prefix by which a leaked one is recognised. Only hashes are stored."""

import base64
import re
from collections.abc import Callable

PREFIX = "nodus_"
BYTES = 32
LONGEST = 512
"""Characters that are looked at; no token of ours is longer."""
SHOWN = 12
"""Characters by which people tell tokens apart: the prefix, and 36 of 256 random bits."""

_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")


def issue(entropy: Callable[[int], bytes]) -> str:
    """A new token, urlsafe. `entropy` gives as many random bytes as it is asked for."""
    return PREFIX + base64.urlsafe_b64encode(entropy(BYTES)).rstrip(b"=").decode()


def bearer(authorization: str | None) -> str | None:
    """The token of an `Authorization` header; None when it carries none."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and 0 < len(token) <= LONGEST else None


def is_token(text: str) -> bool:
    """Whether the text may be one of ours: nothing is looked up for what cannot be."""
    return _TOKEN.fullmatch(text) is not None
