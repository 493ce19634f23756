"""Passing on exactly one request's body: what comes behind it would be a second request, for who knows which host."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from .refusals import Refused

PIECE = 64 * 1024
MOST_LINE = 4096
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n")

Send = Callable[[bytes], Awaitable[None]]


async def pass_on(reader: asyncio.StreamReader, send: Send, length: int | None) -> None:
    """Passes a body of so many bytes on, or one in chunks.

    Raises:
        Refused: the chunks are not well-formed, or the body ends early.
    """
    try:
        if length is None:
            await _chunks(reader, send)
        else:
            await _bytes(reader, send, length)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise _broken() from None


async def _bytes(reader: asyncio.StreamReader, send: Send, length: int) -> None:
    while length:
        piece = await reader.read(min(PIECE, length))
        if not piece:
            raise _broken()
        length -= len(piece)
        await send(piece)


async def _chunks(reader: asyncio.StreamReader, send: Send) -> None:
    while True:
        line = await _line(reader)
        match = _SIZE.fullmatch(line)
        if match is None:
            raise _broken()
        size = int(match[1], 16)
        await send(b"%x\r\n" % size)  # without extensions
        if size == 0:
            break
        await _bytes(reader, send, size)
        if await reader.readexactly(2) != b"\r\n":
            raise _broken()
        await send(b"\r\n")
    for _ in range(100):
        if await _line(reader) == b"\r\n":  # trailers are left out
            await send(b"\r\n")
            return
    raise _broken()


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readuntil(b"\r\n")
    if len(line) > MOST_LINE:
        raise _broken()
    return line


def _broken() -> Refused:
    return Refused(400, "malformed", "the body is not what its head says")
