"""Figures with their spread, and the tables that show them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Spread:
    """A median with the smallest and the largest of `count` measurements, all in one unit."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises ValueError where nothing was measured."""
        if not values:
            raise ValueError("nothing was measured")
        return cls(statistics.median(values), min(values), max(values), len(values))

    def __str__(self) -> str:
        return f"{shown(self.median)} [{shown(self.low)}-{shown(self.high)}]"


Cell = str | int | float | Spread | None


def shown(value: Cell) -> str:
    """A cell as people read it: three digits that count, thousands apart, nothing where nothing was measured."""
    if value is None:
        return "-"
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@dataclass(frozen=True)
class Table:
    """One table of the output. `note` says what its figures are compared with, and what they leave out."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""

    def text(self) -> str:
        """As Markdown, so that it can be pasted into docs/benchmarks.md as it stands."""
        lines = [self.columns, *(tuple(shown(cell) for cell in row) for row in self.rows)]
        widths = [max(len(line[index]) for line in lines) for index in range(len(self.columns))]
        rows = [
            " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines
        ]
        rule = " | ".join("-" * width for width in widths)
        body = "\n".join(f"| {row} |" for row in (rows[0], rule, *rows[1:]))
        return f"### {self.title}\n\n{body}\n" + (f"\n{self.note}\n" if self.note else "")

    def record(self) -> dict[str, Any]:
        """JSON-ready; a spread keeps its parts."""
        rows = [[asdict(cell) if isinstance(cell, Spread) else cell for cell in row] for row in self.rows]
        return {"title": self.title, "columns": self.columns, "rows": rows, "note": self.note}
