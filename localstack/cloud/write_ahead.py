"""Writes that the app must not lose are on disk before they are answered.

MiniStack writes its state on a clean stop only. The journal (DynamoDB) and the secrets are what may not go back
in time, so each of their changing requests is appended to a log and synced before its answer leaves, and played
again at the next start. Everything else comes back as of the last snapshot, and the app revives what ran.

Requests pass one at a time, so that the log has the order in which they took effect. A refused request changed
nothing and is not kept. A snapshot notes, inside each service's own file, up to which request it holds: replacing
that file is one step, so a request is played exactly when the file does not hold it yet.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localstack.cloud.gate import Application, Receive, Scope, Send

logger = logging.getLogger("localstack.write_ahead")

SERVICES = ("dynamodb", "secretsmanager")
TARGETS = {"dynamodb_20120810": "dynamodb", "secretsmanager": "secretsmanager"}
READS = ("Get", "List", "Describe", "Query", "Scan", "BatchGet", "TransactGet", "ValidateResourcePolicy")
# What is needed to play a request again; its signature is not, and would have expired.
KEPT_HEADERS = frozenset({b"x-amz-target", b"content-type", b"content-encoding", b"authorization"})
# Key of a saved state: the last request that it holds.
POSITION = "nodus_position"
# A longer log makes the next start slow; a snapshot shortens it.
LIMIT_BYTES = 64 * 1024 * 1024


class WriteAheadLog:
    """The log file: one request a line.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        entries = list(self.entries())
        self.position: int = entries[-1]["position"] if entries else 0
        self._file = path.open("ab")
        self._cut_torn_line()

    def entries(self) -> Iterator[dict[str, Any]]:
        """The requests, oldest first. A last line without its end was never answered, and is left out."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def append(self, service: str, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Keep one request; on disk when this returns."""
        kept = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
        entry = {
            "position": self.position + 1,
            "service": service,
            "headers": kept,
            "body": b64encode(body).decode(),
        }
        self._file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.position += 1

    def continue_after(self, position: int) -> None:
        """Never give a position twice, also when the log was emptied before a restart."""
        self.position = max(self.position, position)

    def empty(self) -> None:
        """Forget all requests: a snapshot holds them."""
        self._file.truncate(0)
        os.fsync(self._file.fileno())

    @property
    def size(self) -> int:
        return self._path.stat().st_size

    def _cut_torn_line(self) -> None:
        whole = self._path.read_bytes().rpartition(b"\n")
        if whole[2]:
            self._file.truncate(len(whole[0]) + len(whole[1]))


class WriteAhead:
    """ASGI application around MiniStack's: keeps the changing requests of SERVICES in `log`."""

    def __init__(self, inner: Application, log: WriteAheadLog, emulator: Any, persistence: Any) -> None:
        self._inner = inner
        self._log = log
        self._emulator = emulator
        self._persistence = persistence
        self._turn = asyncio.Lock()
        note_positions(persistence, log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, self._after_start(send))
            return
        service = changing_service(scope)
        if service is None:
            await self._inner(scope, receive, send)
            return
        body = await read_body(receive)
        async with self._turn:
            messages = await answer_of(self._inner, scope, body)
            if messages[0]["status"] == 200:
                headers = [pair for pair in scope["headers"] if pair[0].lower() in KEPT_HEADERS]
                self._log.append(service, headers, body)
                if self._log.size > LIMIT_BYTES:
                    self._save()
        for message in messages:
            await send(message)

    async def snapshot(self) -> None:
        """Save the state of every service, then empty the log."""
        async with self._turn:
            self._save()

    def _save(self) -> None:
        """The caller has the turn: no request is between its effect and its place in the log."""
        saved = self._emulator._build_persistence_save_dict()
        self._persistence.save_all(saved)
        if all(
            self._saved_position(service) == self._log.position for service in SERVICES if service in saved
        ):
            self._log.empty()
        else:
            logger.error("a service's state could not be saved; the log of its requests stays")

    def _saved_position(self, service: str) -> int:
        return saved_position(Path(self._persistence.STATE_DIR) / f"{service}.json")

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
        if played:
            logger.info("played %d requests again, %d of them were refused now", played, refused)
            self._save()


def note_positions(persistence: Any, log: WriteAheadLog) -> None:
    """Have each saved state say up to which request it holds."""
    save = persistence.save_state

    def save_with_position(service: str, data: dict[str, Any]) -> None:
        save(service, {**data, POSITION: log.position} if service in SERVICES else data)

    persistence.save_state = save_with_position


def saved_position(path: Path) -> int:
    """The last request that the saved state in `path` holds, 0 when none was saved.

    The position is written last, so that it is found without reading a large state.
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


def changing_service(scope: Scope) -> str | None:
    """The service of SERVICES whose state this request may change, None for all other requests."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    prefix, _, operation = headers.get(b"x-amz-target", b"").decode("latin-1").rpartition(".")
    if not operation or operation.startswith(READS):
        return None
    return TARGETS.get(prefix.lower())


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
