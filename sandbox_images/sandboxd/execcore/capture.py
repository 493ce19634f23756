"""Reads a command's output with bounded memory: both ends are kept, the middle is counted."""

import array
import asyncio
import fcntl
import os
import termios
from typing import Protocol

from sandboxd.execcore.outputlog import OutputLog
from sandboxd.execcore.spec import Captured
from sandboxd.redaction import Stream

_READ_BYTES = 256 * 1024


class HeadTail:
    """Keeps the first and the last bytes of a stream and counts all of them."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self._head_limit = head_bytes
        self._tail_limit = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._raw_bytes = 0

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        self._raw_bytes += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data or self._tail_limit == 0:
            return
        self._tail += data[-self._tail_limit :]
        if len(self._tail) > 2 * self._tail_limit:  # cut rarely: each byte is moved at most once more
            del self._tail[: -self._tail_limit]

    def captured(self) -> Captured:
        """What has been kept so far."""
        tail = bytes(self._tail[-self._tail_limit :]) if self._tail_limit else b""
        return Captured(bytes(self._head), tail, self._raw_bytes)


class Keeps(Protocol):
    """What becomes of a stream's bytes."""

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        ...


class Logged:
    """Counts a stream, and gives it to a log."""

    def __init__(self, kept: HeadTail, log: OutputLog, stream: int) -> None:
        self._kept = kept
        self._log = log
        self._stream = stream

    def feed(self, data: bytes) -> None:
        """As of `Keeps`."""
        self._kept.feed(data)
        self._log.feed(self._stream, data)


class PipeReader:
    """Reads a non-blocking pipe in the event loop until its end, and owns the descriptor.

    After `freeze` it goes on reading without keeping anything, so that a background process which still
    holds the pipe neither blocks nor dies of SIGPIPE.
    """

    def __init__(self, fd: int, kept: Keeps, redacting: Stream) -> None:
        self._fd = fd
        self._redacting = redacting
        self._kept: Keeps | None = kept
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(fd, self._read_once)

    def drain(self) -> None:
        """Takes what lies in the pipe now; bounded, also when somebody keeps on writing."""
        waiting = array.array("i", [0])
        if self.ended.done():
            return
        fcntl.ioctl(self._fd, termios.FIONREAD, waiting)
        for _ in range(waiting[0] // _READ_BYTES + 2):  # one more than needed, to meet the end of file
            if self.ended.done() or not self._read_once():
                return

    def flush(self) -> None:
        """Keeps what was held back in case it was the beginning of a secret."""
        if self._kept is not None:
            self._kept.feed(self._redacting.rest())

    def freeze(self) -> None:
        """Keeps and counts nothing from here on."""
        self._kept = None

    def close(self) -> None:
        """Stops reading; repeating it is fine."""
        if self.ended.done():
            return
        self.ended.set_result(None)
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _read_once(self) -> bool:
        """Reads at most once; tells whether there was something."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        if self._kept is not None:
            self._kept.feed(self._redacting.feed(data))
        return True
