"""The log of changing requests: torn anywhere, full disks, many writers at once, and what is on disk before an answer."""

import asyncio
import errno
import json
import os
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localstack.cloud import durable, write_ahead
from localstack.cloud.write_ahead import LogDamaged, WriteAhead, WriteAheadLog

Message = dict[str, Any]


def keep(log: WriteAheadLog, *words: str) -> None:
    for word in words:
        log.append("dynamodb", [(b"x-amz-target", b"DynamoDB_20120810.PutItem")], word.encode())


def kept(log: WriteAheadLog) -> list[int]:
    return [entry["position"] for entry in log.entries()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "write-ahead.log"


@pytest.fixture
def open_log(path: Path) -> Iterator[Callable[[], WriteAheadLog]]:
    opened: list[WriteAheadLog] = []

    def make() -> WriteAheadLog:
        opened.append(WriteAheadLog(path))
        return opened[-1]

    yield make
    for log in opened:
        log.close()


def test_a_log_that_was_cut_at_any_byte_holds_the_requests_that_were_whole(
    path: Path, open_log: Callable[[], WriteAheadLog]
) -> None:
    keep(open_log(), "one", "two" * 20, "three")
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        log = WriteAheadLog(path)
        before = sum(end <= length for end in ends)
        assert kept(log) == list(range(1, before + 1))
        keep(log, "next")  # goes on behind them, whatever was torn
        assert kept(log) == list(range(1, before + 2))
        log.close()


@pytest.mark.parametrize(
    "rest", [b"\0" * 40, b"\0" * 40 + b"\n", b'"position":3}\n', b'{"posi\n', b"\xff\xfe\n"]
)
def test_a_torn_last_record_is_left_out_also_where_its_end_reached_the_disk_first(
    path: Path, open_log: Callable[[], WriteAheadLog], rest: bytes
) -> None:
    keep(open_log(), "one", "two")
    path.write_bytes(path.read_bytes() + rest)
    log = open_log()
    assert kept(log) == [1, 2]
    keep(log, "three")
    assert kept(open_log()) == [1, 2, 3]


def test_a_damage_before_the_end_is_told_and_nothing_behind_it_is_played(
    path: Path, open_log: Callable[[], WriteAheadLog]
) -> None:
    keep(open_log(), "one", "two", "three")
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"\0" * len(second) + b"\n" + third)
    with pytest.raises(LogDamaged, match="move it away"):
        WriteAheadLog(path)


def test_positions_go_on_behind_a_snapshot_and_a_restart(open_log: Callable[[], WriteAheadLog]) -> None:
    log = open_log()
    keep(log, "one", "two")
    log.empty()
    keep(log, "three")
    again = open_log()
    again.continue_after(2)
    keep(again, "four")
    assert kept(again) == [3, 4]


class Disk:
    """Stands in the place of `os` within the log: takes so many bytes, then is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.syncs = True
        fake = types.SimpleNamespace(
            **{name: getattr(os, name) for name in dir(os) if not name.startswith("__")}
        )
        fake.pwrite, fake.fsync = self._pwrite, self._fsync
        monkeypatch.setattr(write_ahead, "os", fake)

    def _pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        if self.room is None:
            return os.pwrite(descriptor, data, offset)
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = data[: self.room]
        self.room -= len(part)
        return os.pwrite(descriptor, part, offset)

    def _fsync(self, descriptor: int) -> None:
        if not self.syncs:
            raise OSError(errno.EIO, "Input/output error")
        os.fsync(descriptor)


@pytest.mark.parametrize("room", [0, 1, 30, 90])
def test_what_a_full_disk_left_out_is_written_before_the_next_request(
    path: Path, open_log: Callable[[], WriteAheadLog], monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    disk, log = Disk(monkeypatch), open_log()
    keep(log, "one")
    disk.room = room
    for word in ("two", "three"):
        with pytest.raises(OSError, match="No space left"):
            keep(log, word)
        assert kept(log) == [1]
    disk.room = None
    keep(log, "four")
    assert [(entry["position"], entry["body"]) for entry in open_log().entries()] == [
        *((1, "b25l"), (2, "dHdv"), (3, "dGhyZWU="), (4, "Zm91cg==")),
    ]


def test_a_sync_that_failed_is_done_over_with_its_bytes(
    open_log: Callable[[], WriteAheadLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, log = Disk(monkeypatch), open_log()
    disk.syncs = False
    with pytest.raises(OSError, match="Input/output"):
        keep(log, "one")
    assert log.is_behind
    disk.syncs = True
    log.flush()
    assert not log.is_behind
    assert kept(log) == [1]


# --- around the emulator ---


class Emulator:
    """A table of counters: `Add` adds one and answers the sum, `Get` reads; refuses what begins with `no`."""

    AUTH = True

    def __init__(self, events: list[str]) -> None:
        self.sums: dict[str, int] = {}
        self.events = events
        self.emits = types.SimpleNamespace(_emit_stream_event=lambda: None)

    async def app(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await send({"type": "lifespan.startup.complete"})
            return
        word = (await receive())["body"].decode()
        operation = dict(scope["headers"])[b"x-amz-target"].decode().rpartition(".")[2]
        status = 400 if word.startswith("no") else 200
        if operation == "Add" and status == 200:
            self.sums[word] = self.sums.get(word, 0) + 1
            self.events.append(f"did {word}")
            await asyncio.sleep(0)  # others may come in between
        total = str(self.sums.get(word, 0)).encode()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": total})

    def _build_persistence_save_dict(self) -> dict[str, Callable[[], Any]]:
        return {"dynamodb": lambda: {"sums": dict(self.sums)}, "iam": lambda: {"roles": 1}}

    def _get_module(self, _name: str) -> Any:
        return self.emits


class Cloud:
    """An emulator behind a write-ahead log, in a folder; made again, it starts from what is there."""

    def __init__(self, folder: Path) -> None:
        self.events: list[str] = []
        self.emulator = Emulator(self.events)
        self.persistence = types.SimpleNamespace(
            STATE_DIR=str(folder / "state"), _state_format_version=lambda _: 1, _json_default=str
        )
        saved = folder / "state" / "dynamodb.json"
        if saved.exists():
            self.emulator.sums = json.loads(saved.read_text())["payload"]["sums"]
        self.log = WriteAheadLog(folder / "write-ahead.log")
        self.app = WriteAhead(self.emulator.app, self.log, self.emulator, self.persistence)

    async def start(self) -> None:
        async def none() -> Message:
            return {}

        async def ignore(_: Message) -> None:
            return

        await self.app({"type": "lifespan"}, none, ignore)  # type: ignore[arg-type]

    async def call(self, operation: str, word: str) -> tuple[int, str]:
        scope = {
            "type": "http",
            "method": "POST",
            "headers": [(b"x-amz-target", f"DynamoDB_20120810.{operation}".encode())],
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": word.encode(), "more_body": False}

        async def send(message: Message) -> None:
            self.events.append(f"answered {operation} {word}")
            sent.append(message)

        await self.app(scope, receive, send)  # type: ignore[arg-type]
        return sent[0]["status"], sent[1]["body"].decode()


def test_many_writers_at_once_are_played_again_in_the_order_of_their_effects(tmp_path: Path) -> None:
    async def play() -> tuple[dict[str, int], dict[str, int]]:
        first = Cloud(tmp_path)
        words = [f"w{number % 7}" for number in range(60)] + ["no", "nope"]
        await asyncio.gather(*(first.call("Add", word) for word in words))
        did = [event.removeprefix("did ") for event in first.events if event.startswith("did ")]
        assert [entry["body"] for entry in first.log.entries()] == [_coded(word) for word in did]
        second = Cloud(tmp_path)  # as after `kill -9`: nothing was saved
        await second.start()
        third = Cloud(tmp_path)  # what was played was saved, and is not played twice
        await third.start()
        assert third.events == []
        return first.emulator.sums, third.emulator.sums

    before, after = asyncio.run(play())
    assert before == after
    assert sum(after.values()) == 60


def test_after_a_snapshot_only_what_came_behind_it_is_played(tmp_path: Path) -> None:
    async def play() -> None:
        first = Cloud(tmp_path)
        await first.call("Add", "a")
        assert await first.app.snapshot()
        assert (tmp_path / "write-ahead.log").stat().st_size == 0
        await first.call("Add", "b")
        second = Cloud(tmp_path)
        await second.start()
        assert second.events == ["did b"]
        assert second.emulator.sums == {"a": 1, "b": 1}

    asyncio.run(play())


def test_every_write_is_synced_before_its_answer_and_before_a_read_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = Cloud(tmp_path)
    fake = types.SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if not name.startswith("__")})

    def fsync(descriptor: int) -> None:
        os.fsync(descriptor)
        cloud.events.append("synced")

    fake.fsync = fsync
    monkeypatch.setattr(write_ahead, "os", fake)

    async def play() -> None:
        await asyncio.gather(
            *(cloud.call(operation, "a") for operation in ("Add", "Get", "Add", "Get", "Add"))
        )

    asyncio.run(play())
    done = synced = 0
    for event in cloud.events:
        done += event.startswith("did")
        synced += event == "synced"
        if event.startswith("answered"):
            assert synced == done, cloud.events
    assert synced == done == 3


def test_a_request_that_cannot_be_kept_is_an_error_and_nothing_shows_or_builds_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud, disk = Cloud(tmp_path), Disk(monkeypatch)

    async def play() -> None:
        await cloud.call("Add", "a")
        disk.room = 10
        status, text = await cloud.call("Add", "a")
        assert status == 500
        assert "InternalServerError" in text
        assert "No space left" in text
        assert (await cloud.call("Get", "a"))[0] == 500
        assert (await cloud.call("Add", "b"))[0] == 500
        assert cloud.emulator.sums == {"a": 2}
        disk.room = None
        assert await cloud.call("Add", "b") == (200, "1")
        assert await cloud.call("Get", "a") == (200, "2")
        again = Cloud(tmp_path)
        await again.start()
        assert again.emulator.sums == {"a": 2, "b": 1}

    asyncio.run(play())


def test_a_snapshot_that_cannot_be_written_leaves_log_and_last_snapshot_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def play() -> None:
        cloud = Cloud(tmp_path)
        await cloud.call("Add", "a")
        assert await cloud.app.snapshot()
        await cloud.call("Add", "a")
        with monkeypatch.context() as patch:
            patch.setattr(durable.os, "fsync", full)
            assert not await cloud.app.snapshot()
        assert kept(cloud.log) == [2]
        assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["dynamodb.json", "iam.json"]
        again = Cloud(tmp_path)
        await again.start()
        assert again.emulator.sums == {"a": 2}

    asyncio.run(play())


def _coded(word: str) -> str:
    return write_ahead.b64encode(word.encode()).decode()
