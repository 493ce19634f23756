"""Limits on what one sandbox may use, and which of them hold on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

_MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use.

    Args:
        memory_bytes: of all its processes and of its /tmp together.
        processes: at once, threads included.
        cpus: processors, 0.5 is half of one.
        tmp_bytes: size of /tmp.
        file_bytes: of one file.
        open_files: of one process.
    """

    memory_bytes: int = 2048 * _MIB
    processes: int = 512
    cpus: float = 2.0
    tmp_bytes: int = 512 * _MIB
    file_bytes: int = 8192 * _MIB
    open_files: int = 4096

    @classmethod
    def of_task(cls, cpu_units: int | None, memory_mib: int | None) -> Limits:
        """The limits of an ECS task.

        A task of less than one processor gets a whole one: on one machine the share guards the machine, it is
        not paid for.

        Args:
            cpu_units: 1024 are one processor; None: not said.
            memory_mib: None: not said.
        """
        default = cls()
        cpus = default.cpus if cpu_units is None else max(1.0, cpu_units / 1024)
        memory = default.memory_bytes if memory_mib is None else memory_mib * _MIB
        return cls(memory_bytes=memory, cpus=min(cpus, float(os.cpu_count() or 1)))

    def rlimits(self) -> Mapping[str, int]:
        """What the kernel counts per process or per user; it holds on every machine.

        Not RLIMIT_AS: node, Go and the JVM reserve far more address space than they use.
        """
        return {
            "NPROC": self.processes,
            "FSIZE": self.file_bytes,
            "NOFILE": self.open_files,
            "CORE": 0,
        }


@dataclass(frozen=True)
class Enforced:
    """Which limits hold, told to the link as `limits`.

    Args:
        values: name -> value of those that hold.
        missing: names of those that do not.
    """

    values: Mapping[str, float] = field(default_factory=dict[str, float])
    missing: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, object]:
        return {"enforced": dict(self.values), "missing": list(self.missing)}


def enforced(limits: Limits, by_cgroup: frozenset[str], *, isolated: bool) -> Enforced:
    """What of `limits` holds.

    Args:
        limits: as asked.
        by_cgroup: subset of {"memory", "pids", "cpu"} that control groups enforce.
        isolated: the sandbox has mounts and a user count of its own: /tmp is bounded, and processes are counted
            by RLIMIT_NPROC alone where no control group counts them.
    """
    candidates = {
        "memoryBytes": (limits.memory_bytes, "memory" in by_cgroup),
        "processes": (limits.processes, "pids" in by_cgroup or isolated),
        "cpus": (limits.cpus, "cpu" in by_cgroup),
        "tmpBytes": (limits.tmp_bytes, isolated),
        "fileBytes": (limits.file_bytes, True),
        "openFiles": (limits.open_files, True),
    }
    return Enforced(
        values={name: value for name, (value, holds) in candidates.items() if holds},
        missing=(*(name for name, (_, holds) in candidates.items() if not holds), "diskBytes"),
    )
