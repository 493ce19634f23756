"""What the types allow and what they refuse, as a person's editor sees it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CASES = Path(__file__).parent / "typing_cases"


@pytest.mark.timeout(180)
def test_right_calls_type_check_and_wrong_ones_do_not() -> None:
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        *(str(path) for path in sorted(CASES.glob("*.py"))),
    ]
    result = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    found = {
        (Path(entry["file"]).name, entry["range"]["start"]["line"] + 1, entry.get("rule"))
        for entry in json.loads(result.stdout)["generalDiagnostics"]
        if entry["severity"] == "error"
    }
    expected = {
        (path.name, number, marked[1])
        for path in CASES.glob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (marked := re.search(r"# (report\w+)$", line))
    }
    assert found == expected
    assert len(expected) > 15
