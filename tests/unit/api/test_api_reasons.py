"""Every word of refusal has one code and one line on its page.

That no other word is used is the type checker's to see (`kernel.errors.ApiReason`), and the constructor's.
"""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from nodus_core.kernel.errors import ApiReason, Refusal

from functions.api.errors import CODES, to_failure

ROOT = Path(__file__).resolve().parents[3]
TABLES = (ROOT / "functions/api/errors.py", ROOT / "layers/core/python/nodus_core/kernel/errors.py")
SOURCES = [
    source
    for folder in ("layers/core/python/nodus_core", "functions")
    for source in (ROOT / folder).rglob("*.py")
    if source not in TABLES
]


def test_the_page_lists_the_table() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    listed = {word: int(code) for word, code in re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)}
    assert listed == CODES


def test_every_reason_has_a_code() -> None:
    assert set(get_args(ApiReason)) == CODES.keys()
    for reason in get_args(ApiReason):
        assert to_failure(Refusal(reason, "no"), "r", repeatable=False).code == CODES[reason]


def test_a_word_that_is_not_the_apis_is_a_fault_of_ours() -> None:
    failure = to_failure(Refusal("Gone", "no"), "r", repeatable=False)
    assert (failure.code, failure.reason, failure.ours) == (500, "InternalError", True)


def test_no_other_word_can_be_said() -> None:
    word: Any = "Nonsense"
    with pytest.raises(ValueError, match="Nonsense"):
        Refusal(word, "no")


def test_every_reason_in_the_table_is_one_that_a_caller_may_meet() -> None:
    used = "".join(source.read_text() for source in SOURCES)
    # These two are said where every exception becomes a `Status`.
    used += TABLES[0].read_text().partition("def to_failure")[2]
    assert {word for word in CODES if f'"{word}"' not in used} == set()
