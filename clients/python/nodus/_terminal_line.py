"""What a terminal and its client tell each other (docs/protocols.md, section 2), without any I/O.

Both sides count the bytes that they have of each other, so whatever is lost or doubled on the way changes nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple, cast

MOST_DATA_BYTES = 16 * 1024
_MOST_TEXT = 64 * 1024


class TerminalCalls(NamedTuple):
    """What a terminal asks the server: another connection, how it stands, its end. Each gives it as a record then."""

    attach: Callable[[], Any]
    look: Callable[[], Any]
    end: Callable[[], Any]


class Line:
    """One client's side, over all of its connections.

    ``end`` says how the program has ended, once it has; ``gap`` counts output that was gone before it could be shown.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self.client = secrets.token_hex(16)
        self.size = size
        self.has = 0
        self.gap = 0
        self.end: dict[str, Any] | None = None
        self._typed = bytearray()
        self._taken = 0
        self._number = 0
        self._asked = 0
        self._sized: tuple[int, int] | None = None

    @property
    def waiting(self) -> int:
        """Typed bytes that the terminal has not confirmed."""
        return len(self._typed)

    @property
    def unanswered(self) -> bool:
        """Whether something was said that has no answer yet."""
        return self._asked > 0

    @property
    def wants(self) -> bool:
        """Whether there is something to say."""
        return bool(self._typed) or self._sized != self.size

    def type(self, data: bytes) -> None:
        """Takes what is typed."""
        self._typed += data

    def connected(self) -> None:
        """A new connection: everything is said anew on it."""
        self._asked, self._sized = 0, None

    def ask(self) -> str:
        """A message that wants an answer: what is typed, the window's size, and how far the output is here."""
        frame = {**self._frame(), "ask": True, "size": list(self.size), "at": self._taken}
        if self._typed:
            frame["data"] = base64.b64encode(self._typed[:MOST_DATA_BYTES]).decode()
        self._asked = self._asked or self._number
        self._sized = self.size
        return _message(frame)

    def confirm(self) -> str:
        """A message that only says how far the output is here."""
        return _message({**self._frame(), "at": self._taken})

    def hear(self, text: str | bytes) -> bytes | None:
        """The new output in a message, maybe empty; ``None`` when it calls for no confirmation."""
        frame = _parsed(text)
        if frame is None:
            return None
        number, taken, at, data = frame["n"], frame["input"], frame["at"], frame["data"]
        if number >= self._asked:
            self._asked = 0
        fresh = min(max(taken - self._taken, 0), len(self._typed))
        self._taken += fresh
        del self._typed[:fresh]
        if at > self.has:
            self.gap, self.has = self.gap + at - self.has, at
        new = data[self.has - at :]
        self.has += len(new)
        if frame["end"] is not None and at + len(data) == self.has:
            self.end = frame["end"]
        return new if data or self.end is not None else None

    def _frame(self) -> dict[str, Any]:
        self._number += 1
        return {"client": self.client, "n": self._number, "after": self.has}


def _message(frame: dict[str, Any]) -> str:
    return json.dumps({"action": "terminal", "frame": frame}, separators=(",", ":"))


def _parsed(text: str | bytes) -> dict[str, Any] | None:
    """The fields of a terminal's message; ``None`` for anything else."""
    try:
        parsed = json.loads(text) if len(text) <= _MOST_TEXT else None
        if not isinstance(parsed, dict):
            return None
        frame = cast("dict[str, Any]", parsed)
        data = base64.b64decode(frame.get("data", ""), validate=True)
    except (ValueError, TypeError, RecursionError, binascii.Error):
        return None
    end = frame.get("end")
    numbers = {name: frame.get(name) for name in ("n", "input", "at")}
    if not all(type(number) is int and number >= 0 for number in numbers.values()):
        return None
    return {**numbers, "data": data, "end": end if isinstance(end, dict) else None}
