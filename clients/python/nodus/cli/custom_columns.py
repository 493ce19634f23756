"""``-o custom-columns=NAME:.metadata.name,PHASE:.status.phase``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodus._jsonpath import Path, parse_path, shown
from nodus.cli.failures import usage

MISSING = "<none>"
FORM = "NAME:.metadata.name,PHASE:.status.phase"


@dataclass(frozen=True)
class CustomColumns:
    """Headings and the paths of what stands below them."""

    header: tuple[str, ...]
    paths: tuple[Path, ...]

    def row(self, thing: Any) -> list[str]:
        """An object's cells; several values of one path stand with commas between, none as kubectl says it."""
        return [",".join(shown(value) for value in path.values(thing)) or MISSING for path in self.paths]


def parse(text: str) -> CustomColumns:
    """Read the text after ``custom-columns=``.

    Raises:
        Failure: it is not ``HEADING:PATH,…``.
    """
    pairs = [part.partition(":") for part in text.split(",")]
    if not all(heading and path for heading, _, path in pairs):
        raise usage(f"custom-columns={text}: write {FORM}", "InvalidCustomColumns")
    return CustomColumns(
        tuple(heading for heading, _, _ in pairs), tuple(parse_path(path) for _, _, path in pairs)
    )
