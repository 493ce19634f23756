"""The machine under the measurement, and how busy it was with other things."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from localstack.paths import CLOUD_PYTHON, ROOT
from tests.bench.figures import Table

BUSY = 1.0
"""Load average (of one minute) above which other work shares the processors and figures are too large."""


@dataclass(frozen=True)
class Moment:
    """The time and the load average of the last minute."""

    at: str
    load: float

    @classmethod
    def now(cls) -> Moment:
        return cls(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"), os.getloadavg()[0])


def machine(begin: Moment, end: Moment, options: dict[str, object]) -> Table:
    """The table of where, when and with what the others were measured."""
    facts: dict[str, object] = {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "MiniStack": _in_cloud("ministack"),
        "botocore, urllib3": f"{version('botocore')}, {version('urllib3')}",
        "commit": _commit(),
        "begin": f"{begin.at}, load {begin.load:.2f}",
        "end": f"{end.at}, load {end.load:.2f}",
        **options,
    }
    return Table("Machine", ("what", ""), [(name, str(value)) for name, value in facts.items()])


def warning(moment: Moment) -> str | None:
    """What to say of a machine that does something else as well."""
    if moment.load <= BUSY:
        return None
    return (
        f"warning: load average {moment.load:.2f} at {moment.at}: others share the processors, so times are too"
        " long; ratios to a floor of the same run hold better, and counts hold"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _in_cloud(package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return _said([str(CLOUD_PYTHON), "-c", code])


def _commit() -> str:
    changed = _said(["git", "status", "--porcelain", "--untracked-files=no"])
    return _said(["git", "rev-parse", "--short", "HEAD"]) + (" and uncommitted changes" if changed else "")


def _said(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
