"""Where the client's end-to-end tests run: against the fake server, and against the deployed local cloud.

The cloud's runs are marked `integration` (`-m "not integration"` leaves them out).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from localstack.testing import local_cloud
from tests.unit.client.fake_runs import Outcome
from tests.unit.client.fake_server import TOKEN, FakeServer

__all__ = ["local_cloud"]

PROGRAM = Path(sys.executable).with_name("nodus")
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "integration: needs the deployed local cloud")


@dataclass(frozen=True)
class Place:
    """A server, and the environment of programs that use it. ``fake`` is the server itself, if it is the fake."""

    environment: dict[str, str]
    folder: Path
    fake: FakeServer | None = field(default=None, repr=False)

    def nodus(self, *words: str, stdin: str = "", code: int = 0) -> str:
        """Run the installed program in a folder of its own; its output, after a check of its exit code."""
        done = subprocess.run(
            [str(PROGRAM), *words],
            env=self.environment,
            cwd=self.folder,
            input=stdin.encode(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, f"nodus {' '.join(words)}: {done.stdout!r} {done.stderr!r}"
        return done.stdout.decode() + (done.stderr.decode() if code else "")

    def python(self, script: str) -> str:
        """Run a Python program; its output."""
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Place]:
    """The fake server."""
    server = FakeServer()
    server.pace = 4  # a client's reads come ever more seldom
    server.outcomes["hello-agent-run"] = Outcome(answer="It is Python 3.11.")
    settings = {
        "NODUS_SERVER": server.address,
        "NODUS_TOKEN": TOKEN,
        "NODUS_CONFIG": str(tmp_path / "config.yaml"),
    }
    yield Place(ENVIRONMENT | settings, tmp_path, server)
    server.stop()


def _cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    cloud = request.getfixturevalue("local_cloud")
    return Place(ENVIRONMENT | {"NODUS_CONFIG": str(cloud.configuration)}, tmp_path)


@pytest.fixture
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The deployed local cloud."""
    return _cloud(request, tmp_path)


@pytest.fixture(params=["fake", pytest.param("cloud", marks=pytest.mark.integration)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Both servers, one after the other."""
    return request.getfixturevalue("fake") if request.param == "fake" else _cloud(request, tmp_path)


Named = Callable[[str], str]


@pytest.fixture
def named(place: Place) -> Iterator[Named]:
    """Names of runs that are deleted in the end, so that the session's cloud stays as it was."""
    used: list[str] = []

    def name(word: str) -> str:
        used.append(word)
        return word

    yield name
    for word in used:
        subprocess.run(
            [str(PROGRAM), "delete", f"agentrun/{word}"],
            env=place.environment,
            capture_output=True,
            check=False,
        )
