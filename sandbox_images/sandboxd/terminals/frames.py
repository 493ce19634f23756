"""What people's clients and terminals tell each other (docs/protocols.md §2, terminals): checked, for all is hostile."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_DATA_BYTES = 16 * 1024
"""Bytes of a terminal in one message: as base64, with all around it, they fit into one frame of API Gateway (32 KB)."""

MOST_NAME = 128
MOST_CELLS = 1000
_MOST_NUMBER = 2**53


@dataclass(frozen=True)
class Said:
    """One message of a client.

    Args:
        client: who it is, over all of its connections.
        number: grows with each message of a connection; what comes late is left alone.
        after: up to which place it has the output.
        asks: it wants an answer, also when there is nothing to show.
        size: columns and rows of its window.
        at: the place of `data` in all that this client has typed.
    """

    client: str
    number: int
    after: int
    asks: bool
    size: tuple[int, int] | None
    at: int
    data: bytes


def said(frame: Any) -> Said | None:
    """A client's message; None when it is none."""
    fields: Mapping[str, Any] = frame if isinstance(frame, dict) else {}
    client = fields.get("client")
    numbers = [fields.get(name, 0) for name in ("n", "after", "at")]
    if not isinstance(client, str) or not 0 < len(client) <= MOST_NAME:
        return None
    if not all(isinstance(number, int) and 0 <= number < _MOST_NUMBER for number in numbers):
        return None
    data = _bytes_of(fields.get("data", ""))
    if data is None:
        return None
    number, after, at = (int(number) for number in numbers)
    return Said(client, number, after, fields.get("ask") is True, _size_of(fields.get("size")), at, data)


def shown(*, number: int, taken: int, at: int, data: bytes, end: Mapping[str, Any] | None) -> dict[str, Any]:
    """A terminal's message: the last number heard, how much typed text it has, and output from a place on.

    `end` says how the terminal has ended, behind the last of its output.
    """
    frame: dict[str, Any] = {"n": number, "input": taken, "at": at}
    if data:
        frame["data"] = base64.b64encode(data).decode()
    if end is not None:
        frame["end"] = dict(end)
    return frame


def is_size(columns: Any, rows: Any) -> bool:
    """Whether a window can be so large."""
    return all(type(cells) is int and 0 < cells <= MOST_CELLS for cells in (columns, rows))


def _size_of(value: Any) -> tuple[int, int] | None:
    if isinstance(value, list) and len(value) == 2 and is_size(*value):
        return value[0], value[1]
    return None


def _bytes_of(value: Any) -> bytes | None:
    if not isinstance(value, str) or len(value) > 2 * MOST_DATA_BYTES:
        return None
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) <= MOST_DATA_BYTES else None
