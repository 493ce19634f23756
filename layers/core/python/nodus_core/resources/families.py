"""The families of managed Claude, easiest first (NOD-012)."""

from typing import Literal

Family = Literal["haiku", "sonnet", "opus", "fable"]

FAMILIES: tuple[Family, ...] = ("haiku", "sonnet", "opus", "fable")
