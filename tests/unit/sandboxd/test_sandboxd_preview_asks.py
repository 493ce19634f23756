"""Previews at the daemon: requests to services in the sandbox, whatever those answer, and large bodies by a store."""

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from sandboxd.asks import AskDesk
from sandboxd.contents import Contents
from sandboxd.previewasks import MOST_BYTES, MOST_INLINE_BYTES, PreviewAsks
from sandboxd.results import Result
from sandboxd.transfer import Transfer

from tests.unit.sandboxd.commands import process_host, until
from tests.unit.sandboxd.test_sandboxd_asks import ask
from tests.unit.sandboxd.test_sandboxd_file_asks import Store

LARGE = os.urandom(3 * 1024 * 1024)

Story = Callable[["Around"], Awaitable[Any]]
Service = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Around:
    """A desk of previews, a store, and services that say their bytes and close."""

    def __init__(self, asks: AskDesk, address: str, folder: Path, store: Store) -> None:
        self.asks, self.address, self.folder, self.store = asks, address, folder, store
        self.heard: list[bytes] = []
        self.number = self.connected = self.ended = 0
        self.servers: list[asyncio.Server] = []

    async def serve(self, *said: bytes, host: str = "127.0.0.1", until_end: int = 0) -> int:
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connected += 1
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                head = await reader.readuntil(b"\r\n\r\n")
                self.heard.append(head + await reader.readexactly(until_end))
                for part in said:
                    writer.write(part)
                    await writer.drain()
                if not said:
                    await reader.read()  # until whoever has asked goes away
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.ended += 1

        server = await asyncio.start_server(one, host, 0)
        self.servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def ask(self, kind: str, **request: Any) -> Result:
        self.number += 1
        at = {"url": f"{self.address}/{request['url']}"} if "url" in request else {}
        return await self.asks.submit(ask(self.number, kind, {**request, **at}))

    async def get(self, port: int, target: str = "/", method: str = "GET", **more: Any) -> Result:
        asked = {"method": method, "target": target, "headers": ["Host", f"127.0.0.1:{port}"], **more}
        return await self.ask("http", port=port, **asked)


@asynccontextmanager
async def around(folder: Path, held_s: float) -> AsyncIterator[Around]:
    store = Store()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{name}", store.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with process_host() as host, aiohttp.ClientSession() as session:
        previews = PreviewAsks(host, Contents(Transfer(session, 3, 60.0), folder, 2), held_s=held_s)
        asks = AskDesk(previews.handlers, workspace=str(folder))
        made = Around(asks, f"http://127.0.0.1:{runner.addresses[0][1]}", folder, store)
        yield made
        for server in made.servers:
            server.close()
        await until(lambda: made.ended == made.connected)
    await runner.cleanup()


def play(folder: Path, story: Story, held_s: float = 30.0) -> Any:
    async def told() -> Any:
        async with around(folder, held_s) as made:
            return await story(made)

    return asyncio.run(told())


def body(result: Result) -> bytes:
    return base64.b64decode(result["content"], validate=True)


def answer(content: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = (b"HTTP/1.1 " + status, *headers, b"Content-Length: %d" % len(content), b"", content)
    return b"\r\n".join(lines)


@pytest.mark.req("NOD-417")
def test_a_service_is_asked_and_its_answer_comes_back_as_it_is(tmp_path: Path) -> None:
    page = bytes(range(256))

    async def story(near: Around) -> None:
        port = await near.serve(
            answer(page, b"Content-Type: text/html", b"X-A: \xe9", b"X-A: 2", status=b"203 So")
        )
        got = await near.get(port, "/a/b?c=%20d")
        assert (got["state"], got["status"], got["size"], body(got)) == ("exited", 203, 256, page)
        assert [value for name, value in got["headers"] if name == "X-A"] == ["é", "2"]
        assert near.heard == [b"GET /a/b?c=%%20d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port]

    play(tmp_path, story)


def test_a_body_goes_along_and_an_answer_without_one_has_none(tmp_path: Path) -> None:
    async def story(near: Around) -> None:
        port = await near.serve(answer(b"heard"), until_end=3)
        headers = ["Host", "h", "Content-Length", "3"]
        sent = base64.b64encode(b"\0\xff\n").decode()
        got = await near.get(port, method="POST", headers=headers, content=sent)
        assert body(got) == b"heard"
        assert near.heard[0].endswith(b"\r\n\r\n\0\xff\n")
        port = await near.serve(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
        head = await near.get(port, method="HEAD")
        assert (head["status"], head["size"]) == (200, 0)
        port = await near.serve(b"HTTP/1.1 204 No\r\n\r\n")
        assert (await near.get(port))["size"] == 0

    play(tmp_path, story)


def test_a_service_that_listens_at_the_other_loopback_is_found(tmp_path: Path) -> None:
    async def story(near: Around) -> None:
        port = await near.serve(answer(b"six"), host="::1")
        assert body(await near.get(port)) == b"six"

    with socket.socket(socket.AF_INET6) as has_six:
        try:
            has_six.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    play(tmp_path, story)


def test_large_bodies_go_by_the_store_both_ways(tmp_path: Path) -> None:
    async def story(near: Around) -> None:
        near.store.contents["/up"] = LARGE
        port = await near.serve(answer(LARGE[::-1]), until_end=len(LARGE))
        known = {"size": len(LARGE), "sha256": sha256(LARGE).hexdigest()}
        headers = ["Host", "h", "Content-Length", str(len(LARGE))]
        got = await near.get(port, method="PUT", headers=headers, url="up", **known)
        assert near.heard[0].endswith(LARGE)
        assert (got["size"], "content" in got) == (len(LARGE), False)
        sent = await near.ask("http_body", held=got["held"], url="down")
        assert (sent["state"], near.store.contents["/down"]) == ("exited", LARGE[::-1])
        again = await near.ask("http_body", held=got["held"], url="down")
        assert (again["state"], again["reason"]) == ("failed", "not_found")
        wrong = await near.get(
            port, method="PUT", headers=headers, url="up", size=len(LARGE), sha256="0" * 64
        )
        assert (wrong["state"], wrong["reason"]) == ("failed", "wrong_content")

    play(tmp_path, story)


def test_an_answer_that_nobody_fetches_makes_room_again(tmp_path: Path) -> None:
    async def story(near: Around) -> None:
        port = await near.serve(answer(b"x" * (MOST_INLINE_BYTES + 1)))
        held = [(await near.get(port))["held"] for _ in range(6)]  # of which two have room at a time
        assert (await near.ask("http_body", held=held[0], url="late"))["reason"] == "not_found"

    play(tmp_path, story, held_s=0.2)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ((b"",), "no_http"),
        ((b"SSH-2.0-x\r\n",), "no_http"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",), "no_http"),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",), "no_http"),
        ((b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",), "no_http"),
        ((b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",), "no_http"),
        ((b"HTTP/1.1 200 OK\r\n" + (b"A: " + b"b" * 20_000 + b"\r\n") * 2 + b"\r\n",), "long_headers"),
        ((b"HTTP/1.1 101 Switching Protocols\r\n\r\n",), "no_http"),
        ((b"HTTP/1.1 999 Denied\r\n\r\n",), "no_http"),
        ((b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MOST_BYTES + 1),), "too_large"),
        ((), "timeout"),
    ],
)
def test_what_is_no_answer_is_said_and_what_was_done_is_not_known(
    tmp_path: Path, said: tuple[bytes, ...], reason: str
) -> None:
    async def story(near: Around) -> None:
        got = await near.get(await near.serve(*said), timeoutS=30 if said else 0.5)
        assert (got["state"], got["reason"]) == ("lost", reason)

    play(tmp_path, story)


def test_where_nothing_listens_nothing_was_done(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    got = play(tmp_path, lambda near: near.get(port))
    assert (got["state"], got["reason"]) == ("failed", "unreachable")


@pytest.mark.parametrize(
    "request_",
    [
        {"port": 0},
        {"port": 65_536},
        {"port": "80"},
        {"headers": ["a"]},
        {"headers": "a"},
        {"content": "!"},
        {"content": base64.b64encode(b"x" * (MOST_INLINE_BYTES + 1)).decode()},
    ],
)
def test_a_request_that_cannot_be_read_is_refused(tmp_path: Path, request_: dict[str, Any]) -> None:
    got = play(
        tmp_path, lambda near: near.ask("http", **{"port": 1, "method": "GET", "target": "/", **request_})
    )
    assert (got["state"], got["reason"]) == ("failed", "invalid")


@pytest.mark.parametrize(
    "request_",
    [
        {"target": "/ HTTP/1.1\r\nX: y"},
        {"method": "GET / HTTP/1.1\r\nX: y\r\n"},
        {"headers": ["A", "b\r\nC: d"]},
        {"headers": ["A\r\nB", "c"]},
    ],
)
def test_nothing_smuggles_a_line_into_a_request(tmp_path: Path, request_: dict[str, Any]) -> None:
    async def story(near: Around) -> None:
        got = await near.get(await near.serve(answer(b"")), **request_)
        assert (got["state"], got["reason"]) == ("lost", "no_http")
        assert near.heard == []

    play(tmp_path, story)
