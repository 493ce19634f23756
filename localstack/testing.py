"""Local clouds for tests: each in a folder of its own, always stopped.

Import the fixtures into a tier's `conftest.py`. `local_cloud` is started once for a whole session, however many
tiers use it; the client configuration that goes with it is never the person's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from localstack.endpoints import Cloud
from localstack.paths import CLOUD_PYTHON, ROOT, State

START_S = 600

SCRIPTS = ROOT / "tests" / "fixtures" / "scripts"
"""What the scripted model of a session's cloud plays beside the examples."""

# Tests never spend money: whatever key the person has, models are scripted.
SETTINGS = {
    "ANTHROPIC_API_KEY": "",
    "OPENAI_API_KEY": "",
    "NODUS_SCRIPTS": str(SCRIPTS),
    "NODUS_ARCHIVE_HOSTS": "downloads.example.com",
}


@dataclass(frozen=True)
class TestCloud:
    """A cloud in a folder of its own.

    Args:
        state: its folder.
        configuration: the client configuration that its `up` writes.
        extra: variables for its commands beside the caller's.
    """

    __test__ = False

    state: State
    configuration: Path
    extra: Mapping[str, str]

    @property
    def cloud(self) -> Cloud:
        """How to reach it now; read anew, as a restart may move it."""
        return Cloud.load(self.state)

    def environment(self) -> dict[str, str]:
        """For commands that work with this cloud: the local cloud's own, the CLI's, the demo's."""
        return {
            **os.environ,
            **self.extra,
            "NODUS_STATE": str(self.state.folder),
            "NODUS_CONFIG": str(self.configuration),
        }

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`python -m localstack WORDS`; with `check`, failing fails the test and shows the output."""
        done = subprocess.run(
            [str(CLOUD_PYTHON), "-m", "localstack", *words],
            cwd=ROOT,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        if check and done.returncode != 0:
            pytest.fail(f"localstack {' '.join(words)} failed:\n{done.stdout}{done.stderr}", pytrace=False)
        return done


def new_cloud(extra: Mapping[str, str] | None = None) -> TestCloud:
    """A cloud that is not started yet; `discard` it in the end."""
    # A short path: sandboxes keep unix sockets below it, whose names are limited to 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="nodus-"))
    return TestCloud(State(folder.resolve()), folder / "config.yaml", extra or {})


def discard(cloud: TestCloud) -> None:
    """Stop it and remove its folder; its logs stay when NODUS_KEEP_LOGS names a folder for them."""
    cloud.run("down", check=False)
    keep = os.environ.get("NODUS_KEEP_LOGS")
    if keep and cloud.state.logs.is_dir():
        shutil.copytree(cloud.state.logs, Path(keep) / cloud.state.folder.name, dirs_exist_ok=True)
    cloud.run("clean", check=False)
    shutil.rmtree(cloud.state.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def bare_cloud() -> Iterator[TestCloud]:
    """An emulated AWS with nothing deployed to it; quick to start."""
    cloud = new_cloud()
    try:
        cloud.run("up", "--no-deploy")
        yield cloud
    finally:
        discard(cloud)


_SHARED = pytest.StashKey[TestCloud]()


@pytest.fixture(scope="session")
def local_cloud(request: pytest.FixtureRequest) -> TestCloud:
    """The deployed local cloud of this test session, ready for the CLI and the SDK.

    NODUS_TEST_STATE names the folder of a cloud that runs already and is to be used instead; it is left alone.
    """
    stash = request.config.stash
    if _SHARED not in stash:
        stash[_SHARED] = running_cloud() or started_cloud(request.config)
    return stash[_SHARED]


def running_cloud() -> TestCloud | None:
    """The cloud that NODUS_TEST_STATE names."""
    named = os.environ.get("NODUS_TEST_STATE")
    if not named:
        return None
    state = State(Path(named).resolve())
    return TestCloud(state, state.folder / "config.yaml", SETTINGS)


def started_cloud(config: pytest.Config) -> TestCloud:
    """A fresh one, deployed, discarded when the session ends."""
    cloud = new_cloud(SETTINGS)
    config.add_cleanup(lambda: discard(cloud))
    cloud.run("up")
    return cloud


def limit_test_time_only(items: list[pytest.Item]) -> None:
    """Keep the time limit for the tests themselves: whichever test comes first starts the cloud."""
    for item in items:
        if {"local_cloud", "bare_cloud"} & set(getattr(item, "fixturenames", ())):
            own = item.get_closest_marker("timeout")
            seconds = own.args[0] if own and own.args else 60
            item.add_marker(pytest.mark.timeout(seconds, func_only=True), append=False)
