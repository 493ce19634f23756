"""Values of rows to DynamoDB's typed JSON and back.

Rules that make the round trip exact: integral numbers come back as `int`, all others as `Decimal` (DynamoDB
keeps no trailing zeros, so scale is not part of a number); sets are sets of strings and never empty; a
top-level None is left out of a row, a None further inside is kept.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

from nodus_core.journal.store import Row
from nodus_core.kernel.errors import CorruptRow

WRITE_TOKEN = "w"  # noqa: S105 - the attribute's name
"""Attribute in which every row carries the token of its last write; no caller sees it."""

DIGITS = 38
LEAST_EXPONENT, MOST_EXPONENT = -130, 125

Wired = dict[str, Any]
"""A value as DynamoDB's JSON has it: `{"S": "text"}`."""


def encode(value: Any) -> Wired:
    """A value as it is sent. Raises ValueError for what DynamoDB cannot hold, TypeError for a foreign type."""
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
    text = str(int(value))
    return {"N": text} if len(text) <= DIGITS else _encode_decimal(Decimal(value))


def _encode_decimal(value: Decimal) -> Wired:
    if not value.is_finite():
        raise ValueError(f"a row cannot hold the number {value}")
    _, digits, exponent = value.as_tuple()
    significant = len("".join(map(str, digits)).strip("0"))
    if significant > DIGITS:
        raise ValueError(f"a row holds numbers of up to {DIGITS} digits, not {value}")
    if value and not LEAST_EXPONENT <= len(digits) - 1 + cast("int", exponent) <= MOST_EXPONENT:
        raise ValueError(f"a row cannot hold a number as large or as small as {value}")
    return {"N": str(value)}


def _encode_set(value: frozenset[Any]) -> Wired:
    if not value:
        raise ValueError("a row cannot hold an empty set: leave it out")
    for member in value:
        if not isinstance(member, str):
            raise TypeError(f"a row holds sets of strings, not of {type(member).__name__}")
    return {"SS": sorted(value)}  # sorted: the same transaction is the same bytes again


# bool before int: True is an int. Subclasses (StrEnum) are found by the walk in `encode`.
_ENCODERS: dict[type, Callable[[Any], Wired]] = {
    str: lambda value: {"S": str(value)},
    bool: lambda value: {"BOOL": value},
    int: _encode_integer,
    Decimal: _encode_decimal,
    type(None): lambda _: {"NULL": True},
    dict: lambda value: {"M": {str(name): encode(item) for name, item in value.items()}},
    list: lambda value: {"L": [encode(item) for item in value]},
    tuple: lambda value: {"L": [encode(item) for item in value]},
    frozenset: _encode_set,
    set: _encode_set,
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
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else number


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "S": lambda value: value,
    "N": _number,
    "BOOL": lambda value: value,
    "NULL": lambda _: None,
    "M": lambda value: {name: decode(item) for name, item in value.items()},
    "L": lambda value: [decode(item) for item in value],
    "SS": frozenset,
}
