"""What the store sends: every request with who sent it, in which round, and how long the wire took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nodus_core.aws.dynamodb_wire import Wire
from nodus_core.journal.store import Key, Page, Row, Store, Transaction

WORKER, DAEMON, HEARTBEAT = "worker", "daemon", "heartbeat"

READS = frozenset({"GetItem", "BatchGetItem", "Query"})


@dataclass(frozen=True)
class Sent:
    """One request. `round` counts model calls, 0 before the first; `seconds` are the wire's."""

    operation: str
    body: dict[str, Any]
    sender: str
    round: int
    seconds: float

    @property
    def is_read(self) -> bool:
        return self.operation in READS


class Recorder:
    """Who sends, and in which round: what a wire cannot know by itself."""

    def __init__(self) -> None:
        self.round = 0
        self.sender = WORKER
        self.sent: list[Sent] = []

    def begin(self, rounds: int) -> None:
        """A round begins; `rounds` have begun before."""
        self.round = rounds + 1

    @contextmanager
    def as_daemon(self) -> Iterator[None]:
        """What is sent in the block is the link's, not the worker's."""
        self.sender = DAEMON
        try:
            yield
        finally:
            self.sender = WORKER


class RecordingWire:
    """A `Wire` that keeps what passes; two readings of a clock and a list entry are all it adds."""

    def __init__(self, wire: Wire, recorder: Recorder) -> None:
        self._wire, self._recorder = wire, recorder

    def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        answer = self._wire.call(operation, body)
        seconds, recorder = time.perf_counter() - started, self._recorder
        main = threading.current_thread() is threading.main_thread()
        sender = recorder.sender if main else HEARTBEAT
        recorder.sent.append(Sent(operation, body, sender, recorder.round, seconds))
        return answer


class TimedStore:
    """A `Store` that adds up the seconds that the worker spends in another one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counts = True
        self.worker_seconds = 0.0

    @contextmanager
    def as_daemon(self) -> Iterator[None]:
        """What the block spends is the link's."""
        self._counts = False
        try:
            yield
        finally:
            self._counts = True

    def commit(self, transaction: Transaction, token: str) -> None:
        with self._timed():
            self._store.commit(transaction, token)

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        with self._timed():
            return self._store.get(keys)

    def query(
        self,
        pk: str,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> Page:
        with self._timed():
            return self._store.query(pk, prefix, after=after, limit=limit, newest_first=newest_first)

    def due(self, shard: str, until: str, limit: int | None = None) -> list[Key]:
        with self._timed():
            return list(self._store.due(shard, until, limit))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            if self._counts:
                self.worker_seconds += time.perf_counter() - started
