"""Builds the third-party layer from the lock file, without Docker.

Run it from anywhere: `python3 layers/deps/build.py`. It exports the locked group `layer`, installs the wheels
for Lambda's Python and platform into `layers/deps/build/python`, and does nothing when that was done already.
"""

import argparse
import compileall
import hashlib
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(__file__).resolve().parent / "build"
STAMP = ".stamp"
# Lambda's limit for a function and all of its layers, unpacked, in bytes.
LAMBDA_LIMIT = 250 * 1024 * 1024
# What is left for the functions and our own layer, in bytes.
RESERVED_FOR_OURS = 20 * 1024 * 1024
# The host's Python and processor as Lambda writes them: the local cloud runs functions with the interpreter that runs
# everything else.
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
HOST: Literal["x86_64", "arm64"] = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x86_64"

# Raise this when the steps below make something else of the same lock file.
RECIPE = "2"

# Never imported: bytecode of whoever installs, test suites, installers' notes. RECORD lists hashes of files
# that were removed; METADATA stays, since packages read their own version from it.
UNUSED_FOLDERS = {"__pycache__", "tests", "test"}
UNUSED_FILES = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}
# 1980-01-01, in seconds: the first time that a zip archive can say.
FIRST_ZIP_TIME = 315532800

Run = Callable[[Sequence[str]], None]


class LayerBuildError(Exception):
    """The layer cannot be built; the message says what to do."""


@dataclass(frozen=True)
class Target:
    """What a layer is built for.

    Attributes:
        python: Lambda's Python, for example `3.11`.
        architecture: `x86_64` or `arm64`.
    """

    python: str
    architecture: str

    @property
    def platform(self) -> str:
        """uv's name of the platform: Python 3.11 runs on Amazon Linux 2 (glibc 2.26), later ones on 2023."""
        machine = {"x86_64": "x86_64", "arm64": "aarch64"}[self.architecture]
        return f"{machine}-manylinux2014" if self.python == "3.11" else f"{machine}-manylinux_2_28"

    def stamp(self, lock: bytes) -> str:
        """What the layer is made of, as one word: equal stamps mean equal layers."""
        parts = (RECIPE.encode(), self.python.encode(), self.platform.encode(), lock)
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_current(target: Target, build: Path = BUILD, root: Path = ROOT) -> bool:
    """Whether the folder holds the layer of this lock file for this target."""
    stamp = build / STAMP
    return stamp.is_file() and stamp.read_text() == target.stamp((root / "uv.lock").read_bytes())


def find_uv(environment: dict[str, str] | None = None) -> str:
    """Finds uv by `NODUS_UV`, then on the path.

    Raises:
        LayerBuildError: there is none.
    """
    environment = dict(os.environ) if environment is None else environment
    named = environment.get("NODUS_UV")
    if named and not os.access(named, os.X_OK):
        raise LayerBuildError(f"NODUS_UV names {named!r}, which is no program. Unset it or correct it.")
    found = named or shutil.which("uv", path=environment.get("PATH"))
    if not found:
        raise LayerBuildError(
            "uv is needed to build the third-party layer and is not on the path. Install it "
            "(python3 -m pip install uv) or name it in NODUS_UV."
        )
    return found


def build_layer(target: Target, uv: str, run: Run, build: Path = BUILD, root: Path = ROOT) -> int:
    """Makes the folder anew and puts it in the old one's place.

    Args:
        target: what to build for.
        uv: the program.
        run: runs a command and raises when it fails.
        build: where the layer goes.
        root: the checkout with `uv.lock`.

    Returns:
        The layer's size in bytes.

    Raises:
        LayerBuildError: a package has no wheel for the target, or the layer would be too large.
    """
    lock = (root / "uv.lock").read_bytes()
    build.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build.parent, prefix=".build-") as work:
        fresh = Path(work) / "layer"
        for command in _commands(target, uv, root, Path(work)):
            run(command)
        strip(fresh)
        compile_all(fresh, target)
        set_times(fresh)
        size = sum(path.stat().st_size for path in fresh.rglob("*") if path.is_file())
        if size > LAMBDA_LIMIT - RESERVED_FOR_OURS:
            raise LayerBuildError(
                f"The third-party layer has {size:,} bytes; Lambda allows {LAMBDA_LIMIT:,} for a function with "
                f"all its layers, and {RESERVED_FOR_OURS:,} are ours. Take a package out of the group `layer`."
            )
        (fresh / STAMP).write_text(target.stamp(lock))
        shutil.rmtree(build, ignore_errors=True)
        fresh.rename(build)
    return size


def _commands(target: Target, uv: str, root: Path, work: Path) -> list[list[str]]:
    """What uv is told: write the group's locked packages with their hashes, and unpack exactly those wheels."""
    requirements = str(work / "requirements.txt")
    export = [
        *(uv, "export", "--project", str(root), "--frozen", "--only-group", "layer"),
        *("--no-emit-project", "--no-header", "--quiet", "--output-file", requirements),
    ]
    install = [
        *(uv, "pip", "install", "--quiet", "--no-config", "--no-deps", "--require-hashes"),
        *("--requirement", requirements, "--target", str(work / "layer" / "python"), "--link-mode", "copy"),
        *("--only-binary", ":all:", "--python-version", target.python, "--python-platform", target.platform),
    ]
    return [export, install]


def strip(folder: Path) -> None:
    """Removes what is never imported, and bytecode of whoever unpacked it."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and path.name in UNUSED_FOLDERS:
            shutil.rmtree(path)
        elif path.is_file() and (path.name in UNUSED_FILES or path.suffix == ".pyc"):
            path.unlink()
    shutil.rmtree(folder / "python" / "bin", ignore_errors=True)


def compile_all(folder: Path, target: Target) -> None:
    """Adds bytecode, without which every cold start compiles what it imports (`anthropic` alone: 3 s more).

    A layer is read-only, so Python can keep none there. Bytecode of the `unchecked-hash` kind depends on nothing
    but the source. It is made only when this Python is the target's, for no other can make it.
    """
    if target.python != RUNNING:
        return
    compileall.compile_dir(
        folder / "python",
        quiet=2,
        stripdir=folder,
        prependdir="/opt",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def set_times(folder: Path) -> None:
    """Sets one modification time, so that equal input gives equal bytes."""
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (FIRST_ZIP_TIME, FIRST_ZIP_TIME), follow_symlinks=False)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own words
    if done.returncode:
        raise LayerBuildError(f"{' '.join(command[:3])} … failed:\n{done.stderr.strip()}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds the layer unless it is current; 0 when it is there, 1 with a message when it cannot be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=RUNNING)
    parser.add_argument("--architecture", default=HOST, choices=("x86_64", "arm64"))
    chosen = parser.parse_args(arguments)
    target = Target(python=chosen.python, architecture=chosen.architecture)
    if is_current(target):
        print(f"{BUILD} is up to date", file=sys.stderr)  # noqa: T201 - a command's answer
        return 0
    try:
        size = build_layer(target, find_uv(), _run)
    except LayerBuildError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command's answer
        return 1
    print(f"{BUILD}: {size / 1e6:.0f} MB for Python {target.python}", file=sys.stderr)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
