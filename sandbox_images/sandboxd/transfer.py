"""Bytes of any number between a file of the daemon and a presigned address, which is asked again when it fails."""

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import aiohttp

from sandboxd.retry import Backoff

T = TypeVar("T")

CHUNK = 1 << 18
_AGAIN = frozenset({408, 425, 429})

logger = logging.getLogger(__name__)


class TransferError(Exception):
    """The bytes did not get there, and will not; the message holds no address, which is a credential."""


class TooLongError(TransferError):
    """There are more bytes than were to be taken."""


class Transfer:
    """Uses one HTTP session; what is no definite answer is tried again.

    Args:
        tries: after which it gives up; None: it goes on until it is cancelled.
        try_s: seconds that one try may take in all; None: as long as something comes.
    """

    def __init__(
        self, session: aiohttp.ClientSession, tries: int | None = None, try_s: float | None = None
    ) -> None:
        self._session = session
        self._tries = tries
        self._timeout = aiohttp.ClientTimeout(total=try_s, sock_connect=15, sock_read=60)

    async def put(self, url: str, file: int, size: int) -> str:
        """Sends the first `size` bytes of the file at the descriptor; returns their sha256 in hexadecimal.

        Raises `TransferError`.
        """

        async def attempt() -> str:
            digest = hashlib.sha256()
            async with self._session.put(
                url,
                data=_read(file, size, digest),
                headers={"Content-Type": "application/octet-stream", "Content-Length": str(size)},
                timeout=self._timeout,
                allow_redirects=False,
            ) as answer:
                _check(answer.status, (200, 201, 204))
                return digest.hexdigest()

        return await self._tried(attempt)

    async def get(self, url: str, file: int, most: int) -> tuple[int, str]:
        """Writes what is there to the empty file at the descriptor; returns its size and sha256 in hexadecimal.

        Raises `TransferError`, `TooLongError` for more than `most` bytes, and `OSError` where it cannot be written.
        """

        async def attempt() -> tuple[int, str]:
            os.ftruncate(file, 0)
            async with self._session.get(url, timeout=self._timeout, allow_redirects=False) as answer:
                _check(answer.status, (200,))
                return await _write(file, answer.content.iter_chunked(CHUNK), most)

        return await self._tried(attempt)

    async def _tried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        backoff, tries = Backoff(), 0
        while True:
            try:
                return await attempt()
            except _Again as again:
                trouble = str(again)
            except (aiohttp.ClientError, TimeoutError) as error:
                trouble = f"The store could not be reached: {type(error).__name__}."
            tries += 1
            if self._tries is not None and tries >= self._tries:
                raise TransferError(trouble)
            logger.warning("a transfer is tried again: %s", trouble)
            await asyncio.sleep(backoff.failed())


class _Again(Exception):
    """The store may answer something else soon."""


def _check(status: int, fine: tuple[int, ...]) -> None:
    if status not in fine:
        again = status >= 500 or status in _AGAIN
        raise (_Again if again else TransferError)(f"The store answered {status}.")


async def _read(file: int, size: int, digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    offset = 0
    while offset < size:
        part = await asyncio.to_thread(os.pread, file, min(CHUNK, size - offset), offset)
        if not part:
            raise TransferError("The file got shorter while it was sent.")
        digest.update(part)
        offset += len(part)
        yield part


async def _write(file: int, parts: AsyncIterator[bytes], most: int) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    async for part in parts:
        size += len(part)
        if size > most:
            raise TooLongError(f"The store gave more than {most} bytes.")
        digest.update(part)
        await asyncio.to_thread(_all, file, part, size - len(part))
    return size, digest.hexdigest()


def _all(file: int, part: bytes, offset: int) -> None:
    view = memoryview(part)
    while view:
        count = os.pwrite(file, view, offset)
        view, offset = view[count:], offset + count
