"""Amounts of US dollars as the wire has them."""

from __future__ import annotations

import re
from decimal import Decimal

_MONEY = re.compile(r"\d+(\.\d{1,6})?")


def money(amount: str | Decimal | int | None) -> str | None:
    """An amount of US dollars as the wire has it (NODQ-92).

    Raises:
        TypeError: a binary float, which cannot hold most amounts exactly.
        ValueError: not a positive amount with at most six decimals.
    """
    if amount is None:
        return None
    if isinstance(amount, (bool, float)):
        raise TypeError(f"give money as a text: {str(amount)!r}")
    text = f"{amount:f}" if isinstance(amount, Decimal) else str(amount)
    if not _MONEY.fullmatch(text) or not Decimal(text):
        raise ValueError(
            f"{text!r} is no amount of US dollars such as '0.50' (above 0, at most six decimals)"
        )
    return text
