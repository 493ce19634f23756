"""This terminal as that of a sandbox: raw keys go there, what is shown there comes here."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Generator
from typing import TYPE_CHECKING

import click

from nodus.cli import text
from nodus.cli.failures import usage

if TYPE_CHECKING:
    from types import FrameType

    from nodus._terminals import Terminal

MOST_CELLS = 1000
_TERM = re.compile(r"[A-Za-z0-9+._-]{1,64}")
_RESIZED, _DONE = b"r", b"d"
_READ_BYTES = 16 * 1024


def check_terminal() -> None:
    """Refuses to go on where nobody can type and look."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise usage(
            "a shell needs a terminal on standard input and output; nodus sandbox run does without one"
        )


def size() -> tuple[int, int]:
    """Columns and rows of this terminal."""
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    return min(max(columns, 1), MOST_CELLS), min(max(rows, 1), MOST_CELLS)


def term() -> str | None:
    """Its type, as far as it has a usable one."""
    name = os.environ.get("TERM", "")
    return name if _TERM.fullmatch(name) else None


class Escape:
    """Finds the wish to detach in what is typed: ``~.`` at the beginning of a line; ``~~`` there is one ``~``."""

    def __init__(self) -> None:
        self._at_start = True
        self._tilde = False

    def typed(self, data: bytes) -> tuple[bytes, bool]:
        """What goes to the sandbox, and whether to detach then."""
        passed = bytearray()
        for byte in data:
            key = bytes([byte])
            if self._tilde:
                self._tilde = False
                if key == b".":
                    return bytes(passed), True
                passed += b"~" if key == b"~" else b"~" + key
            elif self._at_start and key == b"~":
                self._tilde = True
                continue
            else:
                passed += key
            self._at_start = key in (b"\r", b"\n")
        return bytes(passed), False


def show(terminal: Terminal, name: str) -> int:
    """Shows a sandbox's terminal here until its program has ended; returns its exit code."""
    keys = _Keys(terminal)
    try:
        with _raw(), keys:
            for data in terminal:
                _write(data)
    finally:
        terminal.detach()
    place = f"sandbox/{text.line(name)} terminal {terminal.name}"
    if keys.detached:
        click.echo(
            f"{place} goes on; come back by: nodus sandbox shell {text.line(name)} --attach {terminal.name}",
            err=True,
        )
        return 0
    if terminal.lost_bytes:
        click.echo(f"{place}: {terminal.lost_bytes} bytes of its output could not be shown", err=True)
    if terminal.exit_code is None:
        click.echo(
            f"{place} {'was ended by a signal' if terminal.state == 'Exited' else terminal.state}", err=True
        )
        return 1
    return terminal.exit_code


class _Keys:
    """Passes on what is typed and resized here, on a thread of its own."""

    def __init__(self, terminal: Terminal) -> None:
        self.detached = False
        self._terminal = terminal
        self._escape = Escape()
        self._hear, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._run, name="nodus-keys", daemon=True)

    def __enter__(self) -> None:
        os.set_blocking(self._tell, False)
        self._before = signal.signal(signal.SIGWINCH, self._resized)
        self._thread.start()
        self._say(_RESIZED)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGWINCH, self._before)
        self._say(_DONE)
        self._thread.join()
        os.close(self._hear)
        os.close(self._tell)

    def _resized(self, signum: int, frame: FrameType | None) -> None:
        self._say(_RESIZED)

    def _say(self, word: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._tell, word)

    def _run(self) -> None:
        keyboard = sys.stdin.fileno()
        while True:
            ready, _, _ = select.select([keyboard, self._hear], [], [])
            if self._hear in ready:
                words = os.read(self._hear, 64)
                if _DONE in words:
                    return
                self._terminal.resize(*size())
            if keyboard in ready and not self._pass_on(keyboard):
                self.detached = True
                self._terminal.leave()
                return

    def _pass_on(self, keyboard: int) -> bool:
        """Types what was typed; tells whether to go on: not when the escape was typed, or this terminal is gone."""
        try:
            data = os.read(keyboard, _READ_BYTES)
        except OSError:
            data = b""
        typed, detach = self._escape.typed(data)
        if typed:
            self._terminal.write(typed)
        return bool(data) and not detach


@contextlib.contextmanager
def _raw() -> Generator[None]:
    """Every key is passed on as it is, Ctrl-C too."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard, termios.TCSADRAIN)  # what was typed ahead is not thrown away
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]
