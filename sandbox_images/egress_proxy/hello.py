"""The first message of TLS, and the name of the server in it."""

import asyncio

from .refusals import Refused

MOST_HELLO = 32 * 1024
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0


async def read_client_hello(reader: asyncio.StreamReader, begun: bytes = b"") -> tuple[bytes, str | None]:
    """The bytes of a ClientHello as they came, and the server's name in it (lower case), None where it has none.

    Args:
        reader: what follows.
        begun: what was read already, at most five bytes.

    Raises:
        Refused: what comes is no ClientHello.
    """
    raw, message = bytearray(begun), bytearray()
    try:
        while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4]):
            header = bytes(begun) + await reader.readexactly(5 - len(begun))
            raw += header[len(begun) :]
            begun = b""
            length = int.from_bytes(header[3:5])
            if header[0] != _HANDSHAKE or header[1] != 3 or not 0 < length <= 16 * 1024:
                raise _no_hello()
            record = await reader.readexactly(length)
            raw += record
            message += record
            if message[0] != _CLIENT_HELLO or len(raw) > MOST_HELLO:
                raise _no_hello()
    except asyncio.IncompleteReadError:
        raise _no_hello() from None
    return bytes(raw), server_name(bytes(message[4 : 4 + int.from_bytes(message[1:4])]))


def server_name(hello: bytes) -> str | None:
    """The name in a ClientHello's body; None where it has none.

    Raises:
        Refused: it is not well-formed, or says more than one name.
    """
    cursor = _Cursor(hello)
    cursor.take(2 + 32)  # version, random
    for size in (1, 2, 1):  # session, cipher suites, compression methods
        cursor.vector(size)
    if cursor.at_end:
        return None
    extensions, names = _Cursor(cursor.vector(2)), []
    while not extensions.at_end:
        kind = int.from_bytes(extensions.take(2))
        content = extensions.vector(2)
        if kind == _SERVER_NAME:
            names += _names(content)
    if len(names) > 1:
        raise _no_hello()
    return names[0] if names else None


def _names(content: bytes) -> list[str]:
    entries, names = _Cursor(_Cursor(content).vector(2)), []
    while not entries.at_end:
        kind = entries.take(1)[0]
        name = entries.vector(2)
        if kind != 0 or not name.isascii():
            raise _no_hello()
        names.append(name.decode().lower())
    return names


class _Cursor:
    """Reads from the front; Refused where there is not enough."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) != count:
            raise _no_hello()
        self._at += count
        return piece

    def vector(self, size: int) -> bytes:
        return self.take(int.from_bytes(self.take(size)))


def _no_hello() -> Refused:
    return Refused(403, "sni", "the tunnel does not begin with a ClientHello of TLS")
