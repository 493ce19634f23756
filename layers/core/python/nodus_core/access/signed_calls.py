"""What may be sent to AWS in somebody's name: GetCallerIdentity, to STS, signed for this server, now.

The client names the address, so it is compared whole with what an STS endpoint is called and never followed
anywhere else; the client signs for one server, so what another one was sent is of no use here (NODQ-98).
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.resources.login import BODY, SignedCall
from nodus_core.resources.refusals import invalid

WINDOW = timedelta(minutes=15)
"""How far a signature's time may lie from now."""

SERVER = "x-nodus-server"
_FORM = "application/x-www-form-urlencoded; charset=utf-8"
_MUST_BE_SIGNED = frozenset({"host", "x-amz-date", SERVER})
# `host` and `content-length` are made from the address and the body.
_MADE = frozenset({"host", "content-length"})
_MAY_BE_SIGNED = _MUST_BE_SIGNED | _MADE | {"content-type", "x-amz-content-sha256", "x-amz-security-token"}
_REGION = r"[a-z]{2}(?:-[a-z]+){1,2}-\d{1,2}"
_STS = re.compile(
    rf"https://sts(?:\.{_REGION})?\.amazonaws\.com/?|https://sts\.cn-[a-z]+-\d\.amazonaws\.com\.cn/?",
    re.ASCII,
)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=\w{16,128}/\d{8}/[a-z0-9-]{1,40}/sts/aws4_request, ?"
    r"SignedHeaders=([a-z0-9;-]{1,500}), ?Signature=([0-9a-f]{64})",
    re.ASCII,
)


@dataclass(frozen=True)
class Judged:
    """A call that may be sent, as it is to be sent. `signature` is its own, and nobody else's."""

    url: str
    headers: dict[str, str]
    body: bytes
    signature: str


@dataclass(frozen=True)
class Judge:
    """`servers` are this server's names; `sts` is the one address of STS, where it is not AWS's own."""

    servers: frozenset[str]
    sts: str | None = None

    def judge(self, call: SignedCall, now: datetime) -> Judged:
        """The call as it may be sent.

        Raises `Refusal`: `Invalid` naming what is not as it must be, `Unauthorized` for another server's call and
        for one that is too old.
        """
        headers = _lowered(call.headers)
        if not self._is_sts(call.url):
            raise _wrong("url", "must be https://sts.amazonaws.com/ or https://sts.REGION.amazonaws.com/")
        found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
        if found is None:
            raise _wrong("headers.Authorization", "must be a signature of version 4 for the service sts")
        signed = frozenset(found.group(1).split(";"))
        _check_signed(signed, headers)
        if headers[SERVER] not in self.servers:
            message = f"the request is signed for {headers[SERVER][:253]!r}, which is not this server"
            raise Refusal("Unauthorized", message)
        _check_time(headers["x-amz-date"], now)
        sent = {name: headers[name] for name in sorted(signed - _MADE)}
        sent.setdefault("content-type", _FORM)
        sent["authorization"] = headers["authorization"]
        url = call.url if call.url.endswith("/") else f"{call.url}/"
        return Judged(url, sent, BODY.encode(), found.group(2))

    def _is_sts(self, url: str) -> bool:
        if self.sts is not None:
            return url.rstrip("/") == self.sts.rstrip("/")
        return _STS.fullmatch(url) is not None


def server_name(address: str) -> str:
    """What the header `X-Nodus-Server` calls the server at an address: its host, with a port that is not usual."""
    parts = urlsplit(address)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"


def _lowered(headers: dict[str, str]) -> dict[str, str]:
    lowered = {name.lower(): value for name, value in headers.items()}
    if len(lowered) != len(headers):
        raise _wrong("headers", "must name each header once")
    return lowered


def _check_signed(signed: frozenset[str], headers: dict[str, str]) -> None:
    missing = sorted(_MUST_BE_SIGNED - signed)
    if missing:
        raise _wrong("headers.Authorization", f"must sign {', '.join(missing)} as well")
    foreign = sorted(signed - _MAY_BE_SIGNED)
    if foreign:
        raise _wrong("headers.Authorization", f"must not sign {', '.join(foreign)}")
    absent = sorted(signed - _MADE - headers.keys())
    if absent:
        raise _wrong("headers", f"must hold {', '.join(absent)}, which is signed")


def _check_time(text: str, now: datetime) -> None:
    try:
        at = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise _wrong("headers.X-Amz-Date", "must be a time such as 20300101T000000Z") from None
    if abs(now - at) > WINDOW:
        message = "the request was signed more than 15 minutes from now; sign a new one (is the clock right?)"
        raise Refusal("Unauthorized", message)


def _wrong(field: str, message: str) -> Refusal:
    return invalid("Login", None, (Cause(f"spec.aws.{field}", message),))
