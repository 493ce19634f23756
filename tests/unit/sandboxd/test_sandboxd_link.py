"""The link: no message may be lost for good, none may have its effect twice (docs/protocols.md §2)."""

import array
import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from sandboxd.asks import AskDesk
from sandboxd.bell import Bell
from sandboxd.desk import CommandDesk
from sandboxd.dialer import DialedConnector, Dialer, DialError
from sandboxd.link import Link
from sandboxd.link_http import Identity, LinkHttp
from sandboxd.retry import Backoff

from tests.unit.sandboxd.commands import on_desk, pids_in, until
from tests.unit.sandboxd.link_server import ENROL_CODE, SANDBOX, LinkServer

pytestmark = pytest.mark.req("NOD-443")


class Linked:
    """A desk that is linked to a server."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.task: asyncio.Task[None] | None = None


@asynccontextmanager
async def linked(
    server: LinkServer,
    desk: CommandDesk,
    asks: AskDesk | None = None,
    *,
    pull_every_s: float = 3600.0,
    connector: aiohttp.BaseConnector | None = None,
    enrol_code: str = ENROL_CODE,
) -> AsyncIterator[Linked]:
    identity = Identity(boot="boot-1", token="token-1")
    async with aiohttp.ClientSession(connector=connector) as session:
        base, bell_url = server.environ["NODUS_LINK_HTTP"], server.environ["NODUS_LINK_WS"]
        http = LinkHttp(session, base, SANDBOX, identity, lambda: Backoff(0.02, 0.2))
        here = Linked()
        link = Link(
            http,
            desk,
            asks or AskDesk({}, workspace="/"),
            lambda ring: Bell(session, bell_url, SANDBOX, identity, ring=ring, hear=lambda text: None),
            on_closed=here.closed.append,
            pull_every_s=pull_every_s,
        )
        here.task = asyncio.create_task(link.run(enrol_code, {"version": "t", "isolation": {}, "limits": {}}))
        try:
            yield here
        finally:
            here.task.cancel()
            await asyncio.wait({here.task})
            await link.settle(within_s=0.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_when_three_of_ten_messages_are_lost_each_way_each_command_runs_once_and_is_told(
    tmp_path: Path, seed: int
) -> None:
    effects = tmp_path / "effects"
    names = [f"c{number}" for number in range(40)]

    async def story(desk: CommandDesk) -> dict[str, Any]:
        async with LinkServer(loss=0.3, seed=seed) as server, linked(server, desk, pull_every_s=0.5):
            for name in names:
                await server.submit(name, "exec", {"command": f"echo {name} >> {effects}; echo did {name}"})
            return {name: await server.result(name) for name in names}

    results = on_desk(tmp_path, story)
    assert sorted(effects.read_text().split()) == sorted(names)
    for name, result in results.items():
        assert (result["state"], result["output"]) == ("exited", f"did {name}\n")


def test_the_bell_is_enough_to_be_fast_and_a_new_bell_pulls(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> None:
        async with LinkServer() as server, linked(server, desk):
            await server.until(lambda: server.bells)
            await server.run("c1", "exec", {"command": "true"})
            (bell,) = server.bells
            server.bells.clear()  # a ring that nobody hears
            await server.submit("c2", "exec", {"command": "true"})
            await bell.close()
            await server.result("c2")

    on_desk(tmp_path, story)


def test_without_any_bell_commands_are_only_later(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> None:
        async with LinkServer() as server, linked(server, desk, pull_every_s=0.2):
            await server.until(lambda: server.bells)
            server.bells.clear()
            assert (await server.run("c1", "exec", {"command": "echo hi"}))["output"] == "hi\n"

    on_desk(tmp_path, story)


@pytest.mark.req("NOD-435", "NOD-436")
def test_a_cancellation_reaches_the_command_and_nothing_else(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Any]:
        async with LinkServer() as server, linked(server, desk):
            await server.submit("c1", "exec", {"command": "sleep 60"})
            await server.submit("c2", "exec", {"command": "while [ ! -e go ]; do sleep 0.02; done; echo on"})
            await until(lambda: len(pids_in(tmp_path / "workspace")) >= 2)
            await server.cancel("c1")
            first = await server.result("c1")
            (tmp_path / "workspace/go").touch()
            return [first, await server.result("c2")]

    cancelled, other = on_desk(tmp_path, story)
    assert (cancelled["state"], cancelled["reason"]) == ("exited", "killed")
    assert other["output"] == "on\n"


def test_a_command_cancelled_before_it_was_pulled_is_never_started(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> Any:
        async with LinkServer() as server:
            await server.submit("c1", "exec", {"command": f"touch {tmp_path}/never"})
            await server.cancel("c1")
            async with linked(server, desk):
                return await server.result("c1")

    result = on_desk(tmp_path, story)
    assert (result["state"], result["reason"]) == ("failed", "killed")
    assert not (tmp_path / "never").exists()


def test_what_did_not_fit_into_an_answer_is_pulled_at_once(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Any]:
        async with LinkServer() as server:
            server.most_pulled = 2
            for number in range(7):
                wait = "while [ ! -e go ]; do sleep 0.02; done"
                await server.submit(f"c{number}", "exec", {"command": wait})
            async with linked(server, desk):
                await server.until(lambda: all(row["state"] == "claimed" for row in server.rows.values()))
                (tmp_path / "workspace/go").touch()
                return [await server.result(name) for name in server.rows]

    assert {result["exitCode"] for result in on_desk(tmp_path, story)} == {0}


def test_many_commands_at_once_each_with_a_large_result(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Any]:
        async with LinkServer() as server, linked(server, desk):
            for number in range(30):
                await server.submit(f"c{number}", "exec", {"command": "head -c 300000 /dev/zero"})
            return [await server.result(f"c{number}") for number in range(30)]

    assert {result["rawBytes"] for result in on_desk(tmp_path, story)} == {300000}


@pytest.mark.parametrize(("status", "word"), [(401, "unauthorized"), (410, "released")])
@pytest.mark.parametrize("when", ["hello", "pull", "done"])
def test_a_closed_link_asks_the_daemon_to_stop(tmp_path: Path, status: int, word: str, when: str) -> None:
    async def story(desk: CommandDesk) -> list[str]:
        async with LinkServer() as server:
            if when == "hello":
                server.refuse_with = status
            async with linked(server, desk) as here:
                if when == "done":
                    await server.submit("c1", "exec", {"command": "while [ ! -e go ]; do sleep 0.02; done"})
                    await until(lambda: pids_in(tmp_path / "workspace"))
                if when != "hello":
                    await server.until(lambda: "pull" in server.calls and server.bells)
                    server.refuse_with = status
                    (tmp_path / "workspace/go").touch()
                if when == "pull":
                    await server.ring()
                await until(lambda: here.closed)
                return here.closed

    assert set(on_desk(tmp_path, story)) == {word}


def test_a_wrong_enrolment_code_is_not_tried_again(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[str]:
        async with LinkServer() as server, linked(server, desk, enrol_code="guess") as here:
            await until(lambda: here.closed)
            assert server.calls == ["hello"]
            return here.closed

    assert on_desk(tmp_path, story) == ["unauthorized"]


@pytest.mark.parametrize("status", [400, 403, 404, 413])
def test_a_hello_that_is_refused_is_not_repeated_for_ever(tmp_path: Path, status: int) -> None:
    async def story(desk: CommandDesk) -> list[str]:
        async with LinkServer() as server:
            server.refuse_with = status
            async with linked(server, desk) as here:
                await until(lambda: here.closed)
                assert server.calls == ["hello"]
                return here.closed

    assert on_desk(tmp_path, story) == ["refused"]


@pytest.mark.parametrize(("status", "definite"), [(400, True), (413, True), (429, False), (503, False)])
def test_an_outcome_that_is_refused_is_dropped_and_one_that_is_put_off_told_again(
    tmp_path: Path, status: int, definite: bool
) -> None:
    async def story(desk: CommandDesk) -> None:
        async with LinkServer() as server, linked(server, desk) as here:
            server.refuse_with, server.refused_verb = status, "done"
            await server.submit("c1", "exec", {"command": "true"})
            await server.until(lambda: "done" in server.calls)
            if not definite:
                await server.until(lambda: server.calls.count("done") > 2)
            server.refuse_with = None
            if not definite:
                await server.result("c1")
            else:
                assert (await server.run("c2", "exec", {"command": "echo on"}))["output"] == "on\n"
                assert server.calls.count("done") <= 3  # once each, and once more if a pull brought c1 again
            assert not here.closed

    on_desk(tmp_path, story)


def test_the_control_plane_can_ask_for_a_stop(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[str]:
        async with LinkServer() as server, linked(server, desk) as here:
            server.stop = True
            await server.ring()
            await until(lambda: here.closed)
            return here.closed

    assert on_desk(tmp_path, story) == ["stop"]


def test_commands_that_cannot_be_answered_do_not_disturb_the_others(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> Any:
        async with LinkServer() as server, linked(server, desk):
            server.rows["bad"] = {"command": {"id": 7}, "state": "pending", "boot": None, "cancel": False}
            return await server.run("c1", "exec", {"command": "echo hi"})

    assert on_desk(tmp_path, story)["output"] == "hi\n"


def test_an_unknown_kind_fails_and_says_which_are_known(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> Any:
        async with LinkServer() as server, linked(server, desk):
            return await server.run("c1", "format_disk", {})

    result = on_desk(tmp_path, story)
    assert (result["state"], result["reason"]) == ("failed", "invalid")
    assert "read_file" in result["message"]


def test_delays_grow_are_jittered_and_obey_the_server() -> None:
    backoff = Backoff(first_s=1.0, most_s=4.0)
    delays = [backoff.failed() for _ in range(5)]
    assert all(most / 2 <= delay <= most for delay, most in zip(delays, (1, 2, 4, 4, 4), strict=True))
    assert backoff.failed(at_least_s=60) >= 60
    backoff.succeeded()
    assert backoff.failed() <= 1.0


class Launcher:
    """The other end of the dialling socket: connects only to the link's address."""

    def __init__(self, allowed: str) -> None:
        self.mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.fd = theirs.detach()
        self.mine.setblocking(False)
        self.asked: list[str] = []
        self._allowed = allowed

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while question := await loop.sock_recv(self.mine, 4096):
            self.asked.append(question.decode())
            if self.asked[-1] != self._allowed:
                await loop.sock_sendall(self.mine, b"error: not the link")
                continue
            host, port = self._allowed.rsplit(":", 1)
            with socket.create_connection((host, int(port))) as connected:
                rights = array.array("i", [connected.fileno()])
                self.mine.sendmsg([b"ok"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def test_http_and_bell_go_through_the_launchers_sockets(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> None:
        async with LinkServer() as server:
            launcher = Launcher(f"127.0.0.1:{server.port}")
            serving = asyncio.create_task(launcher.run())
            gone: list[bool] = []
            dialer = Dialer(launcher.fd, lambda: gone.append(True))
            async with linked(server, desk, connector=DialedConnector(dialer, None)):
                await server.until(lambda: server.bells)
                assert (await server.run("c1", "exec", {"command": "echo hi"}))["output"] == "hi\n"
            assert set(launcher.asked) == {f"127.0.0.1:{server.port}"}
            with pytest.raises(DialError, match="not the link"):
                await dialer.dial("169.254.170.2", 80)
            serving.cancel()
            launcher.mine.close()
            await until(lambda: gone)
            with pytest.raises(DialError, match="gone"):
                await dialer.dial("127.0.0.1", server.port)
            dialer.close()

    on_desk(tmp_path, story)


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandboxd.dialer._ASK_TO_ANSWER_S", 0.1)

    async def story() -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        dialer = Dialer(theirs.detach(), lambda: None)
        with pytest.raises(DialError, match="did not answer"):
            await dialer.dial("first", 1)
        asking = asyncio.create_task(dialer.dial("second", 2))
        await asyncio.sleep(0)
        with socket.socket() as late, socket.socket() as right:
            right.bind(("127.0.0.1", 0))
            for sent in (late, right):
                rights = array.array("i", [sent.fileno()])
                mine.sendmsg([b"ok"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            with await asking as got:
                assert got.getsockname() == right.getsockname()
        dialer.close()
        mine.close()

    asyncio.run(story())
