"""The one way out of a sandbox's network: connected sockets to the link's address, handed in one by one.

The daemon asks over NODUS_DIAL_FD (protocols §2). Who could ask is already the daemon, yet what it says is judged
as if a command said it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable
from urllib.parse import urlsplit

MESSAGE_BYTES = 512
CONNECT_S = 5.0
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class DialError(Exception):
    """What was asked is not allowed or did not work; the message goes back to the daemon."""


def link_addresses(urls: Iterable[str]) -> frozenset[tuple[str, int]]:
    """Host and port of each address of the link.

    Raises:
        ValueError: an address is not http, https, ws or wss, or has no host.
    """
    addresses: set[tuple[str, int]] = set()
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise ValueError(
                f"{url!r} is not an address of a link: expected http(s):// or ws(s):// and a host"
            )
        addresses.add((parts.hostname, parts.port or _DEFAULT_PORTS[parts.scheme]))
    return frozenset(addresses)


class DialService:
    """Answers one sandbox's requests, one after the other, until its end of the socket is closed."""

    def __init__(self, allowed: frozenset[tuple[str, int]], name: str) -> None:
        """Make the pair of sockets; nothing runs before `start`.

        Args:
            allowed: host (lower case) and port of the link.
            name: the sandbox's id, for the thread's name.
        """
        self._allowed = allowed
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._thread = threading.Thread(target=self._serve, name=f"dial-{name}", daemon=True)

    def start(self) -> None:
        """Begin to answer. Call it when the sandbox holds its end: ours of that end is closed here."""
        self.theirs.close()
        self._thread.start()

    def hang_up(self) -> None:
        """Answer no more; the sandbox sees the end of file."""
        with contextlib.suppress(OSError):  # the sandbox has hung up already
            self._ours.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up and let go of the sockets."""
        self.hang_up()
        self.theirs.close()
        if self._thread.ident is None:
            self._ours.close()

    def _serve(self) -> None:
        with self._ours as channel:
            while True:
                try:
                    # Plain recv: descriptors that a sandbox sends along are dropped by the kernel.
                    request = channel.recv(MESSAGE_BYTES)
                    if not request:
                        return
                    self._answer(channel, request)
                except OSError:  # the sandbox is gone, or the service was closed
                    return

    def _answer(self, channel: socket.socket, request: bytes) -> None:
        try:
            connection = self._connect(request)
        except DialError as error:
            channel.sendall(f"error: {error}".encode()[:MESSAGE_BYTES])
            return
        with connection:
            socket.send_fds(channel, [b"ok"], [connection.fileno()])

    def _connect(self, request: bytes) -> socket.socket:
        address = parse(request)
        if address not in self._allowed:
            raise DialError(f"{address[0]}:{address[1]} is not the link's address")
        try:
            connection = socket.create_connection(address, timeout=CONNECT_S)
        except OSError as error:
            raise DialError(f"cannot connect to {address[0]}:{address[1]}: {error}") from error
        connection.settimeout(None)
        return connection


def parse(request: bytes) -> tuple[str, int]:
    """`HOST:PORT` (an IPv6 address in brackets) to host and port.

    Raises:
        DialError: it is not of this form.
    """
    try:
        host, separator, port = request.decode().rpartition(":")
    except UnicodeDecodeError as error:
        raise DialError("the request is not UTF-8") from error
    if not separator or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise DialError("expected HOST:PORT")
    return host.removeprefix("[").removesuffix("]").lower(), int(port)
