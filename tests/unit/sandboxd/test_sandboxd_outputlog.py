"""What a viewer sees of a command: both streams apart, live by offset, bounded, and kept while the machine lives."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from sandboxd.asks import AskDesk
from sandboxd.desk import CommandDesk
from sandboxd.execcore.outputlog import (
    LONGEST_LINE,
    MOST_CHARACTERS,
    MOST_LINES,
    MOST_TOLD_BYTES,
    OutputLog,
    OutputShelf,
)
from sandboxd.outputasks import OutputAsks
from sandboxd.results import Result

from tests.unit.sandboxd.commands import execute, on_desk
from tests.unit.sandboxd.test_sandboxd_asks import ask


def log_of(*fed: tuple[int, bytes], ended: bool = True) -> OutputLog:
    log = OutputLog()
    for stream, data in fed:
        log.feed(stream, data)
    if ended:
        log.end()
    return log


def whole(log: OutputLog) -> str:
    """All that is held, read page by page."""
    text, at = "", 0
    while True:
        reading = log.read(at)
        if at == 0:
            at = reading.first
        text += "".join(piece.text for piece in reading.pieces)
        at = reading.next
        if reading.ended:
            return text


@pytest.mark.req("NOD-434", "FLD-08")
def test_both_streams_are_told_apart_and_every_character_is_whole_and_harmless() -> None:
    owl = "🦉".encode()
    log = log_of((1, b"a" + owl[:2]), (2, b"err\n"), (1, owl[2:] + b"\x1b[31m\xff\n"), (1, owl[:1]))
    assert [tuple(piece) for piece in log.read(0).pieces] == [
        (1, "a"),
        (2, "err\n"),
        (1, "🦉\\x1b[31m�\n�"),
    ]
    assert log.read(3).pieces[0] == (2, "r\n")
    assert log.read(10**9).pieces == []


@pytest.mark.req("NOD-441", "NOD-602")
def test_of_twenty_thousand_lines_the_last_ten_thousand_are_held() -> None:
    data = b"".join(b"line %d\n" % number for number in range(20_000))
    for step in (1 << 18, 1000):
        log = log_of(*((1, data[at : at + step]) for at in range(0, len(data), step)))
        lines = whole(log).splitlines()
        assert (len(lines), lines[0], lines[-1]) == (MOST_LINES, "line 10000", "line 19999")
        assert log.read(0).first == data.index(b"line 10000\n")


@pytest.mark.req("NOD-441", "NOD-602")
def test_a_long_line_is_shortened_with_a_mark_wherever_it_is_cut() -> None:
    data = b"a\n" + b"x" * 70_000 + b"\nb\n" + b"y" * LONGEST_LINE + b"\n" + b"z" * 200_000
    expected = (
        f"a\n{'x' * LONGEST_LINE} … {70_000 - LONGEST_LINE} characters left out …\nb\n"
        f"{'y' * LONGEST_LINE}\n{'z' * LONGEST_LINE} … {200_000 - LONGEST_LINE} characters left out …"
    )
    for step in (len(data), 65_537, 4096, 999):
        log = log_of(*((1, data[at : at + step]) for at in range(0, len(data), step)))
        assert whole(log) == expected, step


@pytest.mark.req("NOD-441", "FLD-08")
def test_memory_is_bounded_whatever_comes() -> None:
    log = OutputLog()
    began = time.monotonic()
    for _ in range(200):
        log.feed(1, b"y\n" * 65_536)
        log.feed(2, b"\0" * 131_072)
    took = time.monotonic() - began
    log.end()
    text = whole(log)
    assert len(text) <= MOST_CHARACTERS
    assert text.count("\n") <= MOST_LINES
    assert took < 60  # no figure of speed: what is not linear takes an hour
    wide = log_of(*((1, "漢".encode() * 60_000 + b"\n") for _ in range(100)))
    assert len(whole(wide)) == MOST_CHARACTERS


def test_one_reading_fits_into_an_answer() -> None:
    log = log_of(*((1, "漢".encode() * 50_000 + b"\n") for _ in range(10)))
    reading = log.read(0)
    assert sum(len(piece.text.encode()) for piece in reading.pieces) < MOST_TOLD_BYTES + 60_000
    assert not reading.ended


def asked(tmp_path: Path, *steps: Any) -> list[Any]:
    """Does steps against a desk: a command to submit, or an ask's request."""

    async def story(desk: CommandDesk) -> list[Any]:
        asks = AskDesk(OutputAsks(desk._outputs).handlers, workspace="/")
        found, tasks = [], []
        for number, step in enumerate(steps):
            if isinstance(step, dict):
                found.append(await asks.submit(ask(number, "output", step)))
            elif step == "end":
                found.append(await tasks[-1])
            elif step == "cancel":
                desk.cancel("c")
            else:
                tasks.append(desk.submit(step))
        return found

    return on_desk(tmp_path, story)


def streams(result: Result) -> dict[str, str]:
    found: dict[str, str] = {}
    for piece in result["pieces"]:
        found[piece["stream"]] = found.get(piece["stream"], "") + piece["text"]
    return found


@pytest.mark.req("NOD-433", "NOD-434", "NOD-435")
def test_output_is_there_while_the_command_runs_and_after_its_end(tmp_path: Path) -> None:
    running, ended, after = asked(
        tmp_path,
        execute("c", "echo out; echo err >&2; exec sleep 100", log=True),
        {"command": "c", "after": 7, "waitS": 10},
        "cancel",
        "end",
        {"command": "c"},
    )
    assert (running["next"], running["ended"]) == (8, False)
    assert (ended["reason"], ended["output"], ended["rawBytes"]) == ("killed", "", 8)
    assert (streams(after), after["ended"]) == ({"stdout": "out\n", "stderr": "err\n"}, True)


@pytest.mark.req("NOD-434")
def test_the_models_own_commands_keep_one_pipe_and_have_no_log(tmp_path: Path) -> None:
    result, log = asked(
        tmp_path, execute("c", "for n in 1 2 3; do echo $n; echo $n >&2; done"), "end", {"command": "c"}
    )
    assert result["output"] == "1\n1\n2\n2\n3\n3\n"
    assert log["reason"] == "not_found"


def test_what_could_not_be_started_has_an_empty_log(tmp_path: Path) -> None:
    result, log = asked(tmp_path, execute("c", "x", cwd="/none", log=True), "end", {"command": "c"})
    assert (result["state"], log["pieces"], log["ended"]) == ("failed", [], True)


@pytest.mark.req("NOD-440")
def test_logs_outlive_the_daemon_in_its_folder_and_the_oldest_go_first(tmp_path: Path) -> None:
    shelf = OutputShelf(tmp_path / "output", most_bytes=3000)
    for name in ("a", "b", "c"):
        shelf.begin(name).feed(1, name.encode() * 1000)
        shelf.end(name)
    again = OutputShelf(tmp_path / "output")
    assert [again.find(name) is not None for name in ("a", "b", "c", "none")] == [False, True, True, False]
    found = again.find("c")
    assert found is not None
    assert whole(found) == "c" * 1000
    (tmp_path / "output/c.log").write_text("{}")
    assert again.find("c") is None


def test_who_waits_hears_at_once_and_does_not_wait_for_ever() -> None:
    async def story() -> tuple[int, float]:
        log = OutputLog()
        asyncio.get_running_loop().call_later(0.05, log.feed, 1, b"late")
        await log.grown(0, 30)
        began = time.monotonic()
        await log.grown(4, 0.05)
        return log.read(0).next, time.monotonic() - began

    heard, waited = asyncio.run(story())
    assert (heard, waited < 10) == (4, True)
