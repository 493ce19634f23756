"""What is put at /opt/sandboxd."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from localstack.ecs_agent import runtime
from localstack.ecs_agent.runtime import RuntimeFolderError


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    folder.mkdir()
    for name in ("__init__.py", "__main__.py"):
        (folder / name).write_text("VALUE = 1\n")
        (folder / name).chmod(0o600)
    return folder


@pytest.mark.req("NOD-453")
def test_it_holds_the_daemon_what_it_imports_and_python(tmp_path: Path, package: Path) -> None:
    made = runtime.assemble(tmp_path / "runtimes", package)
    assert (made.folder / "app" / "demo" / "__main__.py").exists()
    for name in ("aiohttp", "yarl", "multidict", "idna"):
        assert (made.folder / "lib" / name / "__init__.py").exists()
    assert (made.folder / "enter.py").exists()
    assert (made.folder / "bin" / "python3").resolve() == made.interpreter.resolve()
    assert not (made.folder / "lib" / "pytest").exists()


def test_everybody_may_read_it_and_modules_are_compiled(tmp_path: Path, package: Path) -> None:
    made = runtime.assemble(tmp_path / "runtimes", package, required=())
    source = made.folder / "app" / "demo" / "__main__.py"
    assert stat.S_IMODE(source.stat().st_mode) == 0o644
    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o755
    assert list((source.parent / "__pycache__").glob("__main__.*.pyc"))


def test_the_same_contents_are_put_together_once(tmp_path: Path, package: Path) -> None:
    first = runtime.assemble(tmp_path / "runtimes", package, required=())
    assert runtime.assemble(tmp_path / "runtimes", package, required=()) == first
    (package / "__init__.py").write_text("VALUE = 2\n")
    second = runtime.assemble(tmp_path / "runtimes", package, required=())
    assert second.folder != first.folder
    assert (first.folder / "app" / "demo" / "__init__.py").read_text() == "VALUE = 1\n"


def test_what_is_missing_is_named(tmp_path: Path, package: Path) -> None:
    with pytest.raises(RuntimeFolderError, match="not-there-at-all"):
        runtime.assemble(tmp_path / "runtimes", package, required=("not-there-at-all",))
    with pytest.raises(RuntimeFolderError, match="__main__"):
        runtime.assemble(tmp_path / "runtimes", tmp_path, required=())
    assert not (tmp_path / "runtimes").exists()
