"""File requests, done as the commands' user and never with the daemon's own eyes.

A root daemon that opened a path itself would read `/proc/1/environ` and its own state folder for the agent.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.shaping import whole_characters
from sandboxd.execcore.spec import ExecSpec, ExecState, Outcome, SpawnError
from sandboxd.filework import MODULES
from sandboxd.redaction import NOTHING, Redactor
from sandboxd.requests import MAX_READ_BYTES, MkdirRequest, ReadRequest, WriteRequest
from sandboxd.results import Result, failed_result, file_failure, file_result
from sandboxd.workers import worker

FileRequest = ReadRequest | WriteRequest | MkdirRequest

Fields = dict[str, Any]
Shape = Callable[[Fields, bytes], Fields]
"""What the result tells of the worker's fields and the bytes that it read."""

_START_TO_END_S = 30.0
_COPY_TO_END_S = 120.0
_ANSWER_BYTES = MAX_READ_BYTES + 64 * 1024
_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}  # the agent's variables have no say in the worker


class FileDesk:
    """Does file requests, each in a process of its own.

    Args:
        interpreter: Python that the commands' user can execute.
    """

    def __init__(self, host: ProcessHost, interpreter: str = sys.executable) -> None:
        self._host = host
        self._argv = worker(interpreter, "filework", *MODULES)

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
        """Does one request of `filework` and tells its result.

        Args:
            header: its kind and fields.
            content: the bytes to write.
            changes: a worker that dies leaves it unknown what it did.
            fds: descriptors that the worker gets, under the numbers that `header` names.
            shape: makes the result's fields of what the worker says, which may be a command's word.
        """
        spec = ExecSpec(
            argv=self._argv,
            cwd="/",
            env=_ENV,
            start_to_end_s=_COPY_TO_END_S if fds else _START_TO_END_S,
            grace_s=0.0,
            stdin=json.dumps(header).encode() + b"\n" + content,
            head_bytes=_ANSWER_BYTES,
            tail_bytes=0,
            fds=fds,
        )
        try:
            execution = self._host.start(spec)
        except SpawnError as error:
            return failed_result(error.reason, str(error))
        outcome = await self._host.run(execution)
        answer = _answer(outcome)
        if answer is None:
            return _no_answer(outcome, changes=changes)
        fields, data = answer
        if "refused" in fields:
            return file_failure(outcome, ExecState.FAILED, str(fields["refused"]), str(fields["message"]))
        return file_result(outcome, shape(fields["fields"], data))


def _answer(outcome: Outcome) -> tuple[dict[str, Any], bytes] | None:
    """The worker's answer; None when it died, or when a command of the same user made it say nonsense."""
    if outcome.exit_code != 0 or outcome.reason is not None:
        return None
    line, _, data = outcome.captured.head.partition(b"\n")
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    sound = isinstance(fields, dict) and (
        isinstance(fields.get("fields"), dict) or isinstance(fields.get("refused"), str)
    )
    return (fields, data) if sound else None


def _no_answer(outcome: Outcome, *, changes: bool) -> Result:
    """What a worker that did not answer may have done: reading changes nothing, anything else is unknown."""
    reason = outcome.reason or "io"
    message = "The process that does file requests ended without an answer."
    if reason == "timeout":
        message = "The file request took too long and was ended."
    if changes:
        message += " Whether the file changed is unknown: look before you repeat it."
    return file_failure(outcome, ExecState.LOST if changes else ExecState.FAILED, reason, message)


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
