"""Values of rows (`journal/values.py` says which) to DynamoDB's typed JSON and back."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from nodus_core.journal.store import Row
from nodus_core.journal.values import DIGITS, members, number
from nodus_core.kernel.errors import CorruptRow

WRITE_TOKEN = "w"  # noqa: S105 - the attribute's name
"""Attribute in which every row carries the token of its last write; no caller sees it."""

_SURELY_FITS = 10**DIGITS

Wired = dict[str, Any]
"""A value as DynamoDB's JSON has it: `{"S": "text"}`."""


def encode(value: Any) -> Wired:
    """A value as it is sent. Raises ValueError for what no row can hold, TypeError for a foreign type."""
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        encoder = next((found for base, found in _ENCODERS.items() if isinstance(value, base)), None)
    if encoder is None:
        raise TypeError(f"a row cannot hold {type(value).__name__}: {value!r}")
    return encoder(value)


def encode_row(row: Row) -> Wired:
    """A whole row as it is sent, without the values that are None."""
    return {name: encode(value) for name, value in row.items() if value is not None}


def _encode_integer(value: int) -> Wired:
    return {"N": str(int(value) if -_SURELY_FITS < value < _SURELY_FITS else number(value))}


# bool before int: True is an int. Subclasses (StrEnum) are found by the walk in `encode`.
_ENCODERS: dict[type, Callable[[Any], Wired]] = {
    str: lambda value: {"S": str(value)},
    bool: lambda value: {"BOOL": value},
    int: _encode_integer,
    Decimal: lambda value: {"N": str(number(value))},
    type(None): lambda _: {"NULL": True},
    dict: lambda value: {"M": {str(name): encode(item) for name, item in value.items()}},
    list: lambda value: {"L": [encode(item) for item in value]},
    tuple: lambda value: {"L": [encode(item) for item in value]},
    # Sorted: the same transaction is the same bytes when it is sent again.
    frozenset: lambda value: {"SS": sorted(members(value))},
    set: lambda value: {"SS": sorted(members(value))},
}


def decode(wired: Wired) -> Any:
    """The value that was sent as `wired`. Raises `CorruptRow` for a type that no row of ours has."""
    ((tag, value),) = wired.items()
    decoder = _DECODERS.get(tag)
    if decoder is None:
        raise CorruptRow(f"a value of DynamoDB type {tag!r}, which this release never writes")
    return decoder(value)


def decode_row(wired: Wired) -> Row:
    """A row as its writer gave it, without the write token."""
    return {name: decode(value) for name, value in wired.items() if name != WRITE_TOKEN}


def _number(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:
        found = Decimal(text)
        return int(found) if found == found.to_integral_value() else found


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "S": lambda value: value,
    "N": _number,
    "BOOL": lambda value: value,
    "NULL": lambda _: None,
    "M": lambda value: {name: decode(item) for name, item in value.items()},
    "L": lambda value: [decode(item) for item in value],
    "SS": frozenset,
}
