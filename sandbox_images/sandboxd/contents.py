"""Contents that are too large for an ask or an answer: they go by a store, at addresses that the ask brings.

Each is held in a file of the daemon's meanwhile, that has no name: what is sent is what stood there at one moment,
and what is fetched is known to be right before anything is written where commands can see it.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sandboxd.results import Result, failed_result
from sandboxd.transfer import TooLongError, Transfer, TransferError

MOST_AT_ONCE = 4


@dataclass(frozen=True)
class Held:
    """A content in a file without a name."""

    fd: int


class Contents:
    """Sends and fetches contents.

    Args:
        transfer: gives up by itself, since somebody waits for an answer.
        folder: where they are held meanwhile; nobody but the daemon can enter it.
        at_once: how many are held at a time.
    """

    def __init__(self, transfer: Transfer, folder: Path, at_once: int = MOST_AT_ONCE) -> None:
        self._transfer = transfer
        self._folder = folder
        self._slots = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[Held]:
        """Room for one content, as long as it is held."""
        async with self._slots:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                yield Held(file.fileno())

    async def sent(self, held: Held, url: str, size: int) -> Result | None:
        """Sends what is held; None, or why it could not be. It is fine to send the same content again."""
        try:
            await self._transfer.put(url, held.fd, size)
        except (TransferError, OSError) as error:
            return failed_result("store", f"The content could not be sent to the store: {error}")
        return None

    async def fetched(self, held: Held, url: str, size: int, sha256: str) -> Result | None:
        """Fetches a content of that size and hash; None, or why it is not there."""
        try:
            got = await self._transfer.get(url, held.fd, size)
        except TooLongError:
            got = None
        except TransferError as error:
            return failed_result("store", f"The content could not be fetched from the store: {error}")
        except OSError as error:
            return failed_result("no_space", f"The content could not be held: {error.strerror}.")
        if got != (size, sha256):
            return failed_result(
                "wrong_content", "What was uploaded is not what was announced. Upload it again."
            )
        return None
