"""The real daemon inside real sandboxes, in each mode of isolation that this machine can show."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.sandbox.bench import Driver
from tests.integration.sandbox.conftest import MODES, start_driver
from tests.unit.sandboxd.link_server import ENROL_CODE, SANDBOX, LinkServer

PACKAGE = Path(__file__).parents[3] / "sandbox_images/sandboxd"


class Inside:
    """A sandbox, its launcher and the server it is linked to."""

    def __init__(self, server: LinkServer, driver: Driver) -> None:
        self.server = server
        self.driver = driver

    async def shell(self, command_id: str, text: str, **request: Any) -> dict[str, Any]:
        return await self.server.run(command_id, "exec", {"command": text, **request})

    async def end(self) -> int:
        await asyncio.to_thread(self.driver.ask, "ask_to_end", id=SANDBOX)
        while (code := (await asyncio.to_thread(self.driver.ask, "poll", id=SANDBOX))["code"]) is None:
            await asyncio.sleep(0.02)
        return code


@contextlib.asynccontextmanager
async def inside(mode: str) -> AsyncIterator[Inside]:
    driver = await asyncio.to_thread(start_driver, mode, PACKAGE)
    try:
        async with LinkServer() as server:
            variables = {name: value for name, value in server.environ.items() if name != "NODUS_SANDBOX_ID"}
            answer = await asyncio.to_thread(
                driver.ask,
                "start",
                id=SANDBOX,
                allowed=[("127.0.0.1", server.port)],
                limits={},
                variables=variables,
            )
            assert "error" not in answer, answer
            async with asyncio.timeout(40):
                await server.until(lambda: server.hello and server.bells)
            yield Inside(server, driver)
    finally:
        await asyncio.to_thread(driver.discard)


def in_sandbox(mode: str, story: Callable[[Inside], Awaitable[Any]]) -> Any:
    async def told() -> Any:
        async with inside(mode) as sandbox:
            return await story(sandbox)

    return asyncio.run(told())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.req("FLD-09", "NOD-431", "NOD-432")
def test_the_daemon_lives_in_a_sandbox_as_on_its_own(mode: str) -> None:
    async def story(sandbox: Inside) -> None:
        server = sandbox.server
        assert server.hello is not None
        assert server.hello["isolation"]["isolated"] is True
        assert (await sandbox.shell("c1", "pwd"))["output"] == "/workspace\n"

        await sandbox.shell("c2", "kill -9 1; kill -TERM 1; kill -TERM -1; kill -9 -1")
        secrets = (await sandbox.shell("c3", "cat /proc/1/environ; ls /proc/1/fd; env"))["output"]
        assert secrets.count("Permission denied") == 2
        assert ENROL_CODE not in secrets

        written = {"path": "d/x", "content": "hi", "createDirs": True}
        assert (await server.run("f1", "write_file", written))["created"] is True
        assert (await server.run("f2", "read_file", {"path": "d/x"}))["content"] == "hi"
        assert (await server.run("f3", "read_file", {"path": "/proc/1/environ"}))["reason"] == "denied"

        hidden = "(env -i /usr/bin/setsid /bin/sh -c '(sleep 60 &) ; sleep 61' &) ; sleep 62"
        assert (await sandbox.shell("c4", hidden, timeoutS=1, graceS=0.5))["reason"] == "timeout"
        left = (await sandbox.shell("c5", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))["output"]
        assert "sleep 6" not in left

        await server.submit("c6", "exec", {"command": "echo begun; sleep 63"})
        await sandbox.shell("c7", "until grep -qz 63 /proc/[0-9]*/cmdline; do sleep 0.02; done", timeoutS=20)
        assert await sandbox.end() == 0

    in_sandbox(mode, story)
