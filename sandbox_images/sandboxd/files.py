"""File requests, done as the commands' user and never with the daemon's own eyes (`sandboxd.workdesk`)."""

import sys
from collections.abc import Mapping
from typing import Any

from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.shaping import whole_characters
from sandboxd.filework import MODULES
from sandboxd.redaction import NOTHING, Redactor
from sandboxd.requests import MkdirRequest, ReadRequest, WriteRequest
from sandboxd.results import Result
from sandboxd.workdesk import Shape, WorkDesk

FileRequest = ReadRequest | WriteRequest | MkdirRequest

_START_TO_END_S = 30.0
_COPY_TO_END_S = 120.0


class FileDesk:
    """Does file requests, each in a process of its own.

    Args:
        interpreter: Python that the commands' user can execute.
    """

    def __init__(self, host: ProcessHost, interpreter: str = sys.executable) -> None:
        self._desk = WorkDesk(host, "filework", MODULES, noun="file request", interpreter=interpreter)

    async def run(self, request: FileRequest, redactor: Redactor = NOTHING) -> Result:
        """Does the request of a command and tells its result; refusals are results too.

        `redactor` is for what a file says.
        """
        match request:
            case ReadRequest(path, offset, limit):
                header = {"kind": "read_file", "path": path, "offset": offset, "limit": limit}
                shape: Shape = lambda fields, data: _read_fields(request, fields, data, redactor)  # noqa: E731
                return await self.work(header, changes=False, shape=shape)
            case WriteRequest(path, content, mode, create_dirs):
                header = {"kind": "write_file", "path": path, "mode": mode, "createDirs": create_dirs}
                return await self.work(header, content)
            case MkdirRequest(path):
                return await self.work({"kind": "mkdir", "path": path})

    async def work(
        self,
        header: Mapping[str, Any],
        content: bytes = b"",
        *,
        changes: bool = True,
        shape: Shape = lambda fields, _: fields,
        fds: tuple[int, ...] = (),
    ) -> Result:
        """Does one request of `filework` and tells its result; as of `WorkDesk.work`."""
        within = _COPY_TO_END_S if fds else _START_TO_END_S
        return await self._desk.work(
            header, content, start_to_end_s=within, changes=changes, shape=shape, fds=fds
        )


def _read_fields(
    request: ReadRequest, fields: dict[str, Any], data: bytes, redactor: Redactor
) -> dict[str, Any]:
    """Text ends with a whole character where there is more to read: the next offset is `offset + rawBytes`."""
    more = bool(fields.get("more"))
    shown = whole_characters(data) if more else data
    return {
        "content": redactor.page(shown).decode("utf-8", "replace"),
        "size": fields.get("size", request.offset + len(data)),
        "rawBytes": len(shown),
        "truncated": more or len(shown) < len(data),
    }
