"""What a client asks of the proxy: a tunnel (CONNECT), or one request in absolute form.

Read strictly: whatever two programs could read in two ways is refused, so that nothing travels to a host that was not
judged.
"""

import asyncio
import re
from dataclasses import dataclass

from .policy import place
from .refusals import Refused

MOST_HEAD = 32 * 1024
MOST_HEADERS = 100

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_VISIBLE = re.compile(rb"[\x21-\x7e]+")
_URL = re.compile(rb"http://([^/?#]*)([/?][^#]*)?(?:#.*)?", re.IGNORECASE)

# Between the client and the proxy only; Host is written anew.
_HOP_BY_HOP = frozenset(
    b"connection host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split()
)

Header = tuple[bytes, bytes]


@dataclass(frozen=True)
class Tunnel:
    """CONNECT to a host and port."""

    host: str
    port: int


@dataclass(frozen=True)
class Forward:
    """One request for a host. `length` is the body's, None: it comes in chunks; `head` is what the host gets."""

    host: str
    port: int
    length: int | None
    head: bytes


async def read_request(reader: asyncio.StreamReader) -> Tunnel | Forward | None:
    """The request at the beginning of a connection; None when there is none.

    Raises:
        Refused: it is not one that the proxy understands.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise _malformed("the request ends in its head") from None
    except asyncio.LimitOverrunError:
        raise _too_large() from None
    if len(head) > MOST_HEAD:
        raise _too_large()
    return parse(head)


def parse(head: bytes) -> Tunnel | Forward:
    """A request's head, the empty line included.

    Raises:
        Refused: see `read_request`.
    """
    first, *lines = head[:-4].split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise _malformed("the request does not begin with METHOD TARGET HTTP/1.1")
    method, target, version = words
    if not _VISIBLE.fullmatch(target):
        raise _malformed("the target holds other than visible ASCII")
    headers = _headers(lines)
    if method == b"CONNECT":
        return Tunnel(*_place(target))
    return _forward(method, target, version, headers)


def _headers(lines: list[bytes]) -> list[Header]:
    if len(lines) > MOST_HEADERS:
        raise _too_large()
    headers: list[Header] = []
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise _malformed("a header is not NAME: VALUE")
        headers.append((match[1], match[2].rstrip(b" \t")))
    return headers


def _forward(method: bytes, target: bytes, version: bytes, headers: list[Header]) -> Forward:
    match = _URL.fullmatch(target)
    if match is None:
        raise _malformed("this is a proxy: it takes CONNECT HOST:PORT, and http:// addresses")
    authority = match[1]
    if b"@" in authority:
        raise _malformed("an address must not hold a user name or password")
    named = b":" in authority.rpartition(b"]")[2]
    host, port = _place(authority if named else authority + b":80")
    path = match[2] or b"/"
    if path.startswith(b"?"):
        path = b"/" + path
    length = _length(headers)
    dropped = _HOP_BY_HOP | {
        word.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for word in value.split(b",")
        # What says how long the body is stays, whatever a client lists: without it the body would be a request.
        if word.strip().lower() not in (b"content-length", b"transfer-encoding")
    }
    shown = f"[{host}]" if ":" in host else host
    kept = [
        b"%s %s %s" % (method, path, version),
        b"Host: " + (shown if port == 80 else f"{shown}:{port}").encode(),
        *(b"%s: %s" % header for header in headers if header[0].lower() not in dropped),
        b"Connection: close",
    ]
    return Forward(host, port, length, b"\r\n".join(kept) + b"\r\n\r\n")


def _length(headers: list[Header]) -> int | None:
    """Bytes of the body; None: it comes in chunks."""
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        if lengths or codings != [b"chunked"]:
            raise _malformed("the length of the body is said in more than one way")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not re.fullmatch(rb"[0-9]{1,18}", lengths[0]):
        raise _malformed("Content-Length is not one number")
    return int(lengths[0])


def _place(text: bytes) -> tuple[str, int]:
    try:
        return place(text.decode("ascii"))
    except ValueError:
        raise _malformed("the target is not a host name or a plain address, and a port") from None


def _malformed(message: str) -> Refused:
    return Refused(400, "malformed", message)


def _too_large() -> Refused:
    return Refused(431, "malformed", f"the head takes more than {MOST_HEAD} bytes or {MOST_HEADERS} headers")
