"""docs/invariants.md names tests and checks that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "docs" / "invariants.md").read_text())


def test_every_proof_that_the_page_names_exists() -> None:
    assert NAMED
    for file, name in NAMED:
        text = (ROOT / file).read_text()
        assert not name or re.search(rf"def {name}\(", text), f"{file} has no {name}"
