"""What every test shares: rows of the catalogues that passing tests prove, kept for `make coverage-spec`."""

import json
import os
from pathlib import Path

import pytest

PROVED = Path(os.environ.get("NODUS_STATE", ".state")) / "proved"
"""A file for each row that a passing test proves; removed when a test of the row fails."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        rows = [row for mark in item.iter_markers("req") for row in mark.args]
        item.user_properties.append(("req", rows))


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called where the reports come together, also when tests run in several processes."""
    if os.environ.get("PYTEST_XDIST_WORKER") or report.when != "call":
        return
    rows: list[str] = dict(report.user_properties).get("req", [])  # type: ignore[assignment]
    for row in rows:
        _note(row, report.nodeid, passed=report.passed)


def _note(row: str, test: str, *, passed: bool) -> None:
    PROVED.mkdir(parents=True, exist_ok=True)
    path = PROVED / f"{row}.json"
    known: dict[str, bool] = json.loads(path.read_text()) if path.exists() else {}
    fresh = path.with_suffix(
        f".{os.getpid()}"
    )  # two sessions may note at once: each file is whole at any time
    fresh.write_text(json.dumps({**known, test: passed}, indent=1, sort_keys=True))
    fresh.replace(path)
