"""Run tiers of tests, within a limit of time, and leave no process behind.

`python -m localstack.tiers [--dist KIND] [--limit SECONDS] FOLDER …`. Tests get a temporary folder of their own;
whatever still runs below it at the end, because a test session was killed, is ended.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from localstack.paths import APP_BIN, ROOT, TOOLS_BIN
from localstack.processes import kill_below

TIMED_OUT = 124
WORKERS = "2"


def main(arguments: list[str]) -> int:
    """Run pytest on the folders; its exit code, 124 when the time was over."""
    options = parser().parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="nt-"))
    folder.chmod(0o711)  # sandboxes run as other users, who must find their files below it, not list it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(options, folder)
    finally:
        kill_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m localstack.tiers", description=__doc__)
    made.add_argument(
        "--dist",
        choices=("no", "load", "loadfile"),
        default="no",
        help="in several processes: any test in any (load), those of a file in one (loadfile)",
    )
    made.add_argument("--limit", type=float, default=900, help="seconds for all of them (default: 900)")
    made.add_argument("folders", nargs="+", help="folders or files of tests")
    return made


def run(options: argparse.Namespace, folder: Path) -> int:
    """Pytest in a process group of its own, so that it can be ended with all it started."""
    path = os.pathsep.join([str(APP_BIN), str(TOOLS_BIN), os.environ.get("PATH", "/usr/bin:/bin")])
    words = [] if options.dist == "no" else ["-n", WORKERS, "--dist", options.dist]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *words, *options.folders],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder), "PATH": path},
        start_new_session=True,
    )
    try:
        code = process.wait(options.limit)
    except subprocess.TimeoutExpired:
        print(f"the tests took longer than {options.limit:.0f} s and were ended", file=sys.stderr)
        code = TIMED_OUT
    finally:
        end(process)
    return code


def end(process: subprocess.Popen[bytes]) -> None:
    """Let pytest tear its fixtures down, then end it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
