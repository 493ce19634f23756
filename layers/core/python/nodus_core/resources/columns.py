"""Columns of the tables in which objects are listed: what a cell shows of an object as it is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Shown = Mapping[str, Any]
Type = Literal["string", "integer", "date"]
READY = "Ready"
"""The condition that says whether an object does what it is for."""
LONGEST_PREVIEW = 60
"""Characters of a text of many words that a cell shows."""


@dataclass(frozen=True)
class Column:
    """One column. `value` is a dotted path or a function of the object; `priority` 1 is for wide tables only.

    A column of the type `date` holds a moment, which is shown as the time since then.
    """

    name: str
    value: str | Callable[[Shown], Any]
    description: str
    type: Type = "string"
    priority: int = 0

    def cell(self, shown: Shown) -> Any:
        """What stands in the column for an object; None where it has nothing of the kind."""
        return pick(shown, self.value) if isinstance(self.value, str) else self.value(shown)


def pick(shown: Any, path: str) -> Any:
    """The value at a dotted path, or None."""
    for name in path.split("."):
        if not isinstance(shown, Mapping):
            return None
        shown = cast("Shown", shown).get(name)
    return shown


def dollars(path: str) -> Callable[[Shown], str | None]:
    """An amount of money at a path."""

    def cell(shown: Shown) -> str | None:
        value = pick(shown, path)
        return None if value is None else f"${value}"

    return cell


def joined(path: str) -> Callable[[Shown], str]:
    """A list of words at a path."""
    return lambda shown: ",".join(str(word) for word in pick(shown, path) or ())


def preview(path: str) -> Callable[[Shown], str]:
    """The beginning of a text at a path, in one line."""

    def cell(shown: Shown) -> str:
        text = " ".join(str(pick(shown, path) or "").split())
        return text if len(text) <= LONGEST_PREVIEW else text[: LONGEST_PREVIEW - 1] + "…"

    return cell


def readiness(shown: Shown) -> str | None:
    """`Ready`, or the reason for which an object is not."""
    for condition in pick(shown, "status.conditions") or ():
        if pick(condition, "type") == READY:
            return READY if pick(condition, "status") == "True" else pick(condition, "reason")
    return None


NAME = Column("Name", "metadata.name", "Name of the object; unique for its kind in its project.")
REVISION = Column("Revision", "metadata.generation", "How often the spec was written.", "integer")
AGE = Column("Age", "metadata.creationTimestamp", "Time since the object was made.", "date")
