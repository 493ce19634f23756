"""A clock that tests set by hand, and ids that are the same in every run."""

import itertools
import threading
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Stands still until `advance`; `sleep` advances it."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += timedelta(seconds=seconds)


class CountingIds:
    """`fresh("x")` gives x-1, x-2, …"""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def fresh(self, prefix: str) -> str:
        return f"{prefix}-{next(self._numbers)}"
