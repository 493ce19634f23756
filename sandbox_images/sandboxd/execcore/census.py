"""Reads /proc: which processes are there, whose children they are, and which command they carry the mark of."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from sandboxd.execcore.spec import MARK_NAME

_ENVIRON_LIMIT = 4 * 1024 * 1024
_MARK_PREFIX = f"{MARK_NAME}=".encode()


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """A living process.

    Args:
        started: clock ticks since boot; pid and start together name a process for ever.
        mark: the command's mark in its environment, None where there is none or it cannot be read.
        groups: supplementary groups.
        still: it is stopped by a signal.
    """

    pid: int
    parent: int
    session: int
    started: int
    mark: str | None
    groups: frozenset[int]
    still: bool = False


Population = dict[int, ProcessEntry]


def read_population(not_before: int) -> Population:
    """All living processes that started at or after `not_before` (clock ticks since boot); zombies are dead."""
    population: Population = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        # A process may end at any moment while it is looked at: then it does not count.
        with contextlib.suppress(OSError, ValueError, IndexError):
            entry = read_process(int(name), not_before)
            if entry is not None:
                population[entry.pid] = entry
    return population


def read_process(pid: int, not_before: int = 0) -> ProcessEntry | None:
    """One process; None when it is a zombie or older than `not_before`.

    Raises:
        OSError: there is no such process.
    """
    # The name in parentheses may hold anything, also ") S 1": only the last parenthesis counts.
    fields = _read(pid, "stat", 4096).rpartition(b")")[2].split()
    started = int(fields[19])
    if fields[0] in (b"Z", b"X") or started < not_before:
        return None
    mark = None
    with contextlib.suppress(OSError):  # another user's, or one that made itself undumpable
        mark = _mark_in(_read(pid, "environ", _ENVIRON_LIMIT))
    return ProcessEntry(
        pid, int(fields[1]), int(fields[3]), started, mark, _groups(pid), fields[0] in (b"T", b"t")
    )


def _groups(pid: int) -> frozenset[int]:
    for line in _read(pid, "status", 65536).splitlines():
        if line.startswith(b"Groups:"):
            return frozenset(int(group) for group in line.split()[1:])
    return frozenset()


def _mark_in(environ: bytes) -> str | None:
    for variable in environ.split(b"\0"):
        if variable.startswith(_MARK_PREFIX):
            return variable.removeprefix(_MARK_PREFIX).decode("ascii", "replace")
    return None


def _read(pid: int, name: str, limit: int) -> bytes:
    fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks: list[bytes] = []
        left = limit
        while left > 0 and (chunk := os.read(fd, min(left, 65536))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


class Census:
    """Takes the population for many who ask at once.

    Whoever asks gets a count that began after the question; all who wait for the same count share it, so that
    64 trees that end together cost as much as one. It is taken in a thread: a fork bomb has many processes, and
    the other commands must not wait for it.
    """

    def __init__(self, take: Callable[[], Population]) -> None:
        self._take = take
        self._running: asyncio.Task[Population] | None = None
        self._next: asyncio.Task[Population] | None = None

    async def fresh(self) -> Population:
        """A population that was counted after this call."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._count_after(self._running))
        return await asyncio.shield(self._next)

    async def _count_after(self, earlier: asyncio.Task[Population] | None) -> Population:
        if earlier is not None and not earlier.done():
            await asyncio.wait({earlier})
        self._running, self._next = self._next, None
        return await asyncio.to_thread(self._take)
