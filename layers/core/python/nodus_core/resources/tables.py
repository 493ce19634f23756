"""Objects as rows: `meta.k8s.io/v1` `Table`, in which kubectl asks for what it prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from nodus_core.kernel.text import neutral
from nodus_core.kernel.times import moment
from nodus_core.resources.columns import Column, Shown
from nodus_core.resources.kinds import Kind

TABLE_VERSION = "meta.k8s.io/v1"
Include = Literal["None", "Metadata", "Object"]
"""What a row holds beside its cells."""

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "y": 365 * 86_400}
_AGES: tuple[tuple[float, str, str | None], ...] = (
    (120, "s", None),
    (600, "m", "s"),
    (3 * 3_600, "m", None),
    (8 * 3_600, "h", "m"),
    (48 * 3_600, "h", None),
    (8 * 86_400, "d", "h"),
    (2 * 365 * 86_400, "d", None),
    (8 * 365 * 86_400, "y", "d"),
    (float("inf"), "y", None),
)
"""Below how many seconds an age is shown in which unit, and beside it in which smaller one."""


@dataclass(frozen=True)
class Tables:
    """Tables of one kind, as of a moment: ages are counted up to it."""

    kind: Kind
    now: datetime
    include: Include = "Metadata"

    def table(
        self,
        objects: Sequence[Shown],
        metadata: Mapping[str, Any],
        *,
        headed: bool = True,
        cells: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Objects as a table.

        `headed`: with its columns, which a watcher gets with the first event only. `cells`: by column, what was last
        shown of an object that is gone, and of which only the metadata is left.
        """
        return {
            "kind": "Table",
            "apiVersion": TABLE_VERSION,
            "metadata": dict(metadata),
            "columnDefinitions": [_definition(column) for column in self.kind.columns] if headed else [],
            "rows": [self._row(shown, cells or {}) for shown in objects],
        }

    def _row(self, shown: Shown, last: Mapping[str, Any]) -> dict[str, Any]:
        cells = [
            self._cell(column, last.get(column.name, column.cell(shown))) for column in self.kind.columns
        ]
        match self.include:
            case "None":
                return {"cells": cells}
            case "Object":
                return {"cells": cells, "object": shown}
            case "Metadata":
                return {"cells": cells, "object": _partial(shown)}

    def _cell(self, column: Column, value: Any) -> Any:
        if column.type == "date" and isinstance(value, str):
            return age((self.now - moment(value)).total_seconds())
        return neutral(value) if isinstance(value, str) else value


def age(seconds: float) -> str:
    """A span of time as kubectl shows ages: in one unit, or in two while the first one is still small."""
    whole = max(int(seconds), 0)
    unit, below = next((unit, below) for limit, unit, below in _AGES if whole < limit)
    count, rest = divmod(whole, _SECONDS[unit])
    more = rest // _SECONDS[below] if below else 0
    return f"{count}{unit}{more}{below}" if more else f"{count}{unit}"


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": "string" if column.type == "date" else column.type,
        "format": "name" if column.name == "Name" else "",
        "description": column.description,
        "priority": column.priority,
    }


def _partial(shown: Shown) -> dict[str, Any]:
    """What is known of an object without reading it: kubectl takes the name and the position from it."""
    metadata = cast("Mapping[str, Any]", shown["metadata"])
    return {"kind": "PartialObjectMetadata", "apiVersion": TABLE_VERSION, "metadata": dict(metadata)}
