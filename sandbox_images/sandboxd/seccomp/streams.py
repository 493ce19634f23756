"""Gives commands sockets that lead to their own loopback and nowhere else (docs/decisions/0008).

Each is bound to a port of 127.0.0.1 before a command has it. What is bound there stays so: it cannot be bound again,
also not after it was disconnected, and the kernel sends nothing from that address through any other device.
"""

import contextlib
import errno
import logging
import os
import secrets
import select
import socket
import threading
from collections.abc import Callable

from .notifications import Question, give, receive, refuse

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_PORTS = range(10_000, 61_000)
_TRIES = 64

MakeStream = Callable[[], socket.socket]


def bound_stream() -> socket.socket:
    """A TCP socket that can reach nothing but loopback.

    Its port is named, not left to the kernel, which would take that one back when the socket is disconnected.

    Raises:
        OSError: no port was free, or there are too many descriptors.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):
                made.bind((LOOPBACK, secrets.choice(_PORTS)))
                return made
        raise OSError(errno.EADDRNOTAVAIL, "no port of loopback is free")
    except BaseException:
        made.close()
        raise


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
