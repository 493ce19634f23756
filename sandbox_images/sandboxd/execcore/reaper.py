"""The one place that waits for child processes."""

import asyncio
import os
import resource
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Death:
    """How a child ended, as the kernel told it."""

    status: int
    usage: resource.struct_rusage
    ended_at: datetime
    monotonic_s: float


class Reaper:
    """Waits for children when SIGCHLD comes.

    `asyncio.Process.wait` is not used: on Python 3.11 it ends only when all pipes are closed, so a background
    child that holds the output would keep a finished command running.

    Args:
        adopts_orphans: wait for every child, also those nobody watches: set where this process is pid 1 or a
            child subreaper and owns all of its children.
    """

    def __init__(self, *, adopts_orphans: bool) -> None:
        self._adopts_orphans = adopts_orphans
        self._watched: dict[int, asyncio.Future[Death]] = {}

    def install(self) -> None:
        """Starts to listen; needs the running event loop of the main thread."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.reap)

    def remove(self) -> None:
        """Stops to listen."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)

    def watch(self, pid: int) -> asyncio.Future[Death]:
        """A future of the death of a child that was just started.

        It cannot miss one: children are only waited for in the event loop, between two of its callbacks.
        """
        future: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        self._watched[pid] = future
        return future

    def reap(self) -> None:
        """Waits for all children that are dead already."""
        if self._adopts_orphans:
            while self._wait(-1):
                pass
        else:
            for pid in tuple(self._watched):
                self._wait(pid)

    def _wait(self, which: int) -> bool:
        try:
            pid, status, usage = os.wait4(which, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return False
        # It asked to be traced by its parent, which does not: it stays until it is ended.
        if os.WIFSTOPPED(status):
            return True
        future = self._watched.pop(pid, None)
        if future is not None and not future.done():
            future.set_result(Death(status, usage, datetime.now(UTC), time.monotonic()))
        return True
