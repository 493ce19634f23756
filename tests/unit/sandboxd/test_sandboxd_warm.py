"""A machine that waits for somebody: it asks until it knows, and enrols with a code that nobody else has had."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from sandboxd import warm
from sandboxd.link_http import Identity, LinkClosedError
from sandboxd.settings import Settings

from tests.unit.sandboxd.link_server import SANDBOX, WARM_CODE, LinkServer

SANDBOX_IMAGES = Path(warm.__file__).parents[1]
IDENTITY = Identity(boot="boot-1", token="token-1")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "ASK_EVERY_S", 0.01)


def settings(server: LinkServer) -> Settings:
    return Settings.from_environ({**server.environ, **server.warm_environ})


async def become(server: LinkServer) -> Settings:
    async with aiohttp.ClientSession() as session:
        return await warm.become(session, settings(server), IDENTITY)


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_it_asks_until_it_is_somebodys(loss: float) -> None:
    async def story() -> None:
        async with LinkServer(loss) as server:
            becoming = asyncio.create_task(become(server))
            await server.until(lambda: len(server.questions) >= 3)
            assert not becoming.done()
            server.is_somebodys = True
            became = await becoming
            code = became.enrol_code or ""
            assert replace(became, sandbox_id="", enrol_code=None) == replace(
                settings(server), sandbox_id="", enrol_code=None, is_warm=False
            )
            assert became.sandbox_id == SANDBOX
            assert {question["enrolHash"] for question in server.questions} == {
                hashlib.sha256(code.encode()).hexdigest()
            }
            assert code not in repr(server.questions) + repr(became)
            assert {question["tokenHash"] for question in server.questions} == {IDENTITY.token_hash}
            assert {question["enrolCode"] for question in server.questions} == {WARM_CODE}

    asyncio.run(story())


@pytest.mark.parametrize("status", [401, 404, 410])
def test_it_stops_when_nobody_wants_it(status: int) -> None:
    async def story() -> None:
        async with LinkServer() as server:
            server.refuse_with = status
            with pytest.raises(LinkClosedError):
                await become(server)
            assert len(server.questions) == 1

    asyncio.run(story())


LIFE = """
import asyncio, os, sys
from sandboxd import warm
from sandboxd.daemon import Standing, run_daemon
from sandboxd.settings import Settings
warm.ASK_EVERY_S = 0.01
sys.exit(asyncio.run(run_daemon(Settings.from_environ(os.environ), Standing(adopts_orphans=False, missing=()))))
"""


def lives(tmp_path: Path, story: Callable[[LinkServer], Awaitable[None]]) -> int:
    """A whole daemon that starts as a machine of the pool; returns its exit code when the story is over.

    It is a process of its own: in the end it ends whatever runs below it.
    """

    async def life() -> int:
        async with LinkServer() as server:
            (tmp_path / "workspace").mkdir()
            environ = {
                **server.environ,
                **server.warm_environ,
                "PYTHONPATH": str(SANDBOX_IMAGES),
                "NODUS_WORKSPACE": str(tmp_path / "workspace"),
                "NODUS_STATE_DIR": str(tmp_path / "state"),
                "NODUS_ISOLATION": json.dumps({"isolated": True, "guard": "network", "missing": []}),
            }
            told = asyncio.create_task(story(server))
            daemon = await asyncio.create_subprocess_exec(sys.executable, "-c", LIFE, env=environ)
            code = await daemon.wait()
            await told
            return code

    return asyncio.run(life())


def test_a_daemon_that_waited_works_as_any_other(tmp_path: Path) -> None:
    async def story(server: LinkServer) -> None:
        await server.until(lambda: len(server.questions) >= 2)
        assert server.hello is None
        server.is_somebodys = True
        await server.until(lambda: server.hello and server.bells)
        assert (await server.run("c1", "exec", {"command": "echo it works"}))["output"] == "it works\n"
        server.stop = True
        await server.ring()

    assert lives(tmp_path, story) == 0


def test_a_daemon_whose_machine_nobody_wants_ends_in_order(tmp_path: Path) -> None:
    async def story(server: LinkServer) -> None:
        await server.until(lambda: server.questions)
        server.refuse_with = 410

    assert lives(tmp_path, story) == 0
