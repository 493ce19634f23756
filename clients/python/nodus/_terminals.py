"""Terminals in sandboxes that a program drives: types, reads, resizes; a dropped connection is made again by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from nodus._terminal_line import Line, TerminalCalls
from nodus.errors import (
    ConflictError,
    NodusError,
    OutcomeUnknownError,
    SandboxNotRunningError,
    ServerUnreachableError,
    ServiceUnavailableError,
    WaitTimeoutError,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from websockets.asyncio.client import ClientConnection

    from nodus._record import Record

FINAL = frozenset({"Exited", "TimedOut", "Cancelled", "OutOfMemory", "Failed", "Lost"})

_FIRST_AGAIN_S, _LAST_AGAIN_S = 0.5, 2.0
_ALIVE_S = 20.0
_SILENT_S = 15.0
"""Without an answer for so long, the connection counts as dropped."""

_RECONNECT_S = 1.0
_AWAY_S = 300.0
"""For so long a server that cannot be reached is tried again."""

_AWAY = (ServerUnreachableError, OutcomeUnknownError, ServiceUnavailableError)
_OPEN_S = 10.0
_MOST_TYPED = 64 * 1024

T = TypeVar("T")


class AsyncTerminal:
    """A terminal for asyncio; get one from ``AsyncSandbox.terminal(…)``.

    As a context manager it ends the terminal at its end, unless it was detached.

    Args:
        opened: the terminal as the server has shown it, with where to connect to.
        calls: what it asks the server; awaited.
    """

    def __init__(self, opened: Record, calls: TerminalCalls) -> None:
        spec = opened.spec
        self.name: str = opened.metadata.name
        """Its id, by which one comes back to it."""
        self._line = Line((spec.columns, spec.rows))
        self._url: str | None = _url_of(opened)
        self._status = opened.status.to_dict()
        self._calls = calls
        self._output = bytearray()
        self._news = asyncio.Event()
        self._wanted = asyncio.Event()
        self._drained = asyncio.Event()
        self._over = False
        self._fault: BaseException | None = None
        self.connections = 0
        """How often it has connected: 1, and one more for each time that a connection was dropped."""
        self._task = asyncio.create_task(self._run())

    @property
    def exit_code(self) -> int | None:
        """The exit code of its program, once that has ended by itself."""
        code = self._status.get("exitCode")
        return code if isinstance(code, int) else None

    @property
    def state(self) -> str:
        """``Running`` as long as it goes on; then how it has ended, as of a command: ``Exited``, ``Cancelled``, ``Lost`` …"""
        state = self._status.get("state")
        return state if isinstance(state, str) and state in FINAL else "Running"

    @property
    def lost_bytes(self) -> int:
        """Output that nobody could show any more: only the last 256 KB wait for somebody who was away."""
        return self._line.gap

    async def read(self, timeout: float | None = None) -> bytes:
        """The next output; empty when the program has ended, or the terminal was detached.

        Raises:
            WaitTimeoutError: nothing came in time.
            NodusError: the server refuses to let this client back in.
        """
        try:
            async with asyncio.timeout(timeout):
                while not self._output and not self._over:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise WaitTimeoutError(f"terminal {self.name} has shown nothing within {timeout} s") from None
        data = bytes(self._output)
        self._output.clear()
        if not data and self._fault is not None:
            raise self._fault
        return data

    async def read_until(self, text: str | bytes, timeout: float | None = 60.0) -> bytes:
        """All output up to and with a text; what comes behind it stays to be read.

        Raises:
            WaitTimeoutError: it did not come in time, or the program has ended without it.
        """
        wanted, seen = _bytes(text), bytearray()
        try:
            async with asyncio.timeout(timeout):
                while wanted not in seen:
                    more = await self.read()
                    if not more:
                        raise WaitTimeoutError(f"terminal {self.name} has ended without showing {wanted!r}")
                    seen += more
        except TimeoutError:
            raise WaitTimeoutError(f"terminal {self.name} has not shown {wanted!r} in time") from None
        end = seen.index(wanted) + len(wanted)
        self._output[:0] = seen[end:]
        return bytes(seen[:end])

    async def write(self, data: str | bytes) -> None:
        """Types a text; it waits while much of what was typed before is still on its way."""
        self._line.type(_bytes(data))
        self._wanted.set()
        while self._line.waiting > _MOST_TYPED and not self._over:
            self._drained.clear()
            await self._drained.wait()

    async def resize(self, columns: int, rows: int) -> None:
        """Tells the program the size of the window."""
        self._line.size = (columns, rows)
        self._wanted.set()

    async def detach(self) -> None:
        """Lets go of the terminal, which goes on without this client."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def close(self) -> None:
        """Ends the terminal and all that runs in it."""
        await self.detach()
        if self.state not in FINAL:
            self._status = (await self._calls.end()).status.to_dict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._task.cancelled():
            await self.close()

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        while data := await self.read():
            yield data

    async def _run(self) -> None:
        """Connects, and connects again, until the program has ended."""
        try:
            while self._line.end is None and self._url is not None:
                await self._connected(self._url)
                if self._line.end is None:
                    await self._come_back()
            if self._line.end is not None:
                self._status = {**self._status, "state": "Exited", "exitCode": self._line.end.get("exitCode")}
        except NodusError as error:
            self._fault = error
        finally:
            self._over = True
            self._news.set()
            self._drained.set()

    async def _connected(self, url: str) -> None:
        """Talks over one connection until it is dropped, silent, or the end."""
        from websockets.asyncio.client import connect  # noqa: PLC0415 (only terminals need it)
        from websockets.exceptions import WebSocketException  # noqa: PLC0415

        try:
            async with connect(url, open_timeout=_OPEN_S, close_timeout=1, ping_interval=None) as socket:
                self.connections += 1
                self._line.connected()
                hearing = asyncio.create_task(self._hear(socket))
                try:
                    await self._talk(socket, hearing)
                finally:
                    hearing.cancel()
                    await asyncio.wait({hearing})
        except (OSError, WebSocketException):
            return  # dropped: it is made again

    async def _hear(self, socket: ClientConnection) -> None:
        async for message in socket:
            new = self._line.hear(message)
            if new:
                self._output += new
            if new is not None and self._line.end is None:
                await socket.send(self._line.confirm())
            self._news.set()
            self._drained.set()
            self._wanted.set()
            if self._line.end is not None:
                return

    async def _talk(self, socket: ClientConnection, hearing: asyncio.Task[None]) -> None:
        """Says what there is to say, one message at a time, and again while nobody answers."""
        loop = asyncio.get_running_loop()
        again, answered_s, said_s = _FIRST_AGAIN_S, loop.time(), 0.0
        while not hearing.done():
            self._wanted.clear()
            now = loop.time()
            waits = self._line.unanswered
            if not waits:
                again, answered_s = _FIRST_AGAIN_S, now
            elif now - answered_s > _SILENT_S:
                return
            due = again if waits else 0.0 if self._line.wants or not said_s else _ALIVE_S
            if now - said_s >= due:
                await socket.send(self._line.ask())
                again, said_s = min(again * 2, _LAST_AGAIN_S) if waits else again, now
                continue
            waiting = asyncio.create_task(self._wanted.wait())
            try:
                await asyncio.wait(
                    {waiting, hearing}, timeout=due - (now - said_s), return_when=asyncio.FIRST_COMPLETED
                )
            finally:  # who leaves closes the loop next: nothing may be left on it
                waiting.cancel()
                await asyncio.wait({waiting})

    async def _come_back(self) -> None:
        """Comes back when the server can be reached. Raises what the server refuses it with."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _AWAY_S
        while True:
            await asyncio.sleep(_RECONNECT_S)
            try:
                return await self._ask_again()
            except _AWAY:
                if loop.time() > until:
                    raise

    async def _ask_again(self) -> None:
        """Asks for another connection; where there is nothing to come back to, says how it has ended."""
        shown = await self._calls.look()
        self._status = shown.status.to_dict()
        try:
            self._url = _url_of(await self._calls.attach())
        except (ConflictError, SandboxNotRunningError):
            self._url = None
            self._status = (await self._calls.look()).status.to_dict()
            if self.state not in FINAL:
                self._status["state"] = "Lost"


class Terminal:
    """A terminal for programs that block; get one from ``Sandbox.terminal(…)``.

    It may be used from several threads, one that reads and one that types. As a context manager it ends the terminal
    at its end, unless it was detached. What it does is that of ``AsyncTerminal``, on a thread of its own.
    """

    def __init__(self, opened: Record, calls: TerminalCalls) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nodus-terminal", daemon=True)
        self._thread.start()

        async def made() -> AsyncTerminal:
            return AsyncTerminal(opened, TerminalCalls(*map(_on_thread, calls)))

        self._terminal = self._do(made())
        self.name = self._terminal.name
        """Its id, by which one comes back to it."""
        self._detached = False

    @property
    def exit_code(self) -> int | None:
        """The exit code of its program, once that has ended by itself."""
        return self._terminal.exit_code

    @property
    def state(self) -> str:
        """As of ``AsyncTerminal``."""
        return self._terminal.state

    @property
    def lost_bytes(self) -> int:
        """As of ``AsyncTerminal``."""
        return self._terminal.lost_bytes

    @property
    def connections(self) -> int:
        """As of ``AsyncTerminal``."""
        return self._terminal.connections

    def read(self, timeout: float | None = None) -> bytes:
        """As of ``AsyncTerminal``."""
        return self._do(self._terminal.read(timeout))

    def read_until(self, text: str | bytes, timeout: float | None = 60.0) -> bytes:
        """As of ``AsyncTerminal``."""
        return self._do(self._terminal.read_until(text, timeout))

    def write(self, data: str | bytes) -> None:
        """As of ``AsyncTerminal``."""
        self._do(self._terminal.write(data))

    def resize(self, columns: int, rows: int) -> None:
        """As of ``AsyncTerminal``."""
        self._do(self._terminal.resize(columns, rows))

    def detach(self) -> None:
        """As of ``AsyncTerminal``."""
        self._detached = True
        self._leave(self._terminal.detach())

    def leave(self) -> None:
        """Lets go of the terminal from another thread: whoever reads comes to an end; ``detach`` it then."""
        self._do(self._terminal.detach())

    def close(self) -> None:
        """As of ``AsyncTerminal``."""
        self._leave(self._terminal.close())

    def __iter__(self) -> Generator[bytes]:
        while data := self.read():
            yield data

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._detached:
            self.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _leave(self, work: Coroutine[Any, Any, None]) -> None:
        if self._loop.is_closed():
            work.close()
            return
        try:
            self._do(work)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def _on_thread(call: Callable[[], Record]) -> Callable[[], Awaitable[Record]]:
    return lambda: asyncio.to_thread(call)


def _url_of(shown: Record) -> str | None:
    connect = shown.status.get("connect")
    return None if connect is None else connect.url


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
