"""Gives commands sockets that lead to their own loopback and nowhere else (docs/decisions/0008).

Each is bound to a port of 127.0.0.1 before a command has it. What is bound there stays so: it cannot be bound again,
also not after it was disconnected, and the kernel sends nothing from that address through any other device.

That holds for a socket that was bound by name, and not for one that was accepted from it: the kernel leaves that one
its port only while it is connected. So nobody can connect to a given one but who sends with the longest time to live,
which commands cannot set.
"""

import contextlib
import errno
import functools
import logging
import os
import secrets
import select
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from .notifications import Question, give, receive, refuse

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_PORTS = range(10_000, 61_000)
_KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 64

_IP_MINTTL = 21
FARTHEST = 255
"""The time to live of the packets that given sockets take, and that of the proxy's. Commands' own begin with less."""

MakeStream = Callable[[], socket.socket]


@functools.cache
def given_ports(kernels: Path = _KERNELS) -> Sequence[int]:
    """Ports that may be given: none of those that the kernel chooses for connections.

    It chooses none that somebody has bound, at whatever address. So with those a command could take the last one that
    the daemon needs for its link, or the proxy for a host.
    """
    try:
        first, last = (int(word) for word in kernels.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return _PORTS
    return [port for port in _PORTS if not first <= port <= last] or _PORTS


def bound_stream() -> socket.socket:
    """A TCP socket that can reach nothing but loopback, and that nobody can connect to.

    Its port is named, not left to the kernel, which would take that one back when the socket is disconnected.

    Raises:
        OSError: no port was free, or there are too many descriptors.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.IPPROTO_IP, _IP_MINTTL, FARTHEST)
        ports = given_ports()
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):
                made.bind((LOOPBACK, secrets.choice(ports)))
                return made
        raise OSError(errno.EADDRNOTAVAIL, "no port of loopback is free")
    except BaseException:
        made.close()
        raise


def proxy_listener(port: int) -> socket.socket:
    """A listening socket of loopback whose connections given sockets take. Raises OSError: somebody has the port."""
    listener = socket.create_server((LOOPBACK, port), backlog=256)
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, FARTHEST)
    return listener


class StreamGiver:
    """A thread that answers the questions of a filter (`command_rules(asks=True)`), until it is closed.

    Args:
        listener: where they come; it is owned from here on.
        make: makes a socket.
    """

    def __init__(self, listener: int, make: MakeStream = bound_stream) -> None:
        self._listener = listener
        self._make = make
        self._ended, self._end = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="streams", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Gives nothing any more: whoever asks is told that there is no such call."""
        os.close(self._end)
        self._thread.join()
        os.close(self._ended)
        os.close(self._listener)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._ended in ready or ready.get(self._listener, 0) & ~select.POLLIN:
                return
            try:
                self._answer(receive(self._listener))
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EINTR):  # who asked has gone
                    logger.error("a command gets no socket: %s", error)

    def _answer(self, question: Question) -> None:
        kind = question.arguments[1]
        try:
            with self._make() as made:
                made.setblocking(not kind & socket.SOCK_NONBLOCK)
                give(self._listener, question, made.fileno(), close_on_exec=bool(kind & socket.SOCK_CLOEXEC))
        except OSError as error:
            refuse(self._listener, question, error.errno or errno.ENOBUFS)
