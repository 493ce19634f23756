"""The folder of one sandbox on the machine, and what is written there about it.

sandboxes/ID/
    sandbox.json   its record: what to end after the agent itself has died
    etc/           generated files for /etc
    home/ workspace/ daemon/   its private folders; they disappear with it
    daemon.log     output of the daemon
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from localstack.ecs_agent import mounts
from localstack.ecs_agent.command import Users
from localstack.endpoints import write_private
from localstack.processes import signal_quietly, start_mark

ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RECORD = "sandbox.json"


class RecordError(Exception):
    """A record is damaged; the message names its file."""


@dataclass(frozen=True)
class Record:
    """What must be known about a sandbox when the agent that started it is gone.

    Args:
        task: ARN of its task.
        processes: pid -> start mark, of bubblewrap and of the sandbox's first process; empty while it starts.
    """

    task: str
    processes: dict[int, str]

    def end(self) -> int:
        """SIGKILL those of the processes that still run, and are still the same; answers how many."""
        ended = 0
        for pid, mark in self.processes.items():
            if start_mark(pid) == mark:
                signal_quietly(os.kill, pid, signal.SIGKILL)
                ended += 1
        return ended


class SandboxFolder:
    """One sandbox's folder."""

    def __init__(self, parent: Path, sandbox_id: str) -> None:
        """Name the folder; nothing is made.

        Raises:
            ValueError: the id cannot be the name of a folder.
        """
        if not ID_PATTERN.fullmatch(sandbox_id):
            raise ValueError(
                f"{sandbox_id!r} is not an id of a sandbox: letters, digits, '.', '_' and '-' only"
            )
        self.path = parent / sandbox_id

    @property
    def home(self) -> Path:
        return self.path / "home"

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def daemon(self) -> Path:
        return self.path / "daemon"

    @property
    def etc(self) -> Path:
        return self.path / "etc"

    @property
    def log(self) -> Path:
        return self.path / "daemon.log"

    def create(self, users: Users) -> None:
        """Make it, owned by the users that need it.

        Raises:
            FileExistsError: there is one.
            OSError: the disk is full, or files cannot be given to these users; nothing is left.
        """
        self.path.mkdir(mode=0o700, parents=True)
        try:
            self._fill(users)
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def _fill(self, users: Users) -> None:
        for folder, owner, mode in (
            (self.etc, None, 0o755),
            (self.home, users.host_command, 0o755),
            (self.workspace, users.host_command, 0o755),
            (self.daemon, users.host_daemon, 0o700),
        ):
            folder.mkdir()
            folder.chmod(mode)
            if owner is not None:
                os.chown(folder, owner, owner)
        mounts.write_etc(self.etc, dict(users.names))

    def log_tail(self, size: int) -> str:
        """The last `size` bytes of the daemon's output; empty when there is none to be read."""
        try:
            return self.log.read_bytes()[-size:].decode(errors="replace").strip()
        except OSError:
            return ""

    def write_record(self, record: Record) -> None:
        write_private(self.path / _RECORD, json.dumps(asdict(record)) + "\n")

    def read_record(self) -> Record | None:
        """The record; None when it was never written, so nothing was started.

        Raises:
            RecordError: there is one that cannot be read.
        """
        path = self.path / _RECORD
        try:
            data = json.loads(path.read_text())
            return Record(data["task"], {int(pid): mark for pid, mark in data["processes"].items()})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"{path} cannot be read: {error}") from error

    def remove(self) -> None:
        """Remove it with everything in it; the sandbox must be dead.

        Links are not followed. An ordinary user first gives itself back what a command locked.

        Raises:
            OSError: something cannot be removed.
        """
        if os.geteuid() != 0:
            for folder, names, _ in os.walk(self.path):
                for name in names:  # before walk goes into them
                    inner = Path(folder, name)
                    if not inner.is_symlink():
                        inner.chmod(0o700)
        if self.path.exists():
            shutil.rmtree(self.path)


def existing(parent: Path) -> Iterator[SandboxFolder]:
    """The folders of all sandboxes below `parent`."""
    if not parent.exists():
        return
    for path in sorted(parent.iterdir()):
        if path.is_dir() and ID_PATTERN.fullmatch(path.name):
            yield SandboxFolder(parent, path.name)
