"""`make coverage-spec`: for each section of the catalogues, the rows that a passing test proves, and the others.

A row is proved when the last run of each test that names it has passed.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import yaml

ROWS = Path(__file__).with_name("rows.yaml")

_RANGE = re.compile(r"^([A-Z]+)-(\d+)(?:\.\.(\d+))?$")


def rows_of(spans: list[str]) -> list[str]:
    """`["NOD-001..003"]` as `["NOD-001", "NOD-002", "NOD-003"]`."""
    found: list[str] = []
    for span in spans:
        match = _RANGE.match(span)
        if match is None:
            raise ValueError(f"{ROWS}: {span!r} is no range of rows")
        prefix, first, last = match.group(1), match.group(2), match.group(3) or match.group(2)
        found += [f"{prefix}-{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return found


def proved(folder: Path) -> set[str]:
    """Rows of which every test that names them has passed."""
    return {
        path.stem
        for path in folder.glob("*.json")
        if (results := json.loads(path.read_text())) and all(results.values())
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proved", type=Path, default=Path(".state/proved"))
    parser.add_argument("--missing", action="store_true", help="list the rows without a passing test")
    options = parser.parse_args()
    catalogues: dict[str, dict[str, list[str]]] = yaml.safe_load(ROWS.read_text())
    done = proved(options.proved)
    if not done:
        print("no results yet: run `make test` first", file=sys.stderr)
        return 1
    for catalogue, sections in catalogues.items():
        rows = [row for spans in sections.values() for row in rows_of(spans)]
        print(f"\n{catalogue}: {len(done.intersection(rows))} of {len(rows)} rows")
        for section, spans in sections.items():
            _print_section(section, rows_of(spans), done, missing=options.missing)
    return 0


def _print_section(section: str, rows: list[str], done: set[str], *, missing: bool) -> None:
    without = [row for row in rows if row not in done]
    print(f"  {len(rows) - len(without):4d} / {len(rows):<4d} {section}")
    if missing and without:
        print(f"              without: {' '.join(without)}")


if __name__ == "__main__":
    sys.exit(main())
