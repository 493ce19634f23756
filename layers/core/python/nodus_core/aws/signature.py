"""Signature Version 4 for requests whose headers are always the same.

botocore's signer walks any request's headers and derives the signing key anew each time, which is a fifth of
what a journal write costs here; a test holds the two against each other.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime

from botocore.credentials import ReadOnlyCredentials

CONTENT_TYPE = "application/x-amz-json-1.0"

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass
class Signer:
    """Signs POST requests to `/` of one service in one region; safe to share between threads."""

    service: str
    region: str
    host: str
    """As the Host header has it: with the port, unless it is the scheme's own."""
    _keys: dict[tuple[str, str], bytes] = field(default_factory=dict, init=False, repr=False)

    def headers(
        self, credentials: ReadOnlyCredentials, target: str, content: bytes, now: datetime
    ) -> dict[str, str]:
        """All headers to send: type, host, date, target, session token if there is one, and the signature.

        `target` is the value of X-Amz-Target, `now` the present in UTC.
        """
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        # In the order of their names, as the canonical request has them.
        signed = {"content-type": CONTENT_TYPE, "host": self.host, "x-amz-date": stamp}
        if credentials.token:
            signed["x-amz-security-token"] = credentials.token
        signed["x-amz-target"] = target
        names = ";".join(signed)
        lines = "".join([f"{name}:{value}\n" for name, value in signed.items()])
        canonical = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(content).hexdigest()}"
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key(credentials.secret_key, stamp[:8]), text.encode(), "sha256").hex()
        signed["authorization"] = (
            f"{_ALGORITHM} Credential={credentials.access_key}/{scope},"
            f" SignedHeaders={names}, Signature={signature}"
        )
        return signed

    def _key(self, secret: str, day: str) -> bytes:
        """The signing key of a day; the one of another day or secret is forgotten."""
        key = self._keys.get((secret, day))
        if key is None:
            key = f"AWS4{secret}".encode()
            for part in (day, self.region, self.service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._keys = {(secret, day): key}
        return key
