"""What every test shares: rows of the catalogues that passing tests prove, kept for `make coverage-spec`, and how
much Hypothesis tries: the same examples each time; with NODUS_PROPERTY_EXAMPLES=N others, N for each test."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PROVED = Path(os.environ.get("NODUS_STATE", ".state")) / "proved"
"""A file for each row: the tests that name it, and whether each passed when it ran last."""

COLLECTS = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
"""Whether this process is the one that looks through what was collected: every worker collects everything."""


# No deadline: an example may take long on a machine that does much else.
_UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
settings.register_profile("same", parent=_UNHURRIED, derandomize=True, database=None)
settings.register_profile(
    "search",
    parent=_UNHURRIED,
    max_examples=int(os.environ.get("NODUS_PROPERTY_EXAMPLES", "100")),
    print_blob=True,
)
settings.load_profile("search" if "NODUS_PROPERTY_EXAMPLES" in os.environ else "same")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before any test is deselected: a file's tests are complete here, unless single ones were named."""
    named: dict[str, set[str]] = {}
    for item in items:
        rows = [row for mark in item.iter_markers("req") for row in mark.args]
        item.user_properties.append(("req", rows))
        named[item.nodeid] = set(rows)
    whole = not any("::" in word for word in config.args) and not config.getoption("lf", default=False)
    if COLLECTS and whole:
        _forget_others(named)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called where the reports come together, also when tests run in several processes."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    if report.when != "call" and report.passed:
        return  # set-up and tear-down prove nothing; one that fails, or skips, takes the proof away
    rows: list[str] = dict(report.user_properties).get("req", [])  # type: ignore[assignment]
    for row in rows:
        _note(row, report.nodeid, passed=report.passed)


def _note(row: str, test: str, *, passed: bool) -> None:
    path = PROVED / f"{row}.json"
    known: dict[str, bool] = json.loads(path.read_text()) if path.exists() else {}
    _write(path, {**known, test: passed})


def _forget_others(named: dict[str, set[str]]) -> None:
    """Forget tests that are no more, or name the row no more, of the files that were collected or are gone."""
    files = {test.partition("::")[0] for test in named}
    for path in PROVED.glob("*.json"):
        known: dict[str, bool] = json.loads(path.read_text())
        kept = {test: passed for test, passed in known.items() if _counts(path.stem, test, named, files)}
        if kept != known:
            _write(path, kept)


def _counts(row: str, test: str, named: dict[str, set[str]], files: set[str]) -> bool:
    file = test.partition("::")[0]
    return row in named.get(test, ()) if file in files else Path(file).exists()


def _write(path: Path, results: dict[str, bool]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")  # two sessions may note at once: a file is always whole
    fresh.write_text(json.dumps(results, indent=1, sort_keys=True))
    fresh.replace(path)
