"""Saves and restores folders: a worker packs or unpacks as the commands' user, the daemon carries the bytes.

The archive stands in a file of the daemon without a name. So it is whole, and its sha256 is known or compared,
before it is sent or unpacked; and the worker needs no network, which no command has.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandboxd.archive import MODULES
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import ExecSpec, Outcome, SpawnError, StopReason
from sandboxd.requests import RestoreRequest, SaveRequest
from sandboxd.results import Result, archive_failure, archive_result
from sandboxd.transfer import Transfer, TransferError
from sandboxd.workers import worker

_ANSWER_BYTES = 64 * 1024
_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}  # the agent's variables have no say in the worker

_TOLD = ("entries", "bytes", "leftOut", "leftOutCount", "changed")


class _NotDoneError(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ArchiveDesk:
    """Does one save or restore at a time.

    Args:
        folder: the daemon's own, where archives stand while they are sent.
        interpreter: Python that the commands' user can execute.
    """

    def __init__(
        self, host: ProcessHost, transfer: Transfer, folder: Path, interpreter: str = sys.executable
    ) -> None:
        self._host = host
        self._transfer = transfer
        self._folder = folder
        self._workers = {name: worker(interpreter, "archive", *modules) for name, modules in MODULES.items()}
        self._turn = asyncio.Lock()

    async def run(self, request: SaveRequest | RestoreRequest) -> Result:
        """Does a request within its time and tells its result; refusals are results too."""
        started = datetime.now(UTC)
        try:
            async with asyncio.timeout(request.start_to_end_s), self._turn:
                with self._file() as file:
                    if isinstance(request, SaveRequest):
                        return archive_result(started, await self._save(request, file))
                    return archive_result(started, await self._restore(request, file))
        except TimeoutError:
            return archive_failure(started, "timeout", f"It took longer than {request.start_to_end_s:.0f} s.")
        except _NotDoneError as error:
            return archive_failure(started, error.reason, str(error))
        except TransferError as error:
            return archive_failure(started, "transfer", str(error))
        except OSError as error:
            return archive_failure(started, "io", f"The daemon could not keep the archive: {error.strerror}.")

    async def _save(self, request: SaveRequest, file: int) -> dict[str, Any]:
        async with self._host.frozen() as still:
            told = await self._work("packing", {"dir": request.path, **request.limits}, file)
        size = os.fstat(file).st_size
        sha256 = await self._transfer.put(request.put, file, size)
        return {**told, "frozen": still, "size": size, "sha256": sha256}

    async def _restore(self, request: RestoreRequest, file: int) -> dict[str, Any]:
        got = await self._transfer.get(request.get, file, request.size)
        if got != (request.size, request.sha256):
            message = (
                f"What came is not the archive that was stored: {got[0]} bytes with the sha256 {got[1]}."
            )
            raise _NotDoneError("mismatch", message)
        return await self._work("unpacking", {"dir": request.path, **request.limits}, file)

    async def _work(self, name: str, request: dict[str, Any], file: int) -> dict[str, Any]:
        """What a worker tells of an archive in `file`; it is ended when nobody waits for it any more."""
        spec = ExecSpec(
            argv=(*self._workers[name], json.dumps(request)),
            cwd="/",
            env=_ENV,
            grace_s=0.0,
            stdin=file,
            head_bytes=_ANSWER_BYTES,
            tail_bytes=0,
        )
        try:
            execution = self._host.start(spec)
        except SpawnError as error:
            raise _NotDoneError(error.reason, str(error)) from error
        running = asyncio.ensure_future(self._host.run(execution))
        try:
            outcome = await asyncio.shield(running)
        except asyncio.CancelledError:
            execution.stop(StopReason.KILLED)
            await running
            raise
        return _told(outcome)

    @contextlib.contextmanager
    def _file(self) -> Iterator[int]:
        with tempfile.TemporaryFile(dir=self._folder) as file:
            yield file.fileno()


def _told(outcome: Outcome) -> dict[str, Any]:
    """The worker's answer; a command of the same user may have made it say anything."""
    try:
        answer = json.loads(outcome.captured.head) if outcome.exit_code == 0 else None
    except ValueError:
        answer = None
    if isinstance(answer, dict) and isinstance(answer.get("fields"), dict):
        return {name: answer["fields"].get(name) for name in _TOLD if name in answer["fields"]}
    if isinstance(answer, dict) and isinstance(answer.get("refused"), str):
        raise _NotDoneError(answer["refused"], str(answer.get("message")))
    raise _NotDoneError("io", "The process that reads and writes archives ended without an answer.")
