"""Bytes of any number between a file of the daemon and a presigned address, which is asked again when it fails."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator

import aiohttp

from sandboxd.retry import Backoff

CHUNK = 1 << 18
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=60)
_AGAIN = frozenset({408, 425, 429})


class TransferError(Exception):
    """The bytes did not get there, and will not; the message holds no address, which is a credential."""


class Transfer:
    """Uses one HTTP session; `TransferError` is a definite answer, everything else is tried again until cancelled."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def put(self, url: str, file: int) -> tuple[int, str]:
        """Sends the whole file at the descriptor; returns its size and sha256 in hexadecimal."""
        size = os.fstat(file).st_size
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        backoff = Backoff()
        while True:
            digest = hashlib.sha256()
            try:
                async with self._session.put(
                    url,
                    data=_read(file, size, digest),
                    headers=headers,
                    timeout=_TIMEOUT,
                    allow_redirects=False,
                ) as answer:
                    if answer.status in (200, 201, 204):
                        return size, digest.hexdigest()
                    _definite(answer.status)
            except (aiohttp.ClientError, TimeoutError):
                pass  # tried again
            await asyncio.sleep(backoff.failed())

    async def get(self, url: str, file: int, most: int) -> tuple[int, str]:
        """Writes what is there to the empty file at the descriptor; returns its size and sha256 in hexadecimal."""
        backoff = Backoff()
        while True:
            os.ftruncate(file, 0)
            try:
                async with self._session.get(url, timeout=_TIMEOUT, allow_redirects=False) as answer:
                    if answer.status == 200:
                        return await _write(file, answer.content.iter_chunked(CHUNK), most)
                    _definite(answer.status)
            except (aiohttp.ClientError, TimeoutError):
                pass  # tried again
            await asyncio.sleep(backoff.failed())


def _definite(status: int) -> None:
    if status < 500 and status not in _AGAIN:
        raise TransferError(f"The store answered {status}.")


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
            raise TransferError(f"The store gave more than {most} bytes.")
        digest.update(part)
        await asyncio.to_thread(_all, file, part, size - len(part))
    return size, digest.hexdigest()


def _all(file: int, part: bytes, offset: int) -> None:
    view = memoryview(part)
    while view:
        count = os.pwrite(file, view, offset)
        view, offset = view[count:], offset + count
