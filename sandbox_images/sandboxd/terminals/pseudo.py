"""A pseudo-terminal: its daemon's side, read and written in the event loop."""

import asyncio
import contextlib
import fcntl
import os
import struct
import sys
import termios
from collections.abc import Callable

from sandboxd.execcore.spec import CommandUser

_READ_BYTES = 64 * 1024
_MOST_DRAINED_READS = 256
MOST_WAITING_BYTES = 64 * 1024
"""Typed bytes that wait for a program which does not read."""

# Runs first in the new process, as the commands' user and leader of a session of its own, and makes the terminal that
# session's: no hook between fork and exec, and no path of a device. What Python ignores, a program may want to hear.
_BECOME = (
    "import fcntl, os, signal, sys, termios\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "for name in ('SIGPIPE', 'SIGXFSZ'): signal.signal(getattr(signal, name), signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)


def in_control(argv: tuple[str, ...], interpreter: str = sys.executable) -> tuple[str, ...]:
    """The same command, started by what makes its standard input its controlling terminal."""
    return (interpreter, "-I", "-S", "-c", _BECOME, *argv)


class Pseudo:
    """Both sides of a pseudo-terminal; the command's side is closed once it has been handed over.

    Args:
        on_output: called with what the program has put out.
    """

    def __init__(self, user: CommandUser, size: tuple[int, int], on_output: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_output = on_output
        self._master, self.command_side = os.openpty()
        self._waiting = bytearray()
        self._reads = False
        self._over = False
        os.set_blocking(self._master, False)
        if user.uid is not None:
            with contextlib.suppress(OSError):  # it can use what it inherits all the same
                os.fchown(self.command_side, user.uid, -1 if user.gid is None else user.gid)
        self.resize(size)
        self.read_on(True)

    def handed_over(self) -> None:
        """The command has its side, or there is none."""
        os.close(self.command_side)
        self.command_side = -1

    def resize(self, size: tuple[int, int]) -> None:
        """Sets the window's columns and rows; the program in front hears SIGWINCH."""
        columns, rows = size
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_on(self, on: bool) -> None:
        """Goes on reading, or lets the program wait once its terminal is full."""
        if on == self._reads or self._over:
            return
        self._reads = on
        if on:
            self._loop.add_reader(self._master, self._read)
        else:
            self._loop.remove_reader(self._master)

    def write(self, data: bytes) -> int:
        """Takes typed bytes as far as there is room for them; returns how many."""
        if self._over:
            return len(data)  # nobody reads any more
        taken = data[: MOST_WAITING_BYTES - len(self._waiting)]
        self._waiting += taken
        self._write()
        return len(taken)

    def drain(self) -> None:
        """Takes what lies there, once the program is gone."""
        for _ in range(_MOST_DRAINED_READS):
            if not self._read():
                return

    def close(self) -> None:
        """Hangs up; repeating it is fine."""
        if self._over:
            return
        self.read_on(False)
        self._over = True
        self._loop.remove_writer(self._master)
        os.close(self._master)

    def _read(self) -> bool:
        """Reads once; tells whether there was something. The end of a terminal is an error (EIO)."""
        if self._over:
            return False
        try:
            data = os.read(self._master, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            return False
        self._on_output(data)
        return True

    def _write(self) -> None:
        try:
            del self._waiting[: os.write(self._master, self._waiting)]
        except BlockingIOError:
            pass
        except OSError:
            self._waiting.clear()
        if self._waiting:
            self._loop.add_writer(self._master, self._write)
        else:
            self._loop.remove_writer(self._master)
