"""The installed program as a process: terminals, pipes, signals."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.conftest import PROGRAM, Place
from tests.unit.client.fake_runs import Outcome
from tests.unit.client.manifests import NEX_04, NEX_07

FOLLOW = ("agentrun", "steps", "hello-agent-run", "--follow")
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A program on a pseudo terminal, and what it has written."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.raw = b""

    def until(self, words: bytes) -> bytes:
        """Read until the words appear, or the end; what was read so far, without escapes."""
        while words not in ESCAPES.sub(b"", self.raw) and self._more():
            pass
        return ESCAPES.sub(b"", self.raw)

    def rest(self) -> bytes:
        """Everything."""
        while self._more():
            pass
        return ESCAPES.sub(b"", self.raw)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def _more(self) -> bool:
        select.select([self._master], [], [])
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: nobody writes any more
            return False
        self.raw += data
        return bool(data)


@contextmanager
def on_terminal(place: Place, *words: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), *words],
        env=place.environment | {"TERM": "xterm", "COLUMNS": "100"},
        cwd=place.folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.fixture
def started(fake: Place) -> Place:
    fake.nodus("apply", "-f", "-", stdin=NEX_04 + "---\n" + NEX_07)
    return fake


def test_follow_on_a_terminal_shows_spinner_steps_and_end(started: Place) -> None:
    assert started.fake
    run = started.fake.runs["default", "hello-agent-run"]
    run.looks, run.pace = -1, 1
    with on_terminal(started, *FOLLOW) as terminal:
        shown = terminal.rest().decode()
        assert terminal.process.wait() == 0
    assert "⠋ sandbox" in shown
    assert re.search(r"✓ turn-1\.tool\.run_command\.1  .*exit 0  workspace-ready", shown)
    assert re.search(r"agentrun/hello-agent-run Succeeded  \$0\.0021  compute \$[0-9.]+$", shown.rstrip())


@pytest.mark.req("NOD-008")
def test_follow_on_a_terminal_obeys_nothing_of_what_a_run_printed(started: Place) -> None:
    assert started.fake
    hostile = "\x1b[2J\x1b]0;owned\x07[bold red]x[/]"
    started.fake.runs["default", "hello-agent-run"].outcome = Outcome(output=hostile, message=hostile)
    with on_terminal(started, *FOLLOW) as terminal:
        shown = terminal.rest().decode()
    assert "\\x1b[2J\\x1b]0;owned\\x07[bold red]x[/]" in shown
    assert b"\x1b]0;" not in terminal.raw
    assert b"\x1b[2J" not in terminal.raw


def test_ctrl_c_ends_with_130_and_gives_the_cursor_back(started: Place) -> None:
    assert started.fake
    run = started.fake.runs["default", "hello-agent-run"]
    run.looks, run.moves = 3, False
    with on_terminal(started, *FOLLOW) as terminal:
        terminal.until(b"setup")
        terminal.process.send_signal(signal.SIGINT)
        shown = terminal.rest()
        assert terminal.process.wait() == 130
    assert shown.rstrip().endswith(b"Interrupted.")
    assert terminal.raw.rfind(b"\x1b[?25h") > terminal.raw.rfind(b"\x1b[?25l")


def test_ctrl_c_ends_a_wait_with_130(started: Place) -> None:
    assert started.fake
    run = started.fake.runs["default", "hello-agent-run"]
    run.moves = False
    words = ("wait", "ar/hello-agent-run", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=8m")
    process = subprocess.Popen([str(PROGRAM), *words], env=started.environment, stderr=subprocess.PIPE)
    asked = len(started.fake.seen)
    while len(started.fake.seen) < asked + 2:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err.strip()) == (130, b"Interrupted.")


def test_a_reader_that_goes_away_is_no_error_text(started: Place) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [str(PROGRAM), "get", "ar"],
        env=started.environment,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_terminal_without_unicode_gets_escapes(started: Place) -> None:
    started.nodus("create", "ar", "u", "--agent", "hello-agent", "--prompt", "漢字")
    plain = started.environment | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [str(PROGRAM), "get", "ar", "-o", "wide"], env=plain, capture_output=True, check=True
    )
    assert b"\\u6f22\\u5b57" in done.stdout


@pytest.mark.req("NOD-066")
def test_an_answer_in_a_pipe_is_the_bytes_whatever_the_locale(started: Place) -> None:
    assert started.fake
    run = started.fake.runs["default", "hello-agent-run"]
    run.outcome = Outcome(answer="漢字\r\n\x1b[1m")
    run.end()
    plain = started.environment | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [str(PROGRAM), "agentrun", "answer", "hello-agent-run"], env=plain, capture_output=True, check=True
    )
    assert done.stdout == "漢字\r\n\x1b[1m".encode()


@pytest.mark.req("NOD-481")
def test_the_key_is_asked_for_unseen_on_a_terminal(fake: Place) -> None:
    server = fake.environment["NODUS_SERVER"]
    bare = {
        name: value for name, value in fake.environment.items() if name not in {"NODUS_SERVER", "NODUS_TOKEN"}
    }
    with on_terminal(Place(bare, fake.folder), "login", "--server", server) as terminal:
        terminal.until(b"API key")
        terminal.type(b"key-of-the-fake\n")
        shown = terminal.rest()
        assert terminal.process.wait() == 0
    assert b"key-of-the-fake" not in shown
    assert b"Signed in to" in shown
