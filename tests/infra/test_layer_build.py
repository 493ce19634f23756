"""The third-party layer: built from the lock file, for Lambda's platform, once."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from infra.constructs import layers
from infra.constructs.layers import LayerNotBuiltError, built_deps
from infra.settings import Settings
from layers.deps import build
from layers.deps.build import LayerBuildError, Target, build_layer, find_uv, is_current

TARGET = Target(python=build.RUNNING, architecture="x86_64")
OTHER_PYTHON = "3.14" if build.RUNNING != "3.14" else "3.13"


class Uv:
    """Stands in for uv: remembers what it was told and unpacks one package with all kinds of leftovers."""

    def __init__(self, size: int = 10) -> None:
        self.told: list[Sequence[str]] = []
        self._size = size

    def __call__(self, command: Sequence[str]) -> None:
        self.told.append(command)
        if command[1] != "pip":
            return
        package = Path(command[command.index("--target") + 1]) / "thing"
        for name in ("code.py", "tests/test_code.py", "__pycache__/code.pyc", "../thing-1.dist-info/RECORD"):
            path = package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (package / "code.py").write_bytes(b"#" * self._size)
        (package / "../thing-1.dist-info/METADATA").touch()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "uv.lock").write_text("version = 1\n")
    return tmp_path


def made(checkout: Path, uv: Uv | None = None, target: Target = TARGET) -> Path:
    folder = checkout / "layers" / "deps" / "build"
    build_layer(target, "uv", uv or Uv(), folder, checkout)
    return folder


def test_only_what_is_imported_stays(checkout: Path) -> None:
    folder = made(checkout)
    files = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
    bytecode = f"python/thing/__pycache__/code.{sys.implementation.cache_tag}.pyc"
    assert files == {"python/thing/code.py", bytecode, "python/thing-1.dist-info/METADATA", build.STAMP}


def test_another_python_s_layer_has_no_bytecode(checkout: Path) -> None:
    folder = made(checkout, target=Target(python=OTHER_PYTHON, architecture="x86_64"))
    assert not list(folder.rglob("*.pyc"))


def test_bytecode_is_read_without_looking_at_the_source(checkout: Path) -> None:
    (cached,) = made(checkout).rglob("*.pyc")
    assert int.from_bytes(cached.read_bytes()[4:8], "little") == 0b01  # by hash, unchecked (PEP 552)


def test_uv_installs_the_locked_wheels_of_the_target_and_checks_their_hashes(checkout: Path) -> None:
    uv = Uv()
    made(checkout, uv, Target(python="3.13", architecture="arm64"))
    export, install = (" ".join(each) for each in uv.told)
    assert "--frozen --only-group layer" in export
    for words in (
        "--require-hashes",
        "--only-binary :all:",
        "--python-version 3.13",
        "aarch64-manylinux_2_28",
    ):
        assert words in install


def test_a_layer_is_current_until_its_lock_or_its_target_changes(checkout: Path) -> None:
    folder = checkout / "layers" / "deps" / "build"
    assert not is_current(TARGET, folder, checkout)
    made(checkout)
    assert is_current(TARGET, folder, checkout)
    assert not is_current(Target(python=OTHER_PYTHON, architecture="x86_64"), folder, checkout)
    assert not is_current(Target(python=build.RUNNING, architecture="arm64"), folder, checkout)
    (checkout / "uv.lock").write_text("version = 2\n")
    assert not is_current(TARGET, folder, checkout)


def test_a_build_that_fails_leaves_the_old_layer_alone(checkout: Path) -> None:
    folder = made(checkout)
    (checkout / "uv.lock").write_text("version = 2\n")

    def broken(command: Sequence[str]) -> None:
        raise LayerBuildError("no wheel")

    with pytest.raises(LayerBuildError, match="no wheel"):
        build_layer(TARGET, "uv", broken, folder, checkout)
    assert (folder / "python" / "thing" / "code.py").is_file()
    assert not is_current(TARGET, folder, checkout)
    assert [each.name for each in folder.parent.iterdir()] == ["build"]


def test_a_layer_that_lambda_would_refuse_is_refused_here(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "LAMBDA_LIMIT", build.RESERVED_FOR_OURS + 100)
    with pytest.raises(LayerBuildError, match="Take a package out"):
        made(checkout, Uv(size=101))


def test_equal_input_gives_equal_bytes_and_times(checkout: Path) -> None:
    def contents() -> dict[str, tuple[bytes, float]]:
        folder = made(checkout)
        files = [each for each in folder.rglob("*") if each.is_file() and each.name != build.STAMP]
        return {str(each): (each.read_bytes(), each.stat().st_mtime) for each in files}

    first = contents()
    assert first == contents()
    assert {time for _, time in first.values()} == {build.FIRST_ZIP_TIME}


def test_uv_is_found_by_its_variable_then_on_the_path(tmp_path: Path) -> None:
    for name in ("named", "uv"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    environment = {"NODUS_UV": str(tmp_path / "named"), "PATH": str(tmp_path)}
    assert find_uv(environment) == str(tmp_path / "named")
    assert find_uv({"PATH": str(tmp_path)}) == str(tmp_path / "uv")


@pytest.mark.parametrize(
    ("environment", "said"), [({"PATH": os.devnull}, "Install it"), ({"NODUS_UV": "/none"}, "'/none'")]
)
def test_a_missing_uv_is_said_with_its_remedy(environment: dict[str, str], said: str) -> None:
    with pytest.raises(LayerBuildError, match=said):
        find_uv(environment)


def test_synthesis_without_the_layer_names_the_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "is_current", lambda target: False)
    with pytest.raises(
        LayerNotBuiltError, match=r"python3 layers/deps/build\.py --python 3\.12 --architecture arm64"
    ):
        built_deps(Settings(python_version="3.12", architecture="arm64"))
