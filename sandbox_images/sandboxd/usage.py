"""What the sandbox uses now: processors, memory and disk, as far as the daemon sees it."""

import contextlib
import os
import time

Usage = dict[str, int]

EVERY_S = 60.0
"""How often it is told: with a pull that is made anyhow."""

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Meter:
    """Measures at most once in `EVERY_S`.

    Args:
        folder: whose file system counts as the disk.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._told_s: float | None = None

    def due(self) -> Usage | None:
        """What is to be told with the next pull; None: it was told just now, or cannot be measured."""
        now = time.monotonic()
        if self._told_s is not None and now - self._told_s < EVERY_S:
            return None
        self._told_s = now
        with contextlib.suppress(OSError):
            return measured(self._folder)
        return None


def measured(folder: str) -> Usage:
    """Seconds of processors since the start, bytes of memory of all processes, bytes of the disk and used of it.

    Raises:
        OSError: the folder is not there.
    """
    disk = os.statvfs(folder)
    ticks = pages = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            # A process may end at any moment while it is looked at: then it does not count.
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = _stat(name)
                # user, system, and those of children that were waited for; resident pages
                ticks += sum(int(field) for field in fields[11:15])
                pages += int(fields[21])
    return {
        "cpuSeconds": ticks // _TICKS,
        "memoryBytes": pages * _PAGE,
        "diskBytes": (disk.f_blocks - disk.f_bfree) * disk.f_frsize,
        "diskSizeBytes": disk.f_blocks * disk.f_frsize,
    }


def _stat(pid: str) -> list[bytes]:
    """Fields of a process from its state on: the name before may hold anything."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read(4096).rpartition(b")")[2].split()
