"""The real daemon in each mode: it reaches its link through the dial service and runs commands apart from itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from localstack.paths import ROOT
from tests.integration.sandbox.bench import Driver, Guest
from tests.integration.sandbox.conftest import MODES, start_driver
from tests.unit.sandboxd.link_server import ENROL_CODE, SANDBOX, LinkServer

pytestmark = pytest.mark.req("NOD-042")

Scenario = Callable[[LinkServer, Guest], Awaitable[Any]]


@pytest.fixture(scope="module", params=MODES)
def real_driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    started = start_driver(request.param, ROOT / "sandbox_images" / "sandboxd")
    try:
        if started.uid is not None and version(started.python()) != version(sys.executable):
            pytest.skip("aiohttp of this environment is for another Python than the ordinary user's")
        yield started
    finally:
        started.discard()


def version(python: str) -> str:
    code = "import sys; print(sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


def play(driver: Driver, scenario: Scenario) -> Any:
    """Start a link and a sandbox with the real daemon, and play the scenario."""

    async def run() -> Any:
        async with LinkServer() as link, asyncio.timeout(50):
            variables = {**link.environ, "NODUS_ENROL_CODE": ENROL_CODE, "NODUS_SANDBOX_ID": SANDBOX}
            guest = await asyncio.to_thread(
                driver.start, allowed=[("127.0.0.1", link.port)], variables=variables
            )
            try:
                await link.until(lambda: link.hello is not None)
                return await scenario(link, guest)
            finally:
                await asyncio.to_thread(driver.ask, "close", id=guest.sandbox_id)

    return asyncio.run(run())


@pytest.mark.req("NOD-453")
def test_it_says_hello_and_runs_commands(real_driver: Driver) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert link.hello is not None
        assert link.hello["isolation"]["isolated"] is True
        assert link.hello["isolation"]["guard"] == "network"
        assert "processes" in link.hello["limits"]["enforced"]
        result = await link.run("c1", "exec", {"command": "python3 --version; id -un; pwd; echo $HOME"})
        assert (result["exitCode"], result["state"]) == (0, "exited"), result
        version_line, user, place, home = result["output"].split("\n")[:4]
        assert version_line.startswith("Python 3")
        assert (user, place, home) == ("agent", "/workspace", "/home/agent")
        written = await link.run(
            "c2", "write_file", {"path": "/workspace/a.txt", "content": "x", "mode": 420, "createDirs": True}
        )
        assert written["state"] == "exited", written
        result = await link.run(
            "c3", "exec", {"command": "cat /workspace/a.txt && echo y >> /workspace/a.txt"}
        )
        assert result["output"].startswith("x"), result

    play(real_driver, scenario)


@pytest.mark.req("NOD-423")
def test_commands_cannot_read_its_secrets_or_end_it(real_driver: Driver) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        peek = "env; cat /proc/1/environ; ls /proc/1/fd; grep -ral enrol-onc[e] /proc/1/environ /workspace /tmp /home"
        result = await link.run("c1", "exec", {"command": peek})
        assert ENROL_CODE not in result["output"]
        assert "NODUS_" not in result["output"]
        for n, signal in enumerate(("TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2", "ALRM")):
            await link.run(f"k{n}", "exec", {"command": f"kill -{signal} 1; kill -{signal} -- -1; true"})
        result = await link.run("c2", "exec", {"command": "echo still here"})
        assert result["output"] == "still here\n"
        assert link.calls.count("hello") == 1

    play(real_driver, scenario)


@pytest.mark.req("FLD-09")
def test_a_cancelled_command_ends_with_all_it_started(real_driver: Driver) -> None:
    tree = "(sleep 40; echo late > late.txt) & setsid sleep 41 & nohup sleep 42 & sleep 43"

    async def scenario(link: LinkServer, guest: Guest) -> None:
        result = await link.run("c1", "exec", {"command": f"sh -c '{tree}'", "timeoutS": 1, "graceS": 1})
        assert result["reason"] == "timeout", result
        left = await link.run("c2", "exec", {"command": "pgrep -c sleep; ls"})
        assert left["output"].split() == ["0"]

    play(real_driver, scenario)


@pytest.mark.req("NOD-044")
def test_it_ends_itself_when_it_is_asked_to(real_driver: Driver) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        await link.submit("c1", "exec", {"command": "sleep 600"})
        await link.until(lambda: link.rows["c1"]["state"] != "pending")
        await asyncio.to_thread(real_driver.ask, "ask_to_end", id=guest.sandbox_id)
        async with asyncio.timeout(30):
            while (await asyncio.to_thread(real_driver.ask, "poll", id=guest.sandbox_id))["code"] is None:
                await asyncio.sleep(0.02)

    play(real_driver, scenario)
