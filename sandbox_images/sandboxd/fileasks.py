"""Asks about files: each is done by a process of the commands' user, as their own requests are."""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Any

from sandboxd.asks import Handler
from sandboxd.contents import Contents
from sandboxd.files import FileDesk
from sandboxd.requests import Fields, InvalidRequestError
from sandboxd.results import Result

MOST_ENTRIES = 500
MOST_INLINE_BYTES = 128 * 1024
"""Of a file's bytes in an ask or an answer; more goes by a store."""

MOST_AT_ONCE = 16


class FileAsks:
    """What people ask about the files of a sandbox.

    Args:
        contents: contents that are too large for an ask or an answer.
    """

    def __init__(self, files: FileDesk, contents: Contents) -> None:
        self._files = files
        self._contents = contents
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._changing = asyncio.Lock()
        """Held while something is changed: of two who save the same version, one finds another."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Who does which kind."""
        return {
            "list": self._list,
            "read": self._read,
            "write": self._write,
            "mkdir": self._mkdir,
            "remove": self._remove,
            "move": self._move,
            "send": self._send,
            "fetch": self._fetch,
        }

    async def _list(self, fields: Fields) -> Result:
        header = {
            "kind": "list",
            "path": fields.path("path"),
            "after": fields.text("after", ""),
            "limit": min(fields.whole("limit", MOST_ENTRIES), MOST_ENTRIES),
        }
        return await self._look(header)

    async def _read(self, fields: Fields) -> Result:
        header = {
            "kind": "read",
            "path": fields.path("path"),
            "offset": fields.whole("offset", 0),
            "limit": min(fields.whole("limit", MOST_INLINE_BYTES), MOST_INLINE_BYTES),
            **_versions(fields),
        }
        async with self._slots:
            return await self._files.work(
                header,
                changes=False,
                shape=lambda told, data: {**told, "content": base64.b64encode(data).decode()},
            )

    async def _write(self, fields: Fields) -> Result:
        return await self._change({"kind": "write", **_written(fields)}, _content(fields))

    async def _mkdir(self, fields: Fields) -> Result:
        return await self._change({"kind": "mkdir", "path": fields.path("path")})

    async def _remove(self, fields: Fields) -> Result:
        header = {"kind": "remove", "path": fields.path("path"), "recursive": fields.flag("recursive")}
        return await self._change({**header, **_versions(fields)})

    async def _move(self, fields: Fields) -> Result:
        header = {
            "kind": "move",
            "path": fields.path("path"),
            "to": fields.path("to"),
            "overwrite": fields.flag("overwrite"),
            "createDirs": fields.flag("createDirs"),
            **_versions(fields),
        }
        return await self._change(header)

    async def _send(self, fields: Fields) -> Result:
        url, size = fields.text("url"), fields.whole("size", 0)
        header = {"kind": "copy_out", "path": fields.path("path"), "most": size, **_versions(fields)}
        async with self._contents.holding() as held:
            result = await self._look({**header, "fd": held.fd}, fds=(held.fd,))
            if result["state"] != "exited":
                return result
            return await self._contents.sent(held, url, int(result["size"])) or result

    async def _fetch(self, fields: Fields) -> Result:
        url, sha256, size = fields.text("url"), fields.text("sha256"), fields.whole("size", 0)
        header = {"kind": "write", **_written(fields), "size": size}
        async with self._contents.holding() as held:
            trouble = await self._contents.fetched(held, url, size, sha256)
            return trouble or await self._change({**header, "fd": held.fd}, fds=(held.fd,))

    async def _look(self, header: Mapping[str, Any], fds: tuple[int, ...] = ()) -> Result:
        async with self._slots:
            return await self._files.work(header, changes=False, fds=fds)

    async def _change(
        self, header: Mapping[str, Any], content: bytes = b"", fds: tuple[int, ...] = ()
    ) -> Result:
        async with self._slots, self._changing:
            return await self._files.work(header, content, fds=fds)


def _written(fields: Fields) -> dict[str, Any]:
    return {
        "path": fields.path("path"),
        "mode": fields.mode("mode"),
        "createDirs": fields.flag("createDirs"),
        **_versions(fields),
    }


def _versions(fields: Fields) -> dict[str, Any]:
    """Which version of a file is meant, where one is."""
    return {name: fields.texts(name) for name in ("ifMatch", "ifNoneMatch")}


def _content(fields: Fields) -> bytes:
    try:
        content = base64.b64decode(fields.text("content"), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("content must be base64.") from None
    if len(content) > MOST_INLINE_BYTES:
        raise InvalidRequestError(f"content has more than {MOST_INLINE_BYTES} bytes.")
    return content
