"""The order of a list: ``--sort-by PATH``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from nodus._jsonpath import Path, parse_path, shown


@dataclass(frozen=True)
class Key:
    """A path whose value orders objects: numbers and amounts by their size, everything else as text."""

    path: Path

    def sorted(self, things: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The objects in this order; those without the value first, as kubectl has them."""
        return sorted(things, key=self._rank)

    def _rank(self, thing: dict[str, Any]) -> tuple[int, Decimal, str]:
        values = self.path.values(thing)
        if not values:
            return 0, Decimal(0), ""
        number = _number(values[0])
        return (2, Decimal(0), shown(values[0])) if number is None else (1, number, "")


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


class KeyType(click.ParamType[Key]):
    """The option ``--sort-by``."""

    name = "PATH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Key:
        """Read the option."""
        return value if isinstance(value, Key) else Key(parse_path(str(value)))


KEY = KeyType()
