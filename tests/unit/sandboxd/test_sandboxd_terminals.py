"""Terminals of the daemon: real shells on pseudo-terminals, whatever is lost, doubled or late on the way."""

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sandboxd.desk import CommandDesk
from sandboxd.execcore.host import ProcessHost
from sandboxd.results import Result
from sandboxd.terminals import terminal as rules
from sandboxd.terminals.desk import MOST_OPEN, TerminalDesk
from sandboxd.terminals.frames import MOST_DATA_BYTES, said, shown
from sandboxd.terminals.scrollback import KEPT_BYTES, Scrollback

from tests.unit.sandboxd.commands import command, command_desk, living_in, until

pytestmark = pytest.mark.req("NOD-444")


class Client:
    """One connection of somebody who watches a terminal."""

    def __init__(self, desk: TerminalDesk, name: str = "c1", connection: str = "k1") -> None:
        self.desk, self.name, self.connection = desk, name, connection
        self.numbers = itertools.count(1)
        self.output = b""
        self.has, self.typed, self.taken = 0, 0, 0
        self.end: dict[str, Any] | None = None
        self.gap = 0
        self.deaf = False

    def tell(self, data: bytes = b"", *, ask: bool = True, **more: Any) -> None:
        frame = {
            "client": self.name,
            "n": next(self.numbers),
            "after": self.has,
            "ask": ask,
            "at": self.typed,
            "data": base64.b64encode(data).decode(),
            **more,
        }
        self.desk.hear(json.dumps({"terminal": "t1", "from": self.connection, "frame": frame}))

    def type(self, text: str) -> None:
        self.tell(text.encode())
        self.typed += len(text.encode())

    def take(self, frame: dict[str, Any]) -> None:
        if self.deaf:
            return
        data = base64.b64decode(frame.get("data", ""))
        if frame["at"] > self.has:
            self.gap, self.has = self.gap + frame["at"] - self.has, frame["at"]
        new = data[self.has - frame["at"] :]
        self.output, self.has, self.taken = self.output + new, self.has + len(new), frame["input"]
        self.end = frame.get("end", self.end)
        if data:
            self.tell(ask=False)

    async def sees(self, text: bytes) -> None:
        await until(lambda: text in self.output)


class Room:
    """A desk with one terminal, and whoever watches it."""

    def __init__(self, desk: CommandDesk, terminals: TerminalDesk) -> None:
        self.desk, self.terminals = desk, terminals
        self.clients: dict[str, Client] = {}
        self.said: list[dict[str, Any]] = []
        self.rings = 0
        terminals.say, terminals.ring = self._said, self._rung

    def opens(self, line: str | None = None, name: str = "t1", **more: Any) -> "asyncio.Task[Result]":
        return self.desk.submit(command(name, "terminal", {"command": line, **more}))

    def joins(self, name: str = "c1", connection: str = "k1", **more: Any) -> Client:
        client = self.clients[connection] = Client(self.terminals, name, connection)
        for field, value in more.items():
            setattr(client, field, value)
        client.tell()
        return client

    def _said(self, text: str) -> None:
        message = json.loads(text)
        self.said.append(message)
        client = self.clients.get(message["to"])
        if client is not None:
            asyncio.get_running_loop().call_soon(client.take, message["frame"])

    def _rung(self) -> None:
        self.rings += 1


@contextlib.asynccontextmanager
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    made: list[TerminalDesk] = []

    def making(host: ProcessHost) -> TerminalDesk:
        made.append(TerminalDesk(host))
        return made[0]

    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    async with command_desk(tmp_path / "state", workspace, terminals=making) as desk:
        yield Room(desk, made[0])


def in_room(tmp_path: Path, story: Callable[[Room], Awaitable[None]]) -> None:
    async def told() -> None:
        async with room(tmp_path) as there:
            await story(there)

    asyncio.run(told())


async def opened(there: Room, line: str | None = None, **more: Any) -> tuple["asyncio.Task[Result]", Client]:
    result = there.opens(line, **more)
    await asyncio.sleep(0)
    return result, there.joins()


def test_a_shell_echoes_answers_and_tells_its_exit_code(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        result, client = await opened(there)
        client.type("echo $((40 + 2)); tty; echo $TERM; stty size\n")
        for text in (b"42\r\n", b"/dev/pts/", b"xterm-256color", b"24 80"):
            await client.sees(text)
        assert client.taken == client.typed
        client.type("exit 7\n")
        assert (await result)["exitCode"] == 7
        await until(lambda: client.end)
        assert client.end == {"exitCode": 7, "signal": None}

    in_room(tmp_path, story)


def test_ctrl_c_ends_the_program_and_not_the_shell(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        result, client = await opened(there)
        client.type("sh -c \"echo be''gun; exec sleep 1000\"\n")
        await client.sees(b"begun")
        client.type("\x03")
        client.type("echo st''ill $?\n")
        await client.sees(b"still 130")
        client.type("exit 3\n")
        assert (await result)["exitCode"] == 3

    in_room(tmp_path, story)


def test_a_program_hears_of_a_new_size(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        line = 'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done'
        _, client = await opened(there, line, cols=100, rows=30)
        await client.sees(b"ready")
        for wrong in ([0, 10], [10], "10x10", [10, 100_000], [True, 5]):
            client.tell(size=wrong)
        client.tell(size=[132, 43])
        await client.sees(b"43 132")

    in_room(tmp_path, story)


def test_what_is_typed_is_typed_once_whatever_is_sent_again(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        _, client = await opened(there, "stty -echo; echo ready; cat")
        await client.sees(b"ready")
        client.tell(b"one\n")
        client.tell(b"one\ntwo\n")  # again, with more behind it
        client.tell(b"far\n", at=4000)  # before its turn
        client.tell(b"three\n", at=8)
        await client.sees(b"three")
        again = there.joins(connection="k2", has=client.has)  # the same client, on another connection
        again.tell(b"three\nfour\n", at=8)
        await again.sees(b"four")
        everything = client.output + again.output
        assert [everything.count(word) for word in (b"one", b"two", b"three", b"four", b"far")] == [
            1,
            1,
            1,
            1,
            0,
        ]

    in_room(tmp_path, story)


def test_a_dropped_connection_comes_back_without_a_gap(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        _, client = await opened(there, "read x; seq 1 20000; echo over; cat")
        client.deaf = True
        client.type("\n")
        there.terminals.hear(json.dumps({"terminal": "t1", "from": "k1", "gone": True}))
        await asyncio.sleep(0.2)
        back = there.joins(connection="k2", has=client.has, output=client.output, typed=client.typed)
        await back.sees(b"over")
        lines = back.output.replace(b"\r", b"").split(b"\n")
        numbers = [line for line in lines if line.isdigit()]
        assert (numbers, back.gap) == ([str(n).encode() for n in range(1, 20001)], 0)

    in_room(tmp_path, story)


def test_who_is_there_loses_nothing_and_who_was_away_too_long_is_told_of_the_gap(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        result, client = await opened(there, "head -c 2000000 /dev/zero | tr '\\0' x; echo; echo over")
        await client.sees(b"over")
        assert (client.output.count(b"x"), client.gap) == (2_000_000, 0)
        await result
        late = there.joins("c2", "k2")
        await late.sees(b"over")
        assert late.gap == client.has - KEPT_BYTES
        await until(lambda: late.end)

    in_room(tmp_path, story)


def test_what_is_not_confirmed_is_sent_again_and_the_silent_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "AGAIN_S", 0.05)

    async def story(there: Room) -> None:
        _, client = await opened(there, "echo once; cat")
        await until(lambda: client.has)
        client.deaf = True
        client.type("more\n")
        sent = len(there.said)
        await until(lambda: len(there.said) >= sent + 2)
        client.deaf = False
        await client.sees(b"more")
        client.deaf = True
        client.type("again\n")
        kept = there.terminals._kept["t1"].terminal
        await until(lambda: not kept.is_watched)

    in_room(tmp_path, story)


def test_several_watch_one_terminal_and_few_enough_do(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        _, client = await opened(there, "cat")
        others = [there.joins(f"c{n}", f"k{n}") for n in range(2, 2 + rules.MOST_WATCHING)]
        others[-1].type("hello\n")
        await others[-1].sees(b"hello")
        await others[0].sees(b"hello")
        assert not client.output  # the quietest one gave way

    in_room(tmp_path, story)


def test_the_whole_tree_ends_with_the_shell(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        result, client = await opened(there)
        client.type("(trap '' HUP TERM; sleep 1000) & setsid nohup sleep 1001 & echo st''arted\n")
        await client.sees(b"started")
        client.type("exit\n")
        await result
        await until(lambda: not living_in(tmp_path / "workspace"))

    in_room(tmp_path, story)


def test_a_cancelled_terminal_ends_and_so_does_a_stopped_daemons(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        result, client = await opened(there)
        client.type("echo be''gun\n")
        await client.sees(b"begun")
        there.desk.cancel("t1")
        ended = await result
        assert (ended["state"], ended["reason"]) == ("exited", "killed")
        await until(lambda: client.end)
        left = there.opens("sleep 1000", name="t2")
        await asyncio.sleep(0.1)
        there.desk.stop()
        assert (await left)["state"] == "lost"

    in_room(tmp_path, story)


def test_no_more_are_open_than_there_may_be(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        opened = [there.opens("cat", name=f"t{n}") for n in range(MOST_OPEN)]
        await asyncio.sleep(0.2)
        refused = await there.opens("cat", name="more")
        assert (refused["state"], refused["reason"]) == ("failed", "no_room")
        there.desk.cancel("t0")
        await opened[0]
        another = there.opens("exit 3", name="another")
        assert (await another)["exitCode"] == 3

    in_room(tmp_path, story)


@pytest.mark.parametrize(
    "request_",
    [{"cols": 0}, {"cols": "80"}, {"rows": 5000}, {"term": "a b"}, {"command": "a\0b"}, {"term": 5}],
)
def test_a_wrong_request_opens_nothing(tmp_path: Path, request_: dict[str, Any]) -> None:
    async def story(there: Room) -> None:
        refused = await there.desk.submit(command("t1", "terminal", request_))
        assert (refused["state"], refused["reason"]) == ("failed", "invalid")

    in_room(tmp_path, story)


def test_nonsense_changes_nothing_and_an_unknown_terminal_is_looked_for(tmp_path: Path) -> None:
    async def story(there: Room) -> None:
        _, client = await opened(there, "stty -echo; cat")
        for text in ("{", "{}", '{"terminal": "t9"}', "[" * 100_000):
            rings = there.rings
            there.terminals.hear(text)
            assert there.rings == rings + 1
        for frame in (None, [], {}, {"client": 5}, {"client": "c", "n": -1}, {"client": "c", "data": "!"}):
            there.terminals.hear(json.dumps({"terminal": "t1", "from": "k9", "frame": frame}))
        assert said({"client": "c", "data": base64.b64encode(b"x" * (MOST_DATA_BYTES + 1)).decode()}) is None
        client.type("sound\n")
        await client.sees(b"sound")
        assert {message["to"] for message in there.said} == {"k1"}

    in_room(tmp_path, story)


def test_a_message_fits_into_a_frame_of_api_gateway() -> None:
    end = {"exitCode": 255, "signal": "SIGVTALRM"}
    frame = shown(number=2**53, taken=2**53, at=2**53, data=b"x" * MOST_DATA_BYTES, end=end)
    message = {"action": "terminal", "terminal": "t" * 64, "to": "k" * 200, "frame": frame}
    assert len(json.dumps(message)) < 32 * 1024


def test_scrollback_counts_from_the_beginning() -> None:
    kept = Scrollback(4)
    kept.feed(b"abc")
    assert kept.read(1, 10) == (1, b"bc")
    kept.feed(b"defg")
    assert (kept.first, kept.end) == (3, 7)
    assert kept.read(0, 2) == (3, b"de")
    assert kept.read(99, 2) == (7, b"")
