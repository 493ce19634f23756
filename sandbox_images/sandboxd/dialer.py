"""Connections through the launcher, for a sandbox whose network has no way out (`NODUS_DIAL_FD`)."""

import array
import asyncio
import os
import socket
import ssl
from collections.abc import Callable

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import BaseConnector
from aiohttp.tracing import Trace

_ANSWER_BYTES = 4096
_ASK_TO_ANSWER_S = 15.0
_MAX_FDS = 4


class DialError(OSError):
    """The launcher did not connect; it may do so another time."""


class Dialer:
    """Asks the launcher for connected sockets, one at a time.

    Args:
        fd: descriptor of the `SOCK_SEQPACKET` socket; owned from here on.
        on_launcher_gone: called once when the other end closes: nothing can be reached any more.
    """

    def __init__(self, fd: int, on_launcher_gone: Callable[[], None]) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)
        self._on_launcher_gone = on_launcher_gone
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[tuple[bytes, list[int]]] | None = None
        self._owed = 0  # answers to questions that nobody waits for any more
        self._gone = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._receive)

    async def dial(self, host: str, port: int) -> socket.socket:
        """A connected, non-blocking TCP socket.

        Raises:
            DialError: refused, unreachable, or no answer in time.
        """
        async with self._turn:
            if self._gone:
                raise DialError("The launcher is gone.")
            await self._loop.sock_sendall(self._socket, f"{host}:{port}".encode())
            answer = self._answer = self._loop.create_future()
            try:
                async with asyncio.timeout(_ASK_TO_ANSWER_S):
                    text, fds = await asyncio.shield(answer)
            except TimeoutError as error:
                self._abandon(answer)
                raise DialError(f"The launcher did not answer within {_ASK_TO_ANSWER_S:.0f} s.") from error
            except asyncio.CancelledError:
                self._abandon(answer)
                raise
            finally:
                self._answer = None
        return _socket_of(text, fds, host, port)

    def close(self) -> None:
        """Gives the descriptor back."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _abandon(self, answer: asyncio.Future[tuple[bytes, list[int]]]) -> None:
        """Nobody wants this answer any more: lets go of what it brought, or will bring."""
        if not answer.done():
            answer.cancel()
            self._owed += 1
        elif answer.exception() is None:
            _close_all(answer.result()[1])

    def _receive(self) -> None:
        """Takes one answer; answers come in the order of the questions."""
        try:
            text, ancillary, _, _ = self._socket.recvmsg(
                _ANSWER_BYTES,
                socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize),
                socket.MSG_CMSG_CLOEXEC,
            )
        except BlockingIOError:
            return
        except OSError:
            text, ancillary = b"", []
        if not text:
            self._launcher_gone()
            return
        fds = _descriptors(ancillary)
        if self._owed > 0:
            self._owed -= 1
            _close_all(fds)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result((text, fds))
        else:
            _close_all(fds)

    def _launcher_gone(self) -> None:
        self._gone = True
        self._loop.remove_reader(self._socket.fileno())
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(DialError("The launcher is gone."))
        self._on_launcher_gone()


class DialedConnector(BaseConnector):
    """Lets aiohttp speak HTTP and WebSocket over sockets that the launcher has connected."""

    def __init__(self, dialer: Dialer, ssl_context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._dialer = dialer
        self._ssl_context = ssl_context

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        host, port = req.url.host, req.url.port
        if host is None or port is None:
            raise aiohttp.ClientConnectionError(f"{req.url} names no host.")
        try:
            connected = await self._dialer.dial(host, port)
            _, protocol = await self._loop.create_connection(
                self._factory,
                sock=connected,
                ssl=self._ssl_context if req.is_ssl() else None,
                server_hostname=host if req.is_ssl() else None,
            )
        except OSError as error:  # also a failed TLS handshake
            raise aiohttp.ClientConnectionError(f"{host}:{port}: {error}") from error
        return protocol


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


def _socket_of(text: bytes, fds: list[int], host: str, port: int) -> socket.socket:
    if text == b"ok" and len(fds) == 1:
        connected = socket.socket(fileno=fds[0])
        connected.setblocking(False)
        return connected
    _close_all(fds)
    raise DialError(f"The launcher does not connect to {host}:{port}: {text.decode('utf-8', 'replace')}")


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
