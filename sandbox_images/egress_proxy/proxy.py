"""The proxy: one connection of a client, one judgement, one connection outward."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .addresses import Resolver, connect, judged, system_resolver
from .bodies import PIECE, pass_on
from .hello import read_client_hello
from .journal import Entry, Journal
from .policy import ALLOW_LIST, Policy, Rule
from .refusals import Refused
from .requests import MOST_HEAD, Forward, Tunnel, read_request

MOST_CONNECTIONS = 256
_LINGER_S = 1.0
_TUNNEL_OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"
_TLS = b"\x16"
_ALERTS = {"sni": bytes.fromhex("15 0303 0002 02 70")}
"""What is said where an answer of HTTP would be taken for the host's: TLS calls this `unrecognized_name`."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Patience:
    """Seconds that clients and hosts may take: `head_s` for what has to be read before anything is passed on,
    `idle_s` without a byte in either direction."""

    head_s: float = 15.0
    idle_s: float = 900.0


class Proxy:
    """Serves one sandbox. Nothing that a client sends is believed before it was judged by the policy."""

    def __init__(
        self,
        policy: Policy,
        journal: Journal,
        *,
        resolver: Resolver = system_resolver,
        patience: Patience = Patience(),
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        """Take what it works with; nothing is listened to.

        Args:
            policy: of the sandbox.
            journal: gets a line for each connection.
            resolver: names to addresses, asked once for each connection.
            patience: how slow others may be.
            most_connections: at once; more are answered 503.
        """
        self._policy = policy
        self._journal = journal
        self._resolver = resolver
        self._patience = patience
        self._most = most_connections
        self._open = 0

    async def serve(self, listener: socket.socket) -> asyncio.Server:
        """Take connections from a listening socket, TCP or unix, which belongs to the server from here on."""
        start = asyncio.start_unix_server if listener.family == socket.AF_UNIX else asyncio.start_server
        return await start(self._serve, sock=listener, limit=MOST_HEAD)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        entry = Entry()
        self._open += 1
        try:
            await self._answer((reader, writer), entry)
        except Refused as refused:
            answer = refused.response() if not entry.outcome else _ALERTS.get(refused.word, b"")
            entry.outcome, entry.reason = ("failed" if refused.status >= 500 else "refused"), refused.word
            await _say((reader, writer), answer)
        except TimeoutError:
            entry.outcome, entry.reason = "ended", "idle"
        except OSError:
            entry.outcome, entry.reason = "ended", "broken"
        finally:
            self._open -= 1
            writer.close()
            if entry.method or entry.outcome in ("refused", "failed"):  # else nothing was asked for
                self._journal.write(entry)

    async def _answer(self, client: Streams, entry: Entry) -> None:
        if self._open > self._most:
            raise Refused(503, "busy", f"{self._most} connections are open already")
        try:
            async with asyncio.timeout(self._patience.head_s):
                request = await read_request(client[0])
        except TimeoutError:
            raise Refused(408, "slow", "the request did not come in time") from None
        if request is None:
            return
        entry.method = "CONNECT" if isinstance(request, Tunnel) else "HTTP"
        entry.host, entry.port = request.host, request.port
        rule = self._policy.allows(request.host, request.port)
        if rule is None:
            what = "names it not" if self._policy.name == ALLOW_LIST else "takes ports 80 and 443"
            message = f"{request.host}:{request.port} is closed: the egress policy {self._policy.name} {what}"
            raise Refused(403, "policy", message)
        host = await self._reach(request, entry)
        try:
            if isinstance(request, Tunnel):
                await self._tunnel(client, host, rule, entry)
            else:
                await self._forward(client, host, request, entry)
        finally:
            host[1].close()

    async def _reach(self, request: Tunnel | Forward, entry: Entry) -> Streams:
        """Connects to the address that was judged."""
        asked = (request.host, request.port)
        led = self._policy.trusted.get(asked)
        if led is None:
            addresses, port = await judged(*asked, self._resolver), request.port
        else:
            addresses, port = [led[0]], led[1]
        connection, entry.address = await connect(request.host, port, addresses)
        return await asyncio.open_connection(sock=connection, limit=MOST_HEAD)

    async def _tunnel(self, client: Streams, host: Streams, rule: Rule, entry: Entry) -> None:
        client[1].write(_TUNNEL_OPEN)
        entry.outcome = "tunnelled"

        async def upward(send: Callable[[bytes], Awaitable[None]]) -> None:
            if self._policy.name == ALLOW_LIST:
                await send(await self._checked_hello(client[0], rule, entry.host))
            while piece := await client[0].read(PIECE):
                await send(piece)

        await self._relay(client[1], host, upward, entry)

    async def _checked_hello(self, reader: asyncio.StreamReader, rule: Rule, host: str) -> bytes:
        """What a tunnel begins with, once it is known to be meant for the host it was opened to.

        Where a rule names the port, other protocols than TLS may be spoken, ssh for one.
        """
        try:
            async with asyncio.timeout(None if rule.port else self._patience.head_s):
                first = await reader.read(1)
            if rule.port and first != _TLS:
                return first
            async with asyncio.timeout(self._patience.head_s):
                hello, name = await read_client_hello(reader, first)
        except TimeoutError:
            raise Refused(408, "slow", "the tunnel did not begin in time") from None
        if name is None or name.removesuffix(".") != host:
            raise Refused(403, "sni", f"TLS names another server than {host}")
        return hello

    async def _forward(self, client: Streams, host: Streams, request: Forward, entry: Entry) -> None:
        entry.outcome = "forwarded"
        host[1].write(request.head)

        async def upward(send: Callable[[bytes], Awaitable[None]]) -> None:
            await pass_on(client[0], send, request.length)

        await self._relay(client[1], host, upward, entry, half_close=False)

    async def _relay(
        self,
        client: asyncio.StreamWriter,
        host: Streams,
        upward: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]],
        entry: Entry,
        *,
        half_close: bool = True,
    ) -> None:
        """Passes bytes both ways until the host has said all, or nobody says anything any more.

        Raises:
            Refused: what the client sends is not what it may send.
            TimeoutError: nothing moved for too long.
            OSError: one side is gone.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._patience.idle_s) as idle:

            async def send(piece: bytes) -> None:
                entry.sent += len(piece)
                host[1].write(piece)
                await host[1].drain()
                idle.reschedule(loop.time() + self._patience.idle_s)

            async def up() -> None:
                await upward(send)
                if half_close and host[1].can_write_eof():
                    host[1].write_eof()

            async def down() -> None:
                while piece := await host[0].read(PIECE):
                    entry.received += len(piece)
                    client.write(piece)
                    await client.drain()
                    idle.reschedule(loop.time() + self._patience.idle_s)

            await _first_of(asyncio.create_task(down()), asyncio.create_task(up()))


async def _first_of(down: "asyncio.Task[None]", up: "asyncio.Task[None]") -> None:
    """Waits for `down`, or for a refusal of what `up` passes on; ends both."""
    try:
        await asyncio.wait({down, up}, return_when=asyncio.FIRST_COMPLETED)
        if up.done() and isinstance(failure := up.exception(), Refused):
            raise failure
        await down  # a host that takes no more may still have something to say
    finally:
        for task in (down, up):
            task.cancel()
        await asyncio.gather(down, up, return_exceptions=True)


async def _say(client: Streams, answer: bytes) -> None:
    """Says it, and hears the client out for a moment: a connection closed with something unread loses the answer."""
    try:
        client[1].write(answer)
        if client[1].can_write_eof():
            client[1].write_eof()
        async with asyncio.timeout(_LINGER_S):
            while await client[0].read(PIECE):
                continue
    except (OSError, TimeoutError):
        return  # it does not listen any more
