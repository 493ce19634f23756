"""Paths into objects, in the part of kubectl's JSONPath that scripts use."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, cast

from nodus.errors import NodusError

_STEP = re.compile(
    r"\.(?P<field>[A-Za-z_$][\w$-]*)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<quote>['\"])(?P<key>[^'\"]*)(?P=quote)\]"
    r"|(?P<all>\[\*\]|\.\*)"
)
_ALL = object()


class Path(NamedTuple):
    """One path; a step is a field's name, an index, or all there are."""

    text: str
    steps: tuple[Any, ...]

    def values(self, root: Any) -> list[Any]:
        """What the path leads to; nothing where it does not exist."""
        found = [root]
        for step in self.steps:
            found = [below for value in found for below in _below(value, step)]
        return found


def parse_path(text: str) -> Path:
    """Read one path, with or without its braces.

    Raises:
        NodusError: it is none, or uses what is not supported.
    """
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    rest = inner.removeprefix("$").removeprefix("@")
    if rest and rest[0] not in ".[":
        rest = "." + rest
    if rest == ".":
        return Path(text, ())
    steps: list[Any] = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise NodusError(
                f"JSONPath {text!r}: cannot read {rest[position:]!r}; there are .field, ['field'], [0], [-1], [*]",
                reason="InvalidJSONPath",
            )
        steps.append(_step(match))
        position = match.end()
    return Path(text, tuple(steps))


def _step(match: re.Match[str]) -> Any:
    if match["all"]:
        return _ALL
    if match["index"]:
        return int(match["index"])
    return match["field"] if match["field"] is not None else match["key"]


def _below(value: Any, step: Any) -> list[Any]:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if step is _ALL:
            return list(fields.values())
        return [fields[step]] if step in fields else []
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if step is _ALL:
            return list(items)
        return [items[step]] if isinstance(step, int) and -len(items) <= step < len(items) else []
    return []


def shown(value: Any) -> str:
    """A value as a template prints it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
