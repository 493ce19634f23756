"""Gives commands sockets of their own loopback, which lead nowhere else (docs/decisions/0008).

Each is tied to the loopback device before a command has it. The kernel unties none for a process without
privileges, also not when it is disconnected, and ties what is accepted from it likewise.
"""

import errno
import logging
import os
import select
import socket
import threading
from collections.abc import Callable

from .notifications import Question, give, receive, refuse

logger = logging.getLogger(__name__)

LOOPBACK_DEVICE = b"lo"

_ATTEMPTS = 2
"""Further tries of a connection, so that one to an address beyond loopback, which nothing answers, fails in seconds."""

MakeStream = Callable[[], socket.socket]


def loopback_stream(uid: int | None = None, gid: int | None = None) -> socket.socket:
    """A TCP socket that sends and receives by loopback alone, whatever it is bound and connected to.

    It is that user's, who else would have a socket of the daemon's: it could share the ports of what root listens at.

    Raises:
        OSError: there are too many descriptors, or the kernel is older than Linux 5.7.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LOOPBACK_DEVICE)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, _ATTEMPTS)
        if uid is not None and gid is not None:
            os.fchown(made.fileno(), uid, gid)
    except BaseException:
        made.close()
        raise
    return made


class StreamGiver:
    """A thread that answers the questions of a filter (`command_rules(streams=True)`), until it is closed.

    Args:
        listener: where they come; it is owned from here on.
        make: makes a socket.
    """

    def __init__(self, listener: int, make: MakeStream = loopback_stream) -> None:
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
        except Exception:  # unanswered, and with no thread to answer it, who asks would wait for ever
            logger.exception("a command gets no socket")
            refuse(self._listener, question, errno.ENOBUFS)
