"""Which headers pass between a visitor of a preview and a service in a sandbox (decision 33).

What the service says is of untrusted origin, and stands at the address of the API. So nothing of ours goes in, and
out comes only what says something of this one answer, never of the origin that it seems to have.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from nodus_core.resources.media_types import BYTES

Headers = list[tuple[str, str]]

MOST_BYTES = 8 * 1024
"""Of all headers of an answer: API Gateway takes 10 KiB."""

OURS: Mapping[str, str] = {
    # Of an origin of its own, which is nobody's: it reads neither the API nor a console at the same address.
    "Content-Security-Policy": "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address is the secret
    # To that page its own service is another origin. Who may read is settled: who knows the address.
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "*",
}
"""What every answer of a preview has, whatever the service says of it."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""What an HTTP API passes on."""

PREFLIGHT: Mapping[str, str] = {
    "Access-Control-Allow-Methods": ", ".join(METHODS),
    "Access-Control-Allow-Headers": "*",
    "Access-Control-Max-Age": "600",
}

_HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection"),
    }
)
_NOT_IN = _HOP_BY_HOP | {
    *("authorization", "cookie", "content-length", "expect", "forwarded", "host"),
    *("origin", "referer", "via"),
}
_NOT_IN_FROM = ("access-control-", "nodus-", "sec-", "x-amz-", "x-amzn-", "x-forwarded-", "x-nodus-")
_OUT = frozenset(
    {
        *("accept-ranges", "allow", "content-disposition", "content-encoding", "content-language"),
        *("content-range", "content-type", "etag", "last-modified", "location", "retry-after", "vary"),
    }
)
_NOT_OUT = frozenset({"x-content-type-options", "x-dns-prefetch-control", "x-frame-options", "x-request-id"})
# Of a server that an operator has put before the API some name a file or a page of its own, to be sent instead.
_NOT_OUT_FROM = (
    *("x-accel-", "x-amz-", "x-amzn-", "x-forwarded-", "x-lighttpd-", "x-litespeed-", "x-permitted-"),
    *("x-reproxy-", "x-sendfile"),
)
_ONCE = frozenset({"content-type", "location"})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE_IN = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_VALUE_OUT = re.compile(r"[\t\x20-\x7e]*")
_URL = "!$%&'()*+,/:;=?@#[]~"


@dataclass(frozen=True)
class Site:
    """Where a service is, and where it is seen: at `prefix` (a path, without a slash at its end) of a `scheme` and `host`."""

    port: int
    scheme: str
    host: str
    prefix: str

    @classmethod
    def at(cls, address: str, port: int) -> "Site":
        """The site that is seen at this address."""
        parts = urlsplit(address)
        return cls(port, parts.scheme, parts.netloc, parts.path.rstrip("/"))


def to_service(headers: Mapping[str, str], site: Site, body: bytes, method: str) -> Headers:
    """What the service hears of a visitor's headers, whose names are in lower case, and of where it is seen."""
    dropped = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    kept = [
        (name, value)
        for name, value in headers.items()
        if name not in _NOT_IN | dropped
        and not name.startswith(_NOT_IN_FROM)
        and _NAME.fullmatch(name)
        and _VALUE_IN.fullmatch(value)
    ]
    length = [("content-length", str(len(body)))] if body or method in ("POST", "PUT", "PATCH") else []
    return [
        ("host", f"127.0.0.1:{site.port}"),
        *kept,
        *length,
        ("connection", "close"),
        ("x-forwarded-host", site.host),
        ("x-forwarded-prefix", site.prefix),
        ("x-forwarded-proto", site.scheme),
    ]


def to_visitor(headers: Iterable[tuple[str, str]], site: Site) -> dict[str, str]:
    """What a visitor hears of the service's headers, and what every answer has. Names are in lower case but for ours."""
    shown: dict[str, str] = {}
    cached = "private, no-cache"
    for given, value in headers:
        name = given.lower()
        if name == "cache-control" and "no-store" in value.lower():
            cached = "no-store"
        said = _location(value, site) if name == "location" else value.strip()
        if not _passes(name) or said is None or not _VALUE_OUT.fullmatch(said):
            continue
        if name in shown and name in _ONCE:
            continue
        shown[name] = f"{shown[name]}, {said}" if name in shown else said
    # API Gateway would say JSON of what has no type.
    return {"content-type": BYTES, **shown, **OURS, "Cache-Control": cached}


def is_long(headers: Mapping[str, str]) -> bool:
    """Whether there is more of an answer's headers than can be passed on."""
    return sum(len(name) + len(value) for name, value in headers.items()) > MOST_BYTES


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser asks if the page may ask: the service, which takes itself for the origin, knows nothing of it."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def wants_another_protocol(headers: Mapping[str, str]) -> bool:
    """Whether it is the beginning of a WebSocket, or of whatever else is no request with an answer."""
    return "upgrade" in headers or "sec-websocket-key" in headers


def _passes(name: str) -> bool:
    if name in _OUT:
        return True
    own = name.startswith("x-") and name not in _NOT_OUT and not name.startswith(_NOT_OUT_FROM)
    return own and _NAME.fullmatch(name) is not None


def _location(value: str, site: Site) -> str | None:
    """A redirect, below the prefix where it leads back to the service; None for what is no address of the web."""
    try:
        parts = urlsplit(value.strip())
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    if parts.scheme not in ("", "http", "https"):
        return None
    inside = host in ("127.0.0.1", "localhost", "::1", "0.0.0.0") and port == site.port  # noqa: S104 - what it says
    rooted = not parts.netloc and parts.path.startswith("/")
    if not (inside or rooted or parts.netloc == site.host):
        return quote(value.strip(), safe=_URL)
    path = parts.path or "/"
    if not f"{path}/".startswith(f"{site.prefix}/"):
        path = site.prefix + path
    more = f"{'?' if parts.query else ''}{parts.query}{'#' if parts.fragment else ''}{parts.fragment}"
    return quote(path + more, safe=_URL)
