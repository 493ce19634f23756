"""Field selectors of lists: `spec.group=NAME`, joined by commas (NOD-470)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodus_core.kernel.errors import Refusal

FIELDS = ("metadata.name", "spec.agent", "spec.group", "status.phase")
LONGEST_SELECTOR = 1024
"""Characters; the longest name for each of the fields fits."""


@dataclass(frozen=True)
class Selector:
    """Terms that all hold: field, wanted value, and whether it must be equal or must differ."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object, as it is shown, has these values; a field that is not there is empty."""
        return all((_value(obj, field) == wanted) is equal for field, wanted, equal in self.terms)


def read_selector(text: str | None) -> Selector:
    """The selector of a `fieldSelector` parameter. Raises `Refusal` `BadRequest` naming what it cannot do."""
    if not text:
        return Selector()
    if len(text) > LONGEST_SELECTOR:
        message = f"fieldSelector has {len(text)} characters, at most {LONGEST_SELECTOR} are taken"
        raise Refusal("BadRequest", message)
    return Selector(tuple(map(_term, text.split(","))))


def _term(text: str) -> tuple[str, str, bool]:
    """One comparison: `FIELD=VALUE`, `FIELD==VALUE` or `FIELD!=VALUE`, with white space around either."""
    left, sign, right = text.partition("=")
    equal = not left.endswith("!")
    field = left.removesuffix("!").strip()
    wanted = (right.removeprefix("=") if equal else right).strip()
    if not sign or field not in FIELDS or "=" in wanted or "!" in wanted:
        message = f"fieldSelector takes FIELD=VALUE or FIELD!=VALUE with FIELD one of {', '.join(FIELDS)}"
        raise Refusal("BadRequest", message)
    return field, wanted, equal


def _value(obj: Mapping[str, Any], field: str) -> str:
    here: Any = obj
    for part in field.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here if isinstance(here, str) else ""
