"""Control groups, version 2 where the controllers are there, else version 1.

A sandbox's processes join by writing their pid before bubblewrap is executed, so everything is counted from
the first moment. The cgroup namespace is not unshared, and nothing of /sys is shown inside: a limit cannot be
changed from there.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from localstack.ecs_agent.limits import Limits

CONTROLLERS = ("memory", "pids", "cpu")

DAEMONS_PROCESSES = 64
"""Threads and processes of the daemon, beside those of commands, which RLIMIT_NPROC counts."""

_PERIOD_US = 100_000
_REMOVE_S = 2.0


@dataclass(frozen=True)
class Group:
    """The control groups of one sandbox.

    Args:
        folders: one (version 2), or one for each controller (version 1); none when nothing could be had.
        enforced: controllers whose limit was written and read back.
    """

    folders: tuple[Path, ...] = ()
    enforced: frozenset[str] = frozenset()

    @property
    def joining_files(self) -> tuple[Path, ...]:
        """Files to which a process writes `0` to join."""
        return tuple(folder / "cgroup.procs" for folder in self.folders)

    def remove(self) -> None:
        """Kill what is still in it and remove it; a group whose processes are just ending is waited for.

        Raises:
            OSError: it is still busy after two seconds.
        """
        for folder in self.folders:
            _remove(folder)


@dataclass(frozen=True)
class ControlGroups:
    """Where groups can be made: for each controller that can be had, its parent folder.

    Args:
        parents: controller -> folder; the same folder for all in version 2.
        version: 1 or 2.
    """

    parents: Mapping[str, Path]
    version: int

    @classmethod
    def find(
        cls, name: str, mount: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
    ) -> ControlGroups:
        """Look for controllers under which this process may make groups.

        Args:
            name: of the parent folder, unique to one agent on the machine.
            mount: where control groups are mounted.
            own: which groups this process is in.
        """
        for found in (_find_version_2(name, mount, own), _find_version_1(name, mount)):
            if found.parents:
                return found
        return cls({}, 0)

    def create(self, name: str, limits: Limits) -> Group:
        """Make the group of one sandbox; a controller that refuses is left out."""
        folders: list[Path] = []
        enforced: set[str] = set()
        for controller, parent in self.parents.items():
            folder = parent / name
            try:
                folder.mkdir(exist_ok=True)
                self._write(controller, folder, limits)
            except OSError:  # told to everyone as a missing limit
                continue
            enforced.add(controller)
            if folder not in folders:
                folders.append(folder)
        return Group(tuple(folders), frozenset(enforced))

    def leftovers(self) -> list[Group]:
        """Groups that an earlier life of the agent left behind."""
        folders = {child for parent in self.parents.values() for child in parent.iterdir() if child.is_dir()}
        return [Group((folder,)) for folder in sorted(folders) if folder.name != "agent"]

    def discard(self) -> None:
        """Remove the parents, when no sandbox's group is left in them."""
        for parent in set(self.parents.values()):
            with contextlib.suppress(OSError):  # not empty: what is left is ended at the next start
                parent.rmdir()

    def _write(self, controller: str, folder: Path, limits: Limits) -> None:
        write = _WRITERS[self.version, controller]
        write(folder, limits)


def _write_memory_1(folder: Path, limits: Limits) -> None:
    (folder / "memory.limit_in_bytes").write_text(str(limits.memory_bytes))
    with_swap = folder / "memory.memsw.limit_in_bytes"
    if with_swap.exists():
        with_swap.write_text(str(limits.memory_bytes))


def _write_memory_2(folder: Path, limits: Limits) -> None:
    (folder / "memory.max").write_text(str(limits.memory_bytes))
    swap = folder / "memory.swap.max"
    if swap.exists():
        swap.write_text("0")


def _write_pids(folder: Path, limits: Limits) -> None:
    (folder / "pids.max").write_text(str(limits.processes + DAEMONS_PROCESSES))


def _write_cpu_1(folder: Path, limits: Limits) -> None:
    (folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
    (folder / "cpu.cfs_quota_us").write_text(str(int(limits.cpus * _PERIOD_US)))


def _write_cpu_2(folder: Path, limits: Limits) -> None:
    (folder / "cpu.max").write_text(f"{int(limits.cpus * _PERIOD_US)} {_PERIOD_US}")


_WRITERS: Mapping[tuple[int, str], Callable[[Path, Limits], None]] = {
    (1, "memory"): _write_memory_1,
    (1, "pids"): _write_pids,
    (1, "cpu"): _write_cpu_1,
    (2, "memory"): _write_memory_2,
    (2, "pids"): _write_pids,
    (2, "cpu"): _write_cpu_2,
}


def _find_version_1(name: str, mount: Path) -> ControlGroups:
    parents: dict[str, Path] = {}
    for controller in CONTROLLERS:
        if not (mount / controller / "cgroup.procs").exists():
            continue
        try:
            (mount / controller / name).mkdir(exist_ok=True)
        except OSError:  # not root, or mounted read-only
            continue
        parents[controller] = mount / controller / name
    return ControlGroups(parents, 1)


def _find_version_2(name: str, mount: Path, own: Path) -> ControlGroups:
    """The group that this process is in, if it was delegated to its user (root: the top of the tree).

    An ordinary user has one under `systemd-run --user --scope -p Delegate=yes`.
    """
    if not (mount / "cgroup.controllers").exists():
        return ControlGroups({}, 2)
    base = mount if os.geteuid() == 0 else mount / _own_group(own)
    try:
        if base != mount:
            # A group with limits for its children may hold no process itself: step into a leaf.
            (base / "agent").mkdir(exist_ok=True)
            (base / "agent" / "cgroup.procs").write_text(str(os.getpid()))
        parent = base / name
        parent.mkdir(exist_ok=True)
    except OSError:  # not delegated
        return ControlGroups({}, 2)
    return ControlGroups({c: parent for c in CONTROLLERS if _enable(c, base) and _enable(c, parent)}, 2)


def _enable(controller: str, folder: Path) -> bool:
    try:
        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
    except OSError:  # the controller is not there, or belongs to version 1
        return False
    return True


def _own_group(own: Path) -> str:
    for line in own.read_text().splitlines():
        number, _, path = line.split(":", 2)
        if number == "0":
            return path.lstrip("/")
    return ""


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + _REMOVE_S
    while folder.exists():
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            _kill(folder)
            time.sleep(0.01)


def _kill(folder: Path) -> None:
    for line in (folder / "cgroup.procs").read_text().split():
        try:
            os.kill(int(line), 9)
        except ProcessLookupError:
            continue
