"""Objects as the server shows them: read by attribute or by key (NOD-519)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(wire_name: str) -> str:
    """The Python spelling of a wire name: ``taskId`` is ``task_id``, ``costUSD`` is ``cost_usd``."""
    return _WORD.sub("_", wire_name).lower()


def _seen(value: Any) -> Any:
    """Wrap mappings, also inside lists; leave everything else as it is."""
    if isinstance(value, Mapping):
        return Record(cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return [_seen(item) for item in cast("list[Any]", value)]
    return value


class Record:  # noqa: PLW1641 (it holds lists, so it is not hashable)
    """A read-only JSON object.

    ``record.started_at`` and ``record.startedAt`` read the field ``startedAt``; a field that is not there
    raises ``AttributeError``. ``record.get("passRate")`` gives ``None`` for it, or the default.
    ``record["startedAt"]`` and ``"startedAt" in record`` take wire names only.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields: dict[str, Any] = dict(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._fields:
            return _seen(self._fields[name])
        for wire_name, value in self._fields.items():
            if snake_case(wire_name) == name:
                return _seen(value)
        there = ", ".join(self._fields) or "none"
        raise AttributeError(
            f"no field {name!r} here (fields: {there}); .get({name!r}) gives None where it is optional"
        )

    def get(self, wire_name: str, default: Any = None) -> Any:
        """The value of a field by its wire name, or ``default`` when it is absent."""
        return _seen(self._fields[wire_name]) if wire_name in self._fields else default

    def __getitem__(self, wire_name: str) -> Any:
        return _seen(self._fields[wire_name])

    def __contains__(self, wire_name: object) -> bool:
        return wire_name in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Record):
            return self._fields == other._fields
        return self._fields == other if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return f"Record({self._fields!r})"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(snake_case(name) for name in self._fields)})

    def to_dict(self) -> dict[str, Any]:
        """The plain JSON object with its wire names (a copy of the outer level)."""
        return dict(self._fields)
