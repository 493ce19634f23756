"""Install everything the checkout needs, from nothing but Python, make and git.

Run by `make setup` with the machine's own Python, before any environment exists: standard library only.
Each part is installed when the files it depends on have changed since the stamp under `.state/stamps`,
so a second run does nothing and touches no network.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".state"
APP_VENV = ROOT / ".venv"
CLOUD_VENV = STATE / "venv"
TOOLS_VENV = STATE / "tools"
UV = TOOLS_VENV / "bin" / "uv"

OLDEST = (3, 11)
NEWEST = (3, 14)


class SetupError(Exception):
    """Set-up cannot go on; the message says what to do."""


@dataclass(frozen=True)
class Part:
    """One thing to install.

    Args:
        name: what people read, and the stamp's file name.
        inputs: files whose change makes the part stale.
        product: a file that exists when the part is installed.
        install: does it, with the environment for child processes.
    """

    name: str
    inputs: tuple[Path, ...]
    product: Path
    install: Callable[[Mapping[str, str]], None]

    @property
    def stamp(self) -> Path:
        return STATE / "stamps" / self.name

    def fingerprint(self) -> str:
        """A digest of the inputs and of what an installed environment is bound to (place, interpreter)."""
        digest = hashlib.sha256(f"{ROOT}\0{platform.python_version()}\0{platform.machine()}".encode())
        for path in self.inputs:
            digest.update(path.read_bytes() + b"\0")
        return digest.hexdigest()

    def is_current(self) -> bool:
        return self.product.exists() and self.stamp.is_file() and self.stamp.read_text() == self.fingerprint()


def main() -> int:
    """Install what is missing or stale; 0 when all parts are current, 1 with a message when one failed."""
    try:
        check_python()
        STATE.mkdir(exist_ok=True)
        STATE.chmod(
            0o700
        )  # whatever the cloud keeps there (prompts, answers, keys) is no other user's to read
        with (STATE / "setup.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two `make` at once must not write one environment
            environment = child_environment()
            for part in parts():
                ensure(part, environment)
    except (SetupError, OSError) as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return 1
    return 0


def parts() -> tuple[Part, ...]:
    """Everything to install, in order: each may use those before it."""
    here = ROOT / "localstack"
    return (
        Part("tools", (here / "uv-requirements.txt",), UV, install_tools),
        Part(
            "python",
            (ROOT / "pyproject.toml", ROOT / "uv.lock", ROOT / "clients/python/pyproject.toml"),
            APP_VENV / "bin" / "npm",
            lambda environment: sync(ROOT, APP_VENV, environment),
        ),
        Part(
            "cloud",
            (here / "pyproject.toml", here / "uv.lock"),
            CLOUD_VENV / "bin" / "hypercorn",
            lambda environment: sync(here, CLOUD_VENV, environment),
        ),
        Part(
            "cdk",
            (ROOT / "package.json", ROOT / "package-lock.json"),
            ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk",
            install_node_packages,
        ),
    )


def ensure(part: Part, environment: Mapping[str, str]) -> None:
    """Install `part` unless its stamp says that it is current."""
    if part.is_current():
        return
    print(f"set-up: {part.name} …", flush=True)
    begun = time.monotonic()
    part.stamp.parent.mkdir(parents=True, exist_ok=True)
    part.stamp.unlink(missing_ok=True)  # an interrupted installation must not look current
    part.install(environment)
    if not part.product.exists():
        raise SetupError(
            f"{part.name} was installed but {part.product} is missing; `make clean` and try again"
        )
    part.stamp.write_text(part.fingerprint())
    print(f"set-up: {part.name} ready in {time.monotonic() - begun:.1f} s", flush=True)


def check_python() -> None:
    """Refuse an interpreter that the lock files were not made for."""
    version = sys.version_info[:2]
    if not OLDEST <= version <= NEWEST:
        wanted = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        raise SetupError(
            f"{sys.executable} is Python {platform.python_version()}; Python {wanted} is needed. "
            "Name another one: make setup PYTHON=/path/to/python3.12"
        )


def child_environment() -> dict[str, str]:
    """The environment for pip, uv and npm: the caller's, without what would lead them astray.

    An active virtual environment would be preferred by uv; an empty or read-only HOME leaves uv and npm
    without a cache. The system's certificates are trusted too, as machines behind a proxy need.
    """
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT"}
    }
    environment["HOME"] = usable_home(environment, STATE / "home")
    environment["PATH"] = os.pathsep.join([str(APP_VENV / "bin"), environment.get("PATH", "/usr/bin:/bin")])
    environment.setdefault("UV_SYSTEM_CERTS", "1")
    environment.setdefault("NODE_USE_SYSTEM_CA", "1")
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    return environment


def usable_home(environment: Mapping[str, str], other: Path) -> str:
    """HOME if caches can be kept there, else `other`, which is made."""
    home = environment.get("HOME", "")
    if home and Path(home).is_dir() and os.access(home, os.W_OK):
        return home
    other.mkdir(parents=True, exist_ok=True)
    return str(other)


def install_tools(environment: Mapping[str, str]) -> None:
    """A small environment that holds `uv`, checked by its hash."""
    make_venv(TOOLS_VENV, environment, with_pip=True)
    pip = [TOOLS_VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    run([*pip, "--only-binary", ":all:", "-r", ROOT / "localstack" / "uv-requirements.txt"], environment)


def sync(project: Path, venv: Path, environment: Mapping[str, str]) -> None:
    """Make `venv` hold exactly what `project`'s lock file says."""
    make_venv(venv, environment, with_pip=False)
    run(
        [UV, "sync", "--quiet", "--locked", "--project", project],
        {**environment, "UV_PROJECT_ENVIRONMENT": str(venv)},
    )


def install_node_packages(environment: Mapping[str, str]) -> None:
    """The CDK command line, by the npm that came as a wheel; packages' own install scripts stay off."""
    npm = APP_VENV / "bin" / "npm"
    run(
        [npm, "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"],
        environment,
    )


def make_venv(venv: Path, environment: Mapping[str, str], *, with_pip: bool) -> None:
    """Create `venv` with this interpreter, unless it is there and of the same version."""
    if venv_version(venv) == sys.version_info[:2]:
        return
    if venv.exists():
        shutil.rmtree(venv)
    options = [] if with_pip else ["--without-pip"]
    try:
        run([base_python(), "-m", "venv", *options, venv], environment)
    except SetupError as error:
        raise SetupError(
            f"{error}\nThis Python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv"
        ) from error


def venv_version(venv: Path) -> tuple[int, int] | None:
    """The Python version of a working virtual environment, None when there is none."""
    python = venv / "bin" / "python"
    if not python.exists():
        return None
    shown = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    if shown.returncode != 0:
        return None
    major, minor = shown.stdout.split()
    return int(major), int(minor)


def base_python() -> str:
    """The interpreter itself when this program runs inside a virtual environment."""
    return getattr(sys, "_base_executable", None) or sys.executable


def run(command: list[str | Path], environment: Mapping[str, str]) -> None:
    """Run `command` in the checkout; its output goes to the terminal.

    Raises:
        SetupError: it could not be started or failed.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=ROOT, env=dict(environment), check=False)
    except OSError as error:
        raise SetupError(f"cannot start {words[0]}: {error}") from error
    if done.returncode != 0:
        raise SetupError(f"exit code {done.returncode} of: {' '.join(words)}")


if __name__ == "__main__":
    sys.exit(main())
