"""What a command is, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sandboxd.execcore.outputlog import OutputLog
from sandboxd.redaction import NOTHING, Redactor

MARK_NAME = "SANDBOXD_EXEC"
"""Variable that every process of a command inherits; the tree kill finds strays by it."""

DEFAULT_KEEP_BYTES = 16 * 1024
"""Bytes of output kept at each end: 32 KiB together (docs/protocols.md §2)."""


class StopReason(StrEnum):
    """Why the daemon ended a command; different outcomes on the wire (FLD-09).

    SHUTDOWN: the sandbox ends and takes the command with it, which nobody asked for: how far it came is not known.
    """

    TIMEOUT = "timeout"
    KILLED = "killed"
    SHUTDOWN = "shutdown"


class ExecState(StrEnum):
    """How sure we are of a command."""

    EXITED = "exited"
    FAILED = "failed"  # not started: certainly no effect
    LOST = "lost"  # started, but nobody can say how it ended


class SpawnError(Exception):
    """The command was certainly not started.

    Attributes:
        reason: one word for programs (`cwd`, `denied`, `no_memory`, `invalid`, `spawn`).
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class CommandUser:
    """Who commands run as.

    Args:
        uid: None means: the daemon's own user, nothing is switched.
        gid: the group that goes with `uid`.
    """

    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True)
class ExecSpec:
    """A command to run.

    Args:
        argv: program (absolute path) and arguments.
        cwd: folder to start in, absolute.
        env: the whole environment but for the mark.
        start_to_end_s: seconds until the tree is ended with `StopReason.TIMEOUT`; None: never.
        grace_s: seconds between the polite signal and force, at most `tree.MAX_GRACE_S`.
        stdin: bytes to read, or a descriptor that the caller keeps open; None: /dev/null.
        fds: descriptors that it inherits under their own numbers.
        tty: the command's side of a pseudo-terminal, which becomes all three streams: nothing is kept of its output, and
            what the command has started ends with it.
        head_bytes, tail_bytes: how much output is kept of either end.
        spares: whether it leaves the last of its user's processes to what is done for it: files, saves.
        redactor: what is taken out of the output before it is kept or counted.
        log: gets the two outputs apart, by a pipe for each; None: they have one pipe, and so the order between them.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    start_to_end_s: float | None = None
    grace_s: float = 2.0
    stdin: bytes | int | None = None
    fds: tuple[int, ...] = ()
    tty: int | None = None
    head_bytes: int = DEFAULT_KEEP_BYTES
    tail_bytes: int = DEFAULT_KEEP_BYTES
    spares: bool = False
    redactor: Redactor = NOTHING
    log: OutputLog | None = None


@dataclass(frozen=True)
class Captured:
    """Output as it was kept: both ends and the exact size of the whole.

    `head` and `tail` never overlap; without a gap `head + tail` is the whole output.
    """

    head: bytes
    tail: bytes
    raw_bytes: int

    @property
    def dropped_bytes(self) -> int:
        """Bytes between head and tail that were not kept."""
        return self.raw_bytes - len(self.head) - len(self.tail)


@dataclass(frozen=True)
class Usage:
    """What the command and the children it waited for used."""

    cpu_s: float
    max_rss_kib: int


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Args:
        exit_code: None when a signal ended it.
        signal: number of the signal that ended the leader, else None.
        reason: `timeout`, `killed`, `oom` or None.
        message: a sentence for people, None when there is nothing to add.
        output_open: a process of the command still holds the output pipe.
    """

    state: ExecState
    exit_code: int | None
    signal: int | None
    reason: str | None
    message: str | None
    captured: Captured
    output_open: bool
    usage: Usage
    started_at: datetime
    ended_at: datetime
    duration_s: float
