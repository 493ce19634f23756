"""Values out of objects, and how much of a text a table shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

PREVIEW_COLUMNS = 60


def pick(thing: Any, path: str) -> Any:
    """The value at a dotted path, or ``None``."""
    for name in path.split("."):
        if not isinstance(thing, Mapping):
            return None
        thing = cast("Mapping[str, Any]", thing).get(name)
    return thing


def moment(text: Any) -> datetime | None:
    """An RFC 3339 time, or ``None`` where there is none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
