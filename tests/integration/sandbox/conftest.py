"""Drivers for each mode of isolation that this machine can be asked to show."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.sandbox.bench import HERE, Driver, Guest, find_bwraps

MODES = ("root", "root-one-user", "user")


def start_driver(mode: str, package: Path | None = None) -> Driver:
    """A driver in this mode; skips where the machine or the user cannot have it, saying why."""
    if sys.platform != "linux":
        pytest.skip("sandboxes need Linux")
    bwraps = find_bwraps()
    if not bwraps:
        pytest.skip("no bwrap: neither the system's nor the local cloud's (`make setup`)")
    if mode != "user" and os.geteuid() != 0:
        pytest.skip(f"mode {mode} needs root")
    if mode == "user" and os.geteuid() == 0 and not Path("/usr/bin/python3").exists():
        pytest.skip(
            "an ordinary user needs an interpreter outside of /root, and there is no /usr/bin/python3"
        )
    driver = Driver(mode, bwraps[0], package or HERE / "standin")
    answer = driver.ask("attempt")
    if answer["failure"] is not None:
        driver.discard()
        pytest.skip(f"this machine refuses mode {mode}: {answer['failure']}")
    driver.limits = answer["limits"]
    return driver


@pytest.fixture(scope="module", params=MODES)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    started = start_driver(request.param)
    try:
        yield started
    finally:
        started.discard()


@pytest.fixture(scope="module")
def guest(driver: Driver) -> Guest:
    """One sandbox that the tests of a module share."""
    return driver.start()
