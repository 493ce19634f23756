"""Ends every process that a command started, also those that left its session (FLD-09)."""

import asyncio
import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sandboxd.execcore.census import Census, Population, ProcessEntry, read_process

MAX_GRACE_S = 3.0
_FORCE_S = 10.0
"""How long force is used again and again before a process counts as unkillable."""

_STEP_S = 0.025
_MAX_STEP_S = 0.2
_STOP_ROUNDS = 50

Members = Callable[[Population], list[ProcessEntry]]


@dataclass(frozen=True)
class Tree:
    """What tells the processes of one command from all others.

    Args:
        leader: pid of the first process, also the number of its session.
        started: clock ticks since boot at which the leader started.
        mark: value of the mark in the environment: the daemon's name, a point, the command's.
        group: supplementary group of this command alone, where the daemon may give one: unlike the
            environment, a command can neither change nor hide it.
    """

    leader: int
    started: int
    mark: str
    group: int | None

    def members(self, population: Population) -> list[ProcessEntry]:
        """The processes of this command, by session, mark and group, with all their descendants."""
        return with_descendants((entry for entry in population.values() if self._owns(entry)), population)

    def _owns(self, entry: ProcessEntry) -> bool:
        if entry.pid == self.leader:
            return entry.started == self.started
        if self.group is not None and self.group in entry.groups:
            return True
        return entry.mark == self.mark or (entry.session == self.leader and entry.started >= self.started)

    def _is_neighbour(self, entry: ProcessEntry) -> bool:
        """Whether it belongs to another command of the same daemon."""
        daemon, _, _ = self.mark.partition(".")
        return entry.mark is not None and entry.mark != self.mark and entry.mark.partition(".")[0] == daemon

    def with_orphans(
        self, population: Population, adopter: int, leaders: frozenset[int]
    ) -> list[ProcessEntry]:
        """`members`, and orphans that can only be this command's because nothing else runs.

        A process that empties its environment, leaves the session and loses its parent carries no sign of
        its command any more. When only this command ran since it started, and no process of another command
        is alive, the orphan is this command's all the same.

        Args:
            adopter: pid of the daemon, to which orphans fall.
            leaders: leaders of the commands that the daemon knows; those are no orphans.
        """
        if any(self._is_neighbour(entry) for entry in population.values()):
            return self.members(population)
        orphans = [
            entry
            for entry in population.values()
            if entry.parent == adopter
            and entry.pid not in leaders
            and entry.mark is None
            and entry.started >= self.started
        ]
        return with_descendants([*self.members(population), *orphans], population)


def with_descendants(seeds: Iterable[ProcessEntry], population: Population) -> list[ProcessEntry]:
    """The given processes and everything below them, the oldest first.

    So the leader gets a signal before its children, and does not end by itself because one of them died of it.
    """
    children: dict[int, list[ProcessEntry]] = {}
    for entry in population.values():
        children.setdefault(entry.parent, []).append(entry)
    found: dict[int, ProcessEntry] = {}
    pending = list(seeds)
    while pending:
        entry = pending.pop()
        if entry.pid not in found:
            found[entry.pid] = entry
            pending.extend(children.get(entry.pid, ()))
    return sorted(found.values(), key=lambda entry: (entry.started, entry.pid))


async def end_processes(members: Members, census: Census, grace_s: float) -> list[ProcessEntry]:
    """Asks politely, waits, then uses force until nothing is left.

    Args:
        members: picks the processes to end out of a population.
        grace_s: seconds between the polite signal and force; at most `MAX_GRACE_S` count.

    Returns:
        Processes that outlived ten seconds of force (the kernel holds them); normally none.
    """
    present = members(await census.fresh())
    for entry in present:
        send_signal(entry, signal.SIGTERM)
        send_signal(entry, signal.SIGCONT)  # a stopped process could not heed the polite signal
    present = await _wait_until_gone(present, members, census, min(grace_s, MAX_GRACE_S))
    force_until = time.monotonic() + _FORCE_S
    while present and time.monotonic() < force_until:
        for entry in await _stop_all(members, census):
            send_signal(entry, signal.SIGKILL)
        present = await _wait_until_gone(present, members, census, _MAX_STEP_S)
    return present


async def freeze(members: Members, census: Census, stopped: list[ProcessEntry]) -> bool:
    """Stops processes until all stand still that `members` picks; returns whether they do.

    Args:
        stopped: takes up each that is stopped here, to be continued by whoever calls; one that stood still before
            is not among them.
    """
    for _ in range(_STOP_ROUNDS):
        moving = [entry for entry in members(await census.fresh()) if not entry.still]
        if not moving:
            return True
        for entry in moving:
            if (entry.pid, entry.started) not in {(each.pid, each.started) for each in stopped}:
                stopped.append(entry)
            send_signal(entry, signal.SIGSTOP)
        await asyncio.sleep(_STEP_S)
    return False


async def _wait_until_gone(
    present: list[ProcessEntry], members: Members, census: Census, within_s: float
) -> list[ProcessEntry]:
    """Looks again with a growing step until nobody is there or the time is over; returns who is left."""
    until = time.monotonic() + within_s
    step = _STEP_S
    while present and (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(step, left))
        step = min(step * 2, _MAX_STEP_S)
        present = members(await census.fresh())
    return present


async def _stop_all(members: Members, census: Census) -> list[ProcessEntry]:
    """Stops all processes before one is killed: else a parent sees its child die and starts another."""
    stopped: set[tuple[int, int]] = set()
    present: list[ProcessEntry] = []
    for _ in range(_STOP_ROUNDS):
        present = members(await census.fresh())
        new = [entry for entry in present if (entry.pid, entry.started) not in stopped]
        if not new:
            break
        for entry in new:
            send_signal(entry, signal.SIGSTOP)
            stopped.add((entry.pid, entry.started))
    return present


def send_signal(entry: ProcessEntry, signum: int) -> None:
    """Signals exactly this process, never another one that got its number.

    One that is dead, or that the daemon may not signal, is left alone: who is still there is counted afterwards.
    """
    try:
        pidfd = os.pidfd_open(entry.pid)
    except ProcessLookupError:
        return
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        _send_by_number(entry, signum)  # a filter or an old kernel refuses pidfds
        return
    try:
        if _is_same(entry):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(pidfd, signum)
    finally:
        os.close(pidfd)


def _send_by_number(entry: ProcessEntry, signum: int) -> None:
    if _is_same(entry):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(entry.pid, signum)


def _is_same(entry: ProcessEntry) -> bool:
    try:
        now = read_process(entry.pid)
    except OSError:
        return False
    return now is not None and now.started == entry.started
