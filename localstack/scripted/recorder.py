"""What was asked, byte for byte, in a file of bounded size; and counts of it."""

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

LOG_NAME = "requests.jsonl"
LOG_LIMIT = 64 * 1024 * 1024
"""Bytes after which the log begins anew; the generation before is kept beside it as `requests.1.jsonl`."""


class Recorder:
    """Writes one JSON line per request: number, time, path, model, the body's exact bytes, what was played."""

    def __init__(self, folder: Path, limit: int = LOG_LIMIT) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / LOG_NAME
        self._older = folder / "requests.1.jsonl"
        self._limit = limit
        self._number = 0
        self._open = 0
        self._most_open = 0
        self._counts: Counter[tuple[str, str]] = Counter()

    def begin(self) -> int:
        """Numbers a request that has just come in."""
        self._number += 1
        self._open += 1
        self._most_open = max(self._most_open, self._open)
        return self._number

    def write(self, entry: dict[str, Any], body: bytes) -> None:
        """Records a request before it is answered."""
        try:
            entry["body"] = body.decode()
        except UnicodeDecodeError:
            entry["bodyBase64"] = base64.b64encode(body).decode()
        line = json.dumps(entry, ensure_ascii=False) + "\n"
        if self._log.exists() and self._log.stat().st_size + len(line) > self._limit:
            self._log.replace(self._older)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(line)

    def count(self, what: str, which: object) -> None:
        """Adds one to a counter, for example (`status`, 429)."""
        self._counts[(what, str(which))] += 1

    def end(self) -> None:
        """A request is over, however it ended."""
        self._open -= 1

    def requests(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Requests with a higher number than `after`, oldest first, at most the newest `limit`."""
        lines: list[dict[str, Any]] = []
        for path in (self._older, self._log):
            if path.exists():
                with path.open(encoding="utf-8") as log:
                    lines += [entry for entry in map(json.loads, log) if entry["number"] > after]
        return lines[-limit:] if limit else []

    def counters(self) -> dict[str, Any]:
        """How many requests there were, are open, were open at once, and counts by model, script and status."""
        counted: dict[str, Any] = {"requests": self._number, "open": self._open, "mostOpen": self._most_open}
        for (what, which), number in sorted(self._counts.items()):
            counted.setdefault(what, {})[which] = number
        return counted

    def clear(self) -> None:
        """Forgets the log and the counts; requests that are open now stay counted as open."""
        self._log.unlink(missing_ok=True)
        self._older.unlink(missing_ok=True)
        self._counts.clear()
        self._number, self._most_open = 0, self._open
