"""How often what goes wrong: seeded dice, and a log of every throw that hit."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class Weather:
    """Fair until `change`; safe for threads.

    Args:
        log: a line of JSON is appended for each fault: `at` (seconds), `fault`, `about`.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._random = random.Random(0)  # noqa: S311 - a test's dice
        self._rates: dict[str, float] = {}
        self._storms: dict[str, float] = {}

    def change(self, seed: int, rates: Mapping[str, float]) -> None:
        """From now on. `rates`: the part, from 0 to 1, of what bears a name that goes wrong; absent: none of it."""
        with self._lock:
            self._random = random.Random(seed)  # noqa: S311
            self._rates, self._storms = dict(rates), {}

    def storm(self, name: str, seconds: float) -> None:
        """For so long everything of that name goes wrong: longer than callers are patient."""
        with self._lock:
            self._storms[name] = time.monotonic() + seconds

    def fault(self, name: str, kinds: Sequence[str], about: str) -> str | None:
        """One of `kinds`, or None: nothing goes wrong this time."""
        with self._lock:
            stormy = time.monotonic() < self._storms.get(name, 0.0)
            if not kinds or not (stormy or self._random.random() < self._rates.get(name, 0.0)):
                return None
            chosen = self._random.choice(kinds)
            entry = {"at": round(time.time(), 3), "fault": f"{name}.{chosen}", "about": about}
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            return chosen

    def seconds(self, least: float, most: float) -> float:
        """A time between the two."""
        with self._lock:
            return self._random.uniform(least, most)
