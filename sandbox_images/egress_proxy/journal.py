"""One line of JSON for each connection."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TextIO

MOST_LOGGED = 8 * 1024 * 1024
"""Bytes that one proxy writes; a command could fill the disk with refusals otherwise."""


@dataclass
class Entry:
    """What is known of a connection; `sent` and `received` count bytes as the client sees them."""

    method: str = ""
    host: str = ""
    port: int = 0
    address: str = ""
    outcome: str = ""
    reason: str = ""
    sent: int = 0
    received: int = 0
    began: float = field(default_factory=time.monotonic)


class Journal:
    """Writes lines. Neither paths nor headers are written: they may hold secrets."""

    def __init__(self, stream: TextIO, about: Mapping[str, str] | None = None) -> None:
        """Take a stream, and what every line begins with."""
        self._stream = stream
        self._about = dict(about or {})
        self._left = MOST_LOGGED

    def write(self, entry: Entry) -> None:
        """Write the line of a connection that is over."""
        line: dict[str, Any] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **self._about,
            "method": entry.method,
            "host": entry.host,
            "port": entry.port,
            "address": entry.address,
            "outcome": entry.outcome,
            "reason": entry.reason,
            "sent": entry.sent,
            "received": entry.received,
            "seconds": round(time.monotonic() - entry.began, 3),
        }
        text = json.dumps({name: value for name, value in line.items() if value != ""})
        if self._left <= 0:
            return
        self._left -= len(text) + 1
        if self._left <= 0:
            text = json.dumps({**self._about, "outcome": "log_full"})
        self._stream.write(text + "\n")
        self._stream.flush()
