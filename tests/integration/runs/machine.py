"""The machine under the local cloud, as its operator sees it: sandboxes' folders and processes, functions' workers."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from localstack.processes import marked, signal_quietly, start_mark
from localstack.testing import TestCloud
from tests.integration.waiting import until


@dataclass(frozen=True)
class Room:
    """One sandbox from outside."""

    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def read(self, name: str) -> str:
        """A file of the workspace; empty while there is none."""
        path = self.workspace / name
        return path.read_text() if path.exists() else ""

    def says(self, name: str) -> str:
        """A file of the workspace once something stands in it."""
        return until(lambda: self.read(name), bool)

    def open_gate(self, name: str = "go") -> None:
        """Lets go on what waits for the file (`gate`)."""
        (self.workspace / name).touch()

    def processes(self) -> list[int]:
        """Those that the agent keeps on record for it and that run."""
        try:
            data = json.loads((self.folder / "sandbox.json").read_text())
        except FileNotFoundError:
            return []
        return [int(pid) for pid, mark in data["processes"].items() if start_mark(int(pid)) == mark]

    def kill(self) -> None:
        """SIGKILL its first process, and bubblewrap, as a host that dies would."""
        pids = until(self.processes, bool)
        for pid in pids:
            signal_quietly(os.kill, pid, signal.SIGKILL)

    def is_gone(self) -> bool:
        return not self.folder.exists() and not self.processes()


def room(cloud: TestCloud, sandbox: str) -> Room:
    return Room(cloud.state.sandboxes / sandbox)


def gate(name: str = "go") -> str:
    """A shell line that waits until the file is there; an hour at most, so that nothing stays for ever."""
    return f"i=0; until [ -e {name} ] || [ $i -gt 18000 ]; do sleep 0.2; i=$((i+1)); done"


def workers(cloud: TestCloud, function: str) -> list[int]:
    """Pids of the Lambda worker processes of `nodus-FUNCTION`: forks of its template, which is left out."""
    wanted = f"AWS_LAMBDA_FUNCTION_NAME=nodus-{function}".encode()
    found = {pid for pid in marked(cloud.state.folder) if wanted in _environment(pid)}
    return [pid for pid in found if _parent(pid) in found]


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        signal_quietly(os.kill, pid, number)


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return []


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return 0
