"""Writes that the app must not lose are on disk before they are answered.

MiniStack writes its state on a clean stop only. The journal (DynamoDB) and the secrets are what may not go back
in time, so each of their changing requests is appended to a log and synced before its answer leaves, and played
again at the next start. Everything else comes back as of the last snapshot, and the app revives what ran.

Changing requests pass one at a time, so that the log has the order in which they took effect, and a read is answered
when all that it may have seen is on disk. A refused request changed nothing and is not kept. A snapshot notes, inside each service's own file, up to which request it holds: replacing
that file is one step, so a request is played exactly when the file does not hold it yet.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localstack.cloud.durable import POSITION, Saves, sync_folder
from localstack.cloud.gate import Application, Receive, Scope, Send

logger = logging.getLogger("localstack.write_ahead")

SERVICES = ("dynamodb", "secretsmanager")
TARGETS = {"dynamodb_20120810": "dynamodb", "secretsmanager": "secretsmanager"}
READS = ("Get", "List", "Describe", "Query", "Scan", "BatchGet", "TransactGet", "ValidateResourcePolicy")
# What is needed to play a request again; its signature is not, and would have expired.
KEPT_HEADERS = frozenset({b"x-amz-target", b"content-type", b"content-encoding", b"authorization"})
# A longer log makes the next start slow; a snapshot shortens it.
LIMIT_BYTES = 64 * 1024 * 1024


class LogDamaged(Exception):
    """A request within the log cannot be read: what stands behind it must not be played without it."""


class WriteAheadLog:
    """The log file: one request a line.

    A line that could not be written is written before the next one: what took effect in the emulator's memory is
    never left out in front of what built on it.

    Args:
        path: the file.

    Raises:
        LogDamaged: a request other than the last cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.position: int = 0
        self.size = 0
        """Bytes that are on disk for certain."""
        for line, entry in _whole_lines(path):
            self.position = entry["position"]
            self.size += len(line)
        self._unwritten = b""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.ftruncate(self._file, self.size)  # a last line without its end was never answered
        os.fsync(self._file)
        sync_folder(path.parent)

    def entries(self) -> Iterator[dict[str, Any]]:
        """The requests, oldest first."""
        for _, entry in _whole_lines(self._path):
            yield entry

    def append(self, service: str, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Keep one request; on disk when this returns.

        Raises:
            OSError: it could not be written; it will be, before the next one is.
        """
        kept = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
        self.position += 1
        entry = {
            "position": self.position,
            "service": service,
            "headers": kept,
            "body": b64encode(body).decode(),
        }
        self._unwritten += json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write what could not be written. Raises OSError."""
        if not self._unwritten:
            return
        done = 0
        while done < len(
            self._unwritten
        ):  # always from the same place on: what a failure left behind is replaced
            done += os.pwrite(self._file, self._unwritten[done:], self.size + done)
        os.fsync(self._file)
        self.size += len(self._unwritten)
        self._unwritten = b""

    @property
    def is_behind(self) -> bool:
        """Whether something that took effect is not on disk."""
        return bool(self._unwritten)

    def continue_after(self, position: int) -> None:
        """Never give a position twice, also when the log was emptied before a restart."""
        self.position = max(self.position, position)

    def empty(self) -> None:
        """Forget all requests: a snapshot holds them."""
        os.ftruncate(self._file, 0)
        os.fsync(self._file)
        self.size, self._unwritten = 0, b""

    def close(self) -> None:
        os.close(self._file)


def _whole_lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The lines that were written whole. After the last of them only what a cut-off write left may stand.

    Raises:
        LogDamaged: something unreadable stands before a line that can be read.
    """
    if not path.exists():
        return
    torn: bytes | None = None
    with path.open("rb") as file:
        for line in file:
            if torn is not None:
                raise LogDamaged(
                    f"{path} is damaged before its end ({torn[:60]!r}…): what follows cannot be played without it. "
                    "Restore the file from a backup, or move it away to go back to the last snapshot"
                )
            entry = _entry(line)
            if entry is None:
                torn = line
            else:
                yield line, entry


def _entry(line: bytes) -> dict[str, Any] | None:
    """The request in a line; None where the line is not whole."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if line.endswith(b"\n") and isinstance(entry, dict) and "position" in entry else None


class WriteAhead:
    """ASGI application around MiniStack's: keeps the changing requests of SERVICES in `log`."""

    def __init__(self, inner: Application, log: WriteAheadLog, emulator: Any, persistence: Any) -> None:
        self._inner = inner
        self._log = log
        self._emulator = emulator
        self._saves = Saves(persistence, SERVICES, lambda: log.position)
        self._turn = asyncio.Lock()
        self._all_kept = asyncio.Event()
        self._all_kept.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, self._after_start(send))
            return
        service, operation = logged_service(scope)
        if service is None:
            await self._inner(scope, receive, send)
            return
        body = await read_body(receive)
        if operation.startswith(READS):
            messages = await self._read(scope, body)
        else:
            async with self._turn:
                messages = await self._kept(service, scope, body)
        for message in messages:
            await send(message)

    async def _read(self, scope: Scope, body: bytes) -> list[Any]:
        """The answer to a request that changes nothing, once all that it may have seen is on disk."""
        messages = await answer_of(self._inner, scope, body)
        await self._all_kept.wait()  # of the write that is under way, not of those behind it
        if self._log.is_behind:
            return unkept(OSError(errno.EIO, "what was read last could not be written yet"))
        return messages

    async def _kept(self, service: str, scope: Scope, body: bytes) -> list[Any]:
        """The answer to a request that is carried out and on disk; or one that says why it is not."""
        self._all_kept.clear()
        try:
            self._log.flush()  # before anything builds on what could not be written
            messages = await answer_of(self._inner, scope, body)
            if messages[0]["status"] == 200:
                headers = [pair for pair in scope["headers"] if pair[0].lower() in KEPT_HEADERS]
                self._log.append(service, headers, body)
                if self._log.size > LIMIT_BYTES:
                    self._save()
        except OSError as error:
            logger.error("a request of %s could not be kept: %s", service, error)
            return unkept(error)
        finally:
            self._all_kept.set()
        return messages

    async def snapshot(self) -> bool:
        """Save the state of every service, then empty the log. False: it could not be saved, and the log stays."""
        async with self._turn:
            return self._save()

    def _save(self) -> bool:
        """The caller has the turn: no request is between its effect and its place in the log."""
        saved = self._emulator._build_persistence_save_dict()
        failed = self._saves.save(saved)
        if failed:
            logger.error("the state of %s could not be saved; the log of requests stays", ", ".join(failed))
            return False
        self._log.empty()
        return True

    def _saved_position(self, service: str) -> int:
        return saved_position(self._saves.folder / f"{service}.json")

    def _after_start(self, send: Send) -> Send:
        """Play the log when MiniStack has loaded its state and before it serves."""

        async def told(message: Any) -> None:
            if message["type"] == "lifespan.startup.complete":
                await self._play()
            await send(message)

        return told

    async def _play(self) -> None:
        held = {service: self._saved_position(service) for service in SERVICES}
        self._log.continue_after(max(held.values()))
        played = refused = 0
        with unchecked_and_muted(self._emulator):
            for entry in self._log.entries():
                if entry["position"] <= held[entry["service"]]:
                    continue
                headers = [
                    (name.encode("latin-1"), value.encode("latin-1")) for name, value in entry["headers"]
                ]
                messages = await answer_of(self._inner, replayed_scope(headers), b64decode(entry["body"]))
                played += 1
                refused += messages[0]["status"] != 200
        if refused:
            logger.error("%d of the requests that were played again were refused now", refused)
        if played:
            logger.info("played %d requests again", played)
            self._save()


def saved_position(path: Path) -> int:
    """The last request that the saved state in `path` holds, 0 when none was saved.

    It stands at the end, so that it is found without reading a large state.
    """
    if not path.exists():
        return 0
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 100))
        found = re.search(rb'"%s": (\d+)\}\}\s*$' % POSITION.encode(), file.read())
    return int(found[1]) if found else 0


@contextmanager
def unchecked_and_muted(emulator: Any) -> Iterator[None]:
    """While requests are played again.

    They were authorized when they came, and their signatures have expired; their stream records were sent out
    then, and what was not consumed is found by the app's own sweep.
    """
    dynamodb: Any = emulator._get_module("dynamodb")
    emit = dynamodb._emit_stream_event
    emulator.AUTH = False
    dynamodb._emit_stream_event = lambda *_args, **_named: None
    try:
        yield
    finally:
        dynamodb._emit_stream_event = emit
        emulator.AUTH = True


def logged_service(scope: Scope) -> tuple[str | None, str]:
    """The one of SERVICES that a request goes to, and its operation; None for all other requests."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None, ""
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    prefix, _, operation = headers.get(b"x-amz-target", b"").decode("latin-1").rpartition(".")
    return (TARGETS.get(prefix.lower()) if operation else None), operation


def unkept(error: OSError) -> list[Any]:
    """An answer that AWS clients show, and after which they try again."""
    text = f"the local cloud cannot write to disk: {error.strerror or error}"
    body = json.dumps({"__type": "InternalServerError", "message": text}).encode()
    headers = [
        (b"content-type", b"application/x-amz-json-1.0"),
        (b"content-length", str(len(body)).encode()),
    ]
    return [
        {"type": "http.response.start", "status": 500, "headers": headers},
        {"type": "http.response.body", "body": body},
    ]


async def read_body(receive: Receive) -> bytes:
    """The whole body of a request."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return b"".join(parts)


async def answer_of(application: Application, scope: Scope, body: bytes) -> list[Any]:
    """Hand a request with its whole body to `application`; the messages of its answer."""
    messages: list[Any] = []
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return unread.pop() if unread else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(message)

    await application(scope, receive, send)
    return messages


def replayed_scope(headers: list[tuple[bytes, bytes]]) -> Scope:
    """A request as MiniStack gets it from its server."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), *headers],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
    }
