"""The folder that is shown as /opt/sandboxd: the daemon, what it imports, and the entry code.

It is a copy, named after its contents: it does not change while sandboxes run, everybody inside may read it
whatever the umask of the checkout was, and its modules are compiled once instead of at each start.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import platform
import py_compile
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from localstack.ecs_agent import mounts

REQUIRED = ("aiohttp",)
_ENTER = Path(__file__).with_name("enter.py")
_EGRESS_PROXY = Path(__file__).parents[2] / "sandbox_images" / "egress_proxy"
"""Beside the daemon, which knows how commands find it; the agent runs it from here as well."""
_IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


class RuntimeFolderError(Exception):
    """The runtime cannot be put together; the message says what is missing."""


@dataclass(frozen=True)
class Runtime:
    """A finished runtime.

    Args:
        folder: on the machine.
        interpreter: real path of the interpreter, inside and outside.
        prefix: its installation.
        module: name of the daemon's package.
    """

    folder: Path
    interpreter: Path
    prefix: Path
    module: str

    def import_path(self, root: str = mounts.RUNTIME) -> tuple[str, ...]:
        """Folders for `sys.path`, when the runtime is shown at `root`."""
        return (f"{root}/app", f"{root}/lib")


def assemble(
    parent: Path,
    package: Path,
    *,
    required: Sequence[str] = REQUIRED,
    search: Sequence[str] | None = None,
) -> Runtime:
    """Put the runtime together below `parent`, or find it there.

    Args:
        parent: folder for runtimes.
        package: the daemon's package, for example `sandbox_images/sandboxd`.
        required: distributions that it imports, with all they require.
        search: folders to look for them; default: those of this environment.

    Raises:
        RuntimeFolderError: the package or a distribution is missing.
    """
    if not (package / "__main__.py").is_file():
        raise RuntimeFolderError(f"{package} is not a package that can be run: it has no __main__.py")
    distributions = _closure(required, sys.path if search is None else search)
    folder = parent / _fingerprint(package, distributions)
    if not folder.exists():
        parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=parent, prefix=".draft-"))
        try:
            _fill(draft, package, distributions)
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return Runtime(folder, _interpreter(), Path(sys.base_prefix).resolve(), package.name)


def _interpreter() -> Path:
    """The interpreter below this environment, free of links: a virtual environment is not shown inside."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))


def _fill(folder: Path, package: Path, distributions: Sequence[Distribution]) -> None:
    shutil.copytree(package, folder / "app" / package.name, ignore=_IGNORED)
    shutil.copytree(_EGRESS_PROXY, folder / "app" / _EGRESS_PROXY.name, ignore=_IGNORED)
    library = folder / "lib"
    library.mkdir()
    for distribution in distributions:
        _copy_distribution(distribution, library)
    shutil.copy(_ENTER, folder / "enter.py")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("python3", "python"):
        (programs / name).symlink_to(_interpreter())
    for part in ("app", "lib"):
        compileall.compile_dir(
            folder / part,
            ddir=f"{mounts.RUNTIME}/{part}",
            quiet=1,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def _copy_distribution(distribution: Distribution, library: Path) -> None:
    for entry in distribution.files or ():
        if entry.is_absolute() or ".." in entry.parts or "__pycache__" in entry.parts:
            continue  # scripts lie outside of the library
        target = library.joinpath(*entry.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(str(entry.locate())), target)


def _closure(required: Sequence[str], search: Sequence[str]) -> list[Distribution]:
    """`required` and all that they require.

    A requirement that is not installed is one whose condition (an older Python) does not hold here: the
    installer has seen to the others.
    """
    known = {_canonical(found.metadata["Name"]): found for found in Distribution.discover(path=list(search))}
    missing = [name for name in required if _canonical(name) not in known]
    if missing:
        raise RuntimeFolderError(f"not installed in this environment: {', '.join(missing)}; run `make setup`")
    chosen: dict[str, Distribution] = {}
    waiting = list(required)
    while waiting:
        name = _canonical(waiting.pop())
        if name in chosen or name not in known:
            continue
        chosen[name] = known[name]
        waiting += [_requirement_name(line) for line in known[name].requires or () if "extra ==" not in line]
    return [chosen[name] for name in sorted(chosen)]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirement_name(line: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", line)
    return match.group() if match else ""


def _fingerprint(package: Path, distributions: Sequence[Distribution]) -> str:
    digest = hashlib.sha256(f"{platform.python_version()}\0{_interpreter()}\0{package.name}".encode())
    for distribution in distributions:
        digest.update(f"\0{distribution.metadata['Name']}=={distribution.version}".encode())
    code = [*_EGRESS_PROXY.rglob("*.py"), *package.rglob("*.py")]
    for path in sorted([_ENTER, *code, *package.rglob("*.json"), *package.rglob("*.pem")]):
        digest.update(f"\0{path.relative_to(path.anchor)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
