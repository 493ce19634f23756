"""Asks about files: each is done by a process of the commands' user, as their own requests are."""

import asyncio
from collections.abc import Mapping

from sandboxd.asks import Handler
from sandboxd.files import FileDesk
from sandboxd.requests import Fields
from sandboxd.results import Result

MOST_ENTRIES = 500
MOST_AT_ONCE = 16


class FileAsks:
    """What people ask about the files of a sandbox."""

    def __init__(self, files: FileDesk) -> None:
        self._files = files
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Who does which kind."""
        return {"list": self._list}

    async def _list(self, fields: Fields) -> Result:
        header = {
            "kind": "list",
            "path": fields.path("path"),
            "after": fields.text("after", ""),
            "limit": min(fields.whole("limit", MOST_ENTRIES), MOST_ENTRIES),
        }
        async with self._slots:
            return await self._files.work(header, changes=False)
