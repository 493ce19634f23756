"""The local cloud's processes: their memory, and the end of the functions' warm ones."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from pathlib import Path

from localstack.processes import signal_quietly, start_mark
from localstack.testing import TestCloud

MIB = 1024
TICKS = os.sysconf("SC_CLK_TCK")
FUNCTION = "AWS_LAMBDA_FUNCTION_NAME="


def cool(cloud: TestCloud) -> None:
    """Ends every process of every function: the next call of each starts from nothing."""
    pids = [pid for pid in descendants(cloud.cloud.pids["cloud"]) if _function(pid)]
    for pid in pids:
        signal_quietly(os.kill, pid, signal.SIGKILL)
    while any(start_mark(pid) for pid in pids):
        time.sleep(0.01)


def memory(cloud: TestCloud) -> dict[str, tuple[int, float]]:
    """Processes and MiB (proportional set size: shared pages are counted once) by what they are for."""
    found: dict[str, list[float]] = defaultdict(list)
    for name, root in cloud.cloud.pids.items():
        for pid in descendants(root):
            size = _proportional_kib(pid)
            if size is not None:
                found[_purpose(name, root, pid)].append(size / MIB)
    return {purpose: (len(sizes), sum(sizes)) for purpose, sizes in sorted(found.items())}


def processor_seconds(cloud: TestCloud) -> dict[str, float]:
    """Processor time spent so far, by purpose: of all that run, and of what the daemons have seen end."""
    found: dict[str, float] = defaultdict(float)
    for name, root in cloud.cloud.pids.items():
        for pid in descendants(root):
            fields = _read(pid, "stat").rpartition(")")[2].split()
            if fields:
                own, ended = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
                found[_purpose(name, root, pid)] += own / TICKS
                found[f"below {name}: ended"] += ended / TICKS if pid == root else 0.0
    return dict(found)


def descendants(root: int) -> list[int]:
    """The process and all below it."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children[parent].append(int(entry.name))
    found, left = [], [root]
    while left:
        found.append(left.pop())
        left += children[found[-1]]
    return found


def _purpose(daemon: str, root: int, pid: int) -> str:
    if pid == root:
        return daemon
    function = _function(pid)
    return f"function {function}" if function else f"below {daemon}: sandboxes"


def _function(pid: int) -> str | None:
    for variable in _read(pid, "environ").split("\0"):
        if variable.startswith(FUNCTION):
            return variable.removeprefix(FUNCTION)
    return None


def _parent(entry: Path) -> int | None:
    stat = _read(int(entry.name), "stat")
    return int(stat.rpartition(")")[2].split()[1]) if stat else None


def _proportional_kib(pid: int) -> int | None:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return None


def _read(pid: int, name: str) -> str:
    """A file of /proc; empty for a process that has ended, or that another user's rights keep closed."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""
