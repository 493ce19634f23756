"""Contents that are too large for an ask or an answer: they go by a store, at addresses that the ask brings.

Each is held in a file of the daemon's meanwhile, that has no name: what is sent is what stood there at one moment,
and what is fetched is known to be right before anything is written where commands can see it.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from sandboxd.results import Result, failed_result

CHUNK_BYTES = 1024 * 1024
MOST_AT_ONCE = 4
TRIES = 3
_TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=10, sock_read=60)


@dataclass(frozen=True)
class Held:
    """A content in a file without a name."""

    fd: int


class Transfers:
    """Sends and fetches contents.

    Args:
        folder: where they are held meanwhile; nobody but the daemon can enter it.
    """

    def __init__(self, session: aiohttp.ClientSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[Held]:
        """Room for one content, as long as it is held."""
        async with self._slots:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                yield Held(file.fileno())

    async def sent(self, held: Held, url: str, size: int) -> Result | None:
        """Sends what is held; None, or why it could not be. It is fine to send the same content again."""
        trouble = ""
        for attempt in range(TRIES):
            await asyncio.sleep(attempt)
            try:
                async with self._session.put(
                    url,
                    data=_chunks(held.fd, size),
                    headers={"Content-Length": str(size), "Content-Type": "application/octet-stream"},
                    timeout=_TIMEOUT,
                    allow_redirects=False,
                ) as response:
                    if response.status == 200:
                        return None
                    trouble = f"the store answered {response.status}"
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                trouble = f"{type(error).__name__}: {error}"
        return failed_result("store", f"The content could not be sent to the store: {trouble}.")

    async def fetched(self, held: Held, url: str, size: int, sha256: str) -> Result | None:
        """Fetches a content of that size and hash; None, or why it is not there."""
        trouble = ""
        for attempt in range(TRIES):
            await asyncio.sleep(attempt)
            try:
                async with self._session.get(url, timeout=_TIMEOUT, allow_redirects=False) as response:
                    if response.status != 200:
                        trouble = f"the store answered {response.status}"
                        continue
                    return await _taken(held, response, size, sha256)
            except (aiohttp.ClientError, TimeoutError) as error:
                trouble = f"{type(error).__name__}: {error}"
            except OSError as error:
                return failed_result("no_space", f"The content could not be held: {error.strerror}.")
        return failed_result("store", f"The content could not be fetched from the store: {trouble}.")


async def _chunks(fd: int, size: int) -> AsyncIterator[bytes]:
    offset = 0
    while offset < size:
        chunk = await asyncio.to_thread(os.pread, fd, min(CHUNK_BYTES, size - offset), offset)
        if not chunk:
            return
        offset += len(chunk)
        yield chunk


async def _taken(held: Held, response: aiohttp.ClientResponse, size: int, sha256: str) -> Result | None:
    os.ftruncate(held.fd, 0)
    os.lseek(held.fd, 0, os.SEEK_SET)
    seen, count = hashlib.sha256(), 0
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        count += len(chunk)
        if count > size:
            break
        seen.update(chunk)
        await asyncio.to_thread(_write_all, held.fd, chunk)
    if count != size or seen.hexdigest() != sha256:
        return failed_result("wrong_content", "What was uploaded is not what was announced. Upload it again.")
    os.lseek(held.fd, 0, os.SEEK_SET)
    return None


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
