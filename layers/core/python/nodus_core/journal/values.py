"""What a row may hold, and the form in which every store gives it back.

Integral numbers come back as `int`, all others as `Decimal`; trailing zeros are no part of a number. Numbers
have up to 38 digits. Sets are sets of strings and never empty. Lists and maps may hold None.
"""

from decimal import Decimal
from typing import Any, cast

DIGITS = 38
LEAST_EXPONENT, MOST_EXPONENT = -130, 125


def canonical(value: Any) -> Any:
    """A copy of a value as a store gives it back.

    Raises ValueError for a number or a set that no store can hold, TypeError for a foreign type.
    """
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case int() | Decimal():
            return number(value)
        case list() | tuple():
            return [canonical(item) for item in cast("list[Any]", value)]
        case dict():
            return {str(name): canonical(item) for name, item in cast("dict[str, Any]", value).items()}
        case frozenset() | set():
            return members(cast("frozenset[Any]", value))
        case _:
            raise TypeError(f"a row cannot hold {type(value).__name__}: {value!r}")


def number(value: int | Decimal) -> int | Decimal:
    """A number as a store gives it back. Raises ValueError for one that does not fit."""
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"a row cannot hold the number {value}")
    if exact:
        digits = "".join(map(str, exact.as_tuple().digits))
        if len(digits.strip("0")) > DIGITS:
            raise ValueError(f"a row holds numbers of up to {DIGITS} digits, not {value}")
        if not LEAST_EXPONENT <= exact.adjusted() <= MOST_EXPONENT:
            raise ValueError(f"a row cannot hold a number as large or as small as {value}")
    return int(exact) if exact == exact.to_integral_value() else exact


def members(value: frozenset[Any] | set[Any]) -> frozenset[str]:
    """A set as a store gives it back. Raises ValueError for an empty one, TypeError for one not of strings."""
    if not value:
        raise ValueError("a row cannot hold an empty set: leave it out")
    for member in value:
        if not isinstance(member, str):
            raise TypeError(f"a row holds sets of strings, not of {type(member).__name__}")
    return frozenset(value)
