"""How long a line waits for its next worker when one was taken away."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from botocore.exceptions import BotoCoreError, ClientError

from localstack.testing import TestCloud
from tests.crash.campaign.journal import CloudJournal

LOOK_S = 0.25


class Resuming:
    """Watches lines that were interrupted; `seconds` are the waits that are over. Use it as a context manager."""

    def __init__(self, cloud: TestCloud) -> None:
        # One for each of the two threads.
        self._asked, self._watched = CloudJournal(cloud), CloudJournal(cloud)
        self._waiting: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="resuming")
        self.active: Iterable[str] = ()
        """Lines that may be at work."""
        self.seconds: list[float] = []

    def __enter__(self) -> Resuming:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def interrupted(self, line: str, at: float | None = None) -> None:
        """The worker of this line goes away now."""
        claimant = self._asked.claimant(line)
        if claimant is not None:
            with self._lock:
                self._waiting[line] = (time.time() if at is None else at, claimant)

    def interrupted_all(self, at: float) -> None:
        """Every worker goes away now."""
        for line in list(self.active):
            self.interrupted(line, at)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _work(self) -> None:
        while not self._over.wait(LOOK_S):
            for line, (since, claimant) in list(self._waiting.items()):
                try:
                    now = self._watched.claimant(line)
                except (BotoCoreError, ClientError, OSError):
                    break  # the cloud is away
                if now != claimant:
                    with self._lock:
                        self._waiting.pop(line, None)
                    self.seconds.append(time.time() - since)
