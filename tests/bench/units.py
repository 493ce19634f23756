"""Sizes of rows and units of requests, by DynamoDB's published rules.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html: names and values
in UTF-8; a number takes about a byte for two digits and one more; a map or list 3 bytes and one for each entry; a
write is rounded up to 1 KB, a consistent read to 4 KB; both cost double in a transaction; an update counts as the
larger of the row before and after.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

WRITE_BYTES, READ_BYTES = 1024, 4096
_CONTAINER_BYTES = 3
TOKEN_BYTES = len("w") + 32
"""The write token that `aws/dynamodb_store.py` adds to every row."""

INDEX_KEY = ("dueShard", "dueAt")
"""Keys of the only index; it projects nothing else but the table's own key."""


def size(row: Mapping[str, Any] | None) -> int:
    """Bytes of a row as it is stored, with its write token; 0 for no row."""
    return sum(len(name.encode()) + _value(value) for name, value in row.items()) + TOKEN_BYTES if row else 0


def write_units(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> int:
    """Of one row's write outside of a transaction, without the index."""
    return max(1, math.ceil(max(size(before), size(after)) / WRITE_BYTES))


def index_units(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> int:
    """Writes of the index: an entry that comes or goes is one, one whose key changes is two."""
    old, new = _entry(before), _entry(after)
    return 0 if old == new else (old is not None) + (new is not None)


def read_units(bytes_read: int) -> int:
    """Of one consistent read; one that finds nothing costs as the smallest."""
    return max(1, math.ceil(bytes_read / READ_BYTES))


def _entry(row: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    entry = tuple(row.get(name) for name in INDEX_KEY) if row else (None,)
    return None if None in entry else entry


def _value(value: Any) -> int:
    match value:
        case None | bool():
            return 1
        case str():
            return len(value.encode())
        case int() | Decimal():
            digits = "".join(map(str, Decimal(value).as_tuple().digits)).strip("0")
            return math.ceil(len(digits) / 2) + 1 + (value < 0)
        case Mapping():
            return _CONTAINER_BYTES + sum(
                len(str(name).encode()) + 1 + _value(item) for name, item in value.items()
            )
        case frozenset() | set():
            return sum(_value(item) for item in value)
        case list() | tuple():
            return _CONTAINER_BYTES + sum(1 + _value(item) for item in value)
        case _:
            raise TypeError(f"no row holds {type(value).__name__}")
