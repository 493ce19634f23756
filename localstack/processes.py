"""Processes that outlive the command that starts them: pid files, groups, a clean stop.

Linux only where it reads /proc, as bubblewrap is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localstack.endpoints import write_private

# Set for every process of a local cloud, so that what survives its parent can be told from all others.
MARK = "NODUS_LOCAL_CLOUD"
LOG_LIMIT_BYTES = 20 * 1024 * 1024
PRIVATE_UMASK = 0o077


class ProcessError(Exception):
    """A process did not start or did not stop; the message names it and its log."""


@dataclass(frozen=True)
class Daemon:
    """One supervised process.

    Args:
        name: of its pid file and of its log.
        command: words of the command.
        environment: its whole environment; nothing is inherited.
        run: folder of the pid files.
        log: file for its output.
        folder: working directory.
        stop_s: seconds that it gets between SIGTERM and SIGKILL.
        umask: of what it writes; prompts, answers and keys are no other user's to read.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    run: Path
    log: Path
    folder: Path
    stop_s: float = 20.0
    umask: int = PRIVATE_UMASK

    @property
    def pid_file(self) -> Path:
        return self.run / f"{self.name}.pid"

    def pid(self) -> int | None:
        """The pid of the running process; None when there is none, also when the pid file is stale."""
        recorded = self._recorded()
        return recorded[0] if recorded and recorded[1] == start_mark(recorded[0]) else None

    def _recorded(self) -> tuple[int, str] | None:
        """What the pid file says: pid, and what told the process from others."""
        try:
            data = json.loads(self.pid_file.read_text())
            pid, started = int(data["pid"]), data["started"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # A process that died at once has no mark, now or then: that is no sign of being the same.
        return (pid, started) if isinstance(started, str) else None

    def start(self) -> int:
        """Start it in a session and process group of its own; answer its pid.

        One that was killed and is still ending is waited for: it holds its port until then.

        Raises:
            ProcessError: the command cannot be executed, or ended at once; the one before does not end.
        """
        if recorded := self._recorded():
            await_end(*recorded, self.stop_s)
        rotate(self.log)
        with self.log.open("ab") as output:
            try:
                process = subprocess.Popen(
                    list(self.command),
                    cwd=self.folder,
                    env=dict(self.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    umask=self.umask,
                )
            except OSError as error:
                raise ProcessError(f"cannot start {self.name}: {error}") from error
        started = start_mark(process.pid)
        if started is None:
            raise ProcessError(f"{self.name} ended at once, code {process.wait()}:\n{tail(self.log)}")
        write_private(self.pid_file, json.dumps({"pid": process.pid, "started": started}))
        return process.pid

    def stop(self) -> bool:
        """SIGTERM, then SIGKILL to the whole group; True when there was a process to stop.

        Raises:
            ProcessError: it does not end, although it was killed.
        """
        recorded = self._recorded()
        pid = self.pid()
        if recorded is None or pid is None:
            self.pid_file.unlink(missing_ok=True)
            return False
        signal_quietly(os.kill, pid, signal.SIGTERM)
        deadline = time.monotonic() + self.stop_s
        while self.pid() is not None and time.monotonic() < deadline:
            time.sleep(0.02)
        signal_quietly(os.killpg, pid, signal.SIGKILL)
        await_end(*recorded, self.stop_s)
        self.pid_file.unlink(missing_ok=True)
        return True

    def await_ready(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Wait until `ready()`.

        Raises:
            ProcessError: it ended before, or was not ready after `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self.pid() is None:
                raise ProcessError(f"{self.name} has ended:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name} was not ready after {timeout_s:.0f} s:\n{tail(self.log)}")
            time.sleep(0.05)


@dataclass(frozen=True)
class Sight:
    """What the system shows of a process.

    Args:
        mark: tells it from a later one with the same pid.
        ending: it was killed, or exits: it does nothing more, but may still hold files and ports.
        over: it holds nothing any more; its parent may not have collected it yet.
    """

    mark: str
    ending: bool
    over: bool


# Of /proc/PID/stat (proc(5)); its flags are those of the kernel's sched.h.
STATE, FLAGS, THREADS, STARTED, PENDING = 0, 6, 17, 19, 28
EXITING = 0x4
KILLED = 1 << (signal.SIGKILL - 1)


def sight(pid: int) -> Sight | None:
    """The process with this pid; None when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    dead = fields[STATE] in {"Z", "X"}
    ending = dead or bool(int(fields[FLAGS]) & EXITING or int(fields[PENDING]) & KILLED)
    return Sight(f"{boot}:{fields[STARTED]}", ending, over=dead and int(fields[THREADS]) <= 1)


def start_mark(pid: int) -> str | None:
    """What tells a process from a later one with the same pid; None when it does not run: zombies do not, nor does
    what was killed and is still ending."""
    seen = sight(pid)
    return seen.mark if seen and not seen.ending else None


def await_end(pid: int, mark: str, timeout_s: float) -> None:
    """Wait until the process of this mark is gone with all that it held.

    Raises:
        ProcessError: it was there still after `timeout_s` seconds.
    """
    deadline = time.monotonic() + timeout_s
    while (seen := sight(pid)) and seen.mark == mark and not seen.over:
        if time.monotonic() > deadline:
            raise ProcessError(f"process {pid} has not ended after {timeout_s:.0f} s")
        reap(pid)
        time.sleep(0.02)
    reap(pid)


def environment_of(pid: int) -> dict[str, str]:
    """The variables that a process was started with; none where it has ended or is another user's."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)


def kill_marked(state_folder: Path) -> int:
    """SIGKILL whatever still runs with this cloud's mark; answers how many there were.

    A safety net: children end with their parents, but a parent that was killed cannot see to it.
    """
    return kill(pid for pid, folder in marks() if folder == state_folder)


def kill_below(folder: Path) -> int:
    """The same for every cloud whose state is below `folder`."""
    return kill(pid for pid, state_folder in marks() if folder in state_folder.parents)


def kill(pids: Iterable[int]) -> int:
    """SIGKILL these processes, but for this one."""
    others = [pid for pid in pids if pid != os.getpid()]
    for pid in others:
        signal_quietly(os.kill, pid, signal.SIGKILL)
    return len(others)


def marked(state_folder: Path) -> list[int]:
    """Pids of all running processes of the cloud in `state_folder` that this user may see."""
    return [pid for pid, folder in marks() if folder == state_folder]


def marks() -> Iterator[tuple[int, Path]]:
    """Every running process of any local cloud, with the state folder of its cloud."""
    prefix = f"{MARK}=".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # ended meanwhile, or another user's
            continue
        for variable in variables:
            if variable.startswith(prefix):
                yield int(entry.name), Path(os.fsdecode(variable.removeprefix(prefix)))


def signal_quietly(send: Callable[[int, int], None], target: int, number: int) -> None:
    """Send a signal to what may have ended meanwhile."""
    try:
        send(target, number)
    except ProcessLookupError:
        return


def reap(pid: int) -> None:
    """Collect `pid` if it is our child: a zombie would be taken for a process that runs."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def rotate(log: Path) -> None:
    """Keep one older log when this one has grown too long."""
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message."""
    try:
        text = log.read_bytes()[-8192:].decode(errors="replace")
    except OSError:
        return f"(no log at {log})"
    return "\n".join([*text.splitlines()[-lines:], f"(all of it: {log})"])
