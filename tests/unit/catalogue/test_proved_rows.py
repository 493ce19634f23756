"""Which rows count as proved: only those whose every test passed, set-up included, and is still there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[2] / "conftest.py"

TESTS = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("no cloud")

@pytest.fixture
def gone():
    yield
    raise RuntimeError("left something behind")

@pytest.mark.req("A-1")
def test_passes(): pass

@pytest.mark.req("A-2")
def test_is_skipped(): pytest.skip("not here")

@pytest.mark.req("A-3")
def test_has_no_setup(broken): pass

@pytest.mark.req("A-4")
def test_cannot_be_taken_down(gone): pass

@pytest.mark.req("A-5")
@pytest.mark.skip
def test_is_never_run(): pass
"""


class Suite:
    """A suite of tests in a folder of its own, with this project's notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "conftest.py").write_text(CONFTEST.read_text())
        (folder / "pytest.ini").write_text("[pytest]\nmarkers = req\n")
        self.write(TESTS)

    def write(self, text: str, name: str = "test_rows.py") -> None:
        (self.folder / name).write_text(text)

    def run(self, *words: str) -> dict[str, dict[str, bool]]:
        """Runs it; what is noted afterwards: row -> test -> passed."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            *words,
        ]
        subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, check=False)
        files = sorted((self.folder / ".state" / "proved").glob("*.json"))
        return {path.stem: json.loads(path.read_text()) for path in files}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_only_a_test_that_ran_and_passed_proves_its_row(suite: Suite, processes: str) -> None:
    noted = suite.run("-n", processes)
    passed = {row: list(tests.values()) for row, tests in noted.items()}
    assert passed == {"A-1": [True], "A-2": [False], "A-3": [False], "A-4": [False], "A-5": [False]}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_test_that_is_no_more_neither_proves_nor_spoils_a_row(suite: Suite, processes: str) -> None:
    suite.write("import pytest\n@pytest.mark.req('A-1')\ndef test_fails(): assert False\n", "test_other.py")
    suite.run()
    suite.write("import pytest\n@pytest.mark.req('A-9')\ndef test_passes(): pass\n")
    (suite.folder / "test_other.py").unlink()
    noted = suite.run("-n", processes)
    assert noted["A-9"] == {"test_rows.py::test_passes": True}
    assert {row for row, tests in noted.items() if tests} == {"A-9"}


def test_running_a_part_forgets_nothing_of_the_rest(suite: Suite) -> None:
    before = suite.run()
    assert suite.run("test_rows.py::test_is_skipped") == before
    assert suite.run("-k", "test_is_skipped") == before
