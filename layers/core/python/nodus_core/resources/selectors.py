"""Field selectors of lists: `spec.group=NAME`, joined by commas (NOD-470)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodus_core.kernel.errors import Refusal

FIELDS = ("metadata.name", "spec.agent", "spec.group", "status.phase")
_TERM = re.compile(r"\s*([A-Za-z.]+)\s*(!=|==|=)\s*([^,=!]*?)\s*")


@dataclass(frozen=True)
class Selector:
    """Terms that all hold: field, wanted value, and whether it must be equal or must differ."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object, as it is shown, has these values; a field that is not there is empty."""
        return all((_value(obj, field) == wanted) is equal for field, wanted, equal in self.terms)


def read_selector(text: str | None) -> Selector:
    """The selector of a `fieldSelector` parameter. Raises `Refusal` `BadRequest` naming what it cannot do."""
    terms: list[tuple[str, str, bool]] = []
    for part in (text or "").split(",") if text else []:
        match = _TERM.fullmatch(part)
        if match is None or match.group(1) not in FIELDS:
            message = f"fieldSelector takes FIELD=VALUE or FIELD!=VALUE with FIELD one of {', '.join(FIELDS)}"
            raise Refusal("BadRequest", message)
        terms.append((match.group(1), match.group(3), match.group(2) != "!="))
    return Selector(tuple(terms))


def _value(obj: Mapping[str, Any], field: str) -> str:
    here: Any = obj
    for part in field.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here if isinstance(here, str) else ""
