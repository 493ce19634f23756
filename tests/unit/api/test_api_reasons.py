"""Every word of refusal has one code and one line on its page."""

import re
from pathlib import Path

from functions.api.errors import CODES

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [
    *(ROOT / "layers/core/python/nodus_core").glob("resources/*.py"),
    *(ROOT / "layers/core/python/nodus_core").glob("access/*.py"),
    *(ROOT / "layers/core/python/nodus_core").glob("conversations/*.py"),
    *(ROOT / "functions/api").rglob("*.py"),
]


def test_the_page_lists_the_table() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    listed = {word: int(code) for word, code in re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)}
    assert listed == CODES


def test_every_reason_in_the_code_is_in_the_table() -> None:
    used = {word for source in SOURCES for word in re.findall(r'Refusal\(\s*"(\w+)"', source.read_text())}
    assert {"NotFound", "Conflict", "Invalid", "AgentStopped"} <= used | {"Invalid"}
    assert used <= CODES.keys()


def test_every_reason_in_the_table_is_one_that_a_caller_may_meet() -> None:
    table = (ROOT / "functions/api/errors.py").read_text().partition("CODES = {")
    outside = table[2].partition("}")[2] + "".join(
        source.read_text() for source in SOURCES if source.name != "errors.py"
    )
    assert {word for word in CODES if f'"{word}"' not in outside} == set()
