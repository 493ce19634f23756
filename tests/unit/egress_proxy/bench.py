"""A proxy with a policy, hosts that it may lead to, and what a client says to it, byte for byte."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from egress_proxy.journal import Journal
from egress_proxy.policy import Policy
from egress_proxy.proxy import Patience, Proxy


class Resolver:
    """Answers from a table, and counts the questions. A list of lists is answered one after the other."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self.names.get(host, [host] if _is_literal(host) else None)
        if found is None:
            raise OSError("no such name")
        if found and isinstance(found[0], list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found


def _is_literal(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Host:
    """A host of the internet: keeps what it hears, answers a fixed text once it has heard `until`, closes."""

    def __init__(self, answer: bytes = OK, until: bytes = b"") -> None:
        self.answer, self.until = answer, until
        self.heard: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # the proxy has hung up
            self.heard.append(await reader.read(65536))
            while not self.heard[-1].endswith(self.until) and (more := await reader.read(65536)):
                self.heard[-1] += more
            writer.write(self.answer)
            writer.write_eof()
            while more := await reader.read(65536):
                self.heard[-1] += more
        writer.close()


@asynccontextmanager
async def host_of(host: Host) -> AsyncIterator[Host]:
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    host.port = server.sockets[0].getsockname()[1]
    async with server:
        yield host
        await settled()


async def settled() -> None:
    """Wait until every connection of this loop is served and closed."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)
    for _ in range(3):
        await asyncio.sleep(0)


class Bench:
    """A running proxy."""

    def __init__(self, port: int, log: io.StringIO, resolver: Resolver) -> None:
        self.port, self._log, self.resolver = port, log, resolver

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    async def line(self) -> dict[str, Any]:
        """The first line of the log, once it is there."""
        while not self.lines():
            await asyncio.sleep(0.005)
        return self.lines()[0]

    async def say(self, *pieces: bytes, end: bool = True) -> bytes:
        """Send, and read until the proxy closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if end:
                writer.write_eof()
            return await reader.read()
        except ConnectionError:
            return b"closed"
        finally:
            writer.close()


def play(
    scenario: Callable[[Bench], Coroutine[Any, Any, Any]],
    *,
    policy: str = "Open",
    allow: Sequence[str] = (),
    trusted: Sequence[str] = (),
    names: dict[str, Any] | None = None,
    **more: Any,
) -> Any:
    """Start a proxy, and play a scenario."""

    async def run() -> Any:
        log, resolver = io.StringIO(), Resolver(names or {})
        made = Policy.of(policy, allow, trusted)
        more.setdefault("patience", Patience(head_s=5, idle_s=5))
        proxy = Proxy(made, Journal(log), resolver=resolver, **more)
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        async with asyncio.timeout(30), await proxy.serve(listener):
            result = await scenario(Bench(listener.getsockname()[1], log, resolver))
            await settled()
            return result

    return asyncio.run(run())


def client_hello(name: str | None) -> bytes:
    """What OpenSSL says first to a server of that name."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()
