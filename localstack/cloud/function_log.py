"""The log of all functions that people follow: one file, bounded, with the file before it."""

from __future__ import annotations

import threading
from pathlib import Path

LIMIT_BYTES = 20 * 1024 * 1024


class FunctionLog:
    """Appends whole lines; safe for threads.

    Args:
        path: the file; the one before it is kept beside it as `PATH.1`.
        limit_bytes: size at which a new file is begun.
    """

    def __init__(self, path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._path = path
        self._older = path.with_name(f"{path.name}.1")
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8")

    def write(self, line: str) -> None:
        """Append one line, with its end."""
        with self._lock:
            if self._file.tell() + len(line) > self._limit:
                self._file.close()
                self._path.replace(self._older)
                self._file = self._path.open("a", encoding="utf-8")
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()
