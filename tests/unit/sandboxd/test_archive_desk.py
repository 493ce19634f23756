"""Folders are saved to an address and restored from one; commands stand still while theirs is read."""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sandboxd.desk import CommandDesk
from sandboxd.requests import Command
from sandboxd.results import Result

from tests.unit.sandboxd.archives import LIMITS, PACK_LIMITS
from tests.unit.sandboxd.commands import command, execute, on_desk, until


@dataclass
class Store:
    """An S3 of one object; `faults` are what it answers first."""

    content: bytes = b""
    faults: list[int] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self.faults:
            return web.Response(status=self.faults.pop(0))
        if request.method == "PUT":
            assert request.headers["Content-Length"] == str(len(body))
            self.content = body
            return web.Response()
        return web.Response(body=self.content)


@contextlib.asynccontextmanager
async def serving(store: Store) -> AsyncIterator[None]:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{key}", store.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    store.url = f"http://127.0.0.1:{port}/key?signature=secret"
    try:
        yield
    finally:
        await runner.cleanup()


def save(store: Store, name: str = "save", **more: Any) -> Command:
    return command(name, "save", {"path": ".", "put": store.url, **PACK_LIMITS, "timeoutS": 60, **more})


def restore(store: Store, saved: Result, name: str = "restore", **more: Any) -> Command:
    facts = {"size": saved["size"], "sha256": saved["sha256"]}
    return command(
        name, "restore", {"path": ".", "get": store.url, **facts, **LIMITS, "timeoutS": 60, **more}
    )


@pytest.mark.req("NOD-168")
def test_a_folder_is_saved_and_restored(tmp_path: Path) -> None:
    store = Store(faults=[503, 500])

    async def story(desk: CommandDesk) -> tuple[Result, Result]:
        async with serving(store):
            (tmp_path / "workspace/notes").write_text("kept")
            saved = await desk.submit(save(store))
            (tmp_path / "workspace/notes").write_text("changed")
            (tmp_path / "workspace/later").write_text("later")
            return saved, await desk.submit(restore(store, saved))

    saved, restored = on_desk(tmp_path, story)
    assert (saved["state"], saved["entries"], saved["bytes"], saved["frozen"]) == ("exited", 1, 4, True)
    assert (saved["size"], saved["sha256"]) == (len(store.content), hashlib.sha256(store.content).hexdigest())
    assert (restored["state"], restored["entries"]) == ("exited", 1)
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["notes"]
    assert (tmp_path / "workspace/notes").read_text() == "kept"


@pytest.mark.req("NOD-169")
def test_an_archive_that_is_not_the_one_that_was_saved_is_not_unpacked(tmp_path: Path) -> None:
    store = Store()

    async def story(desk: CommandDesk) -> list[Result]:
        async with serving(store):
            (tmp_path / "workspace/notes").write_text("kept")
            saved = await desk.submit(save(store))
            sound = store.content
            store.content = sound[:-1] + bytes([sound[-1] ^ 1])
            changed = await desk.submit(restore(store, saved, "changed"))
            store.content = sound + b"more"
            return [changed, await desk.submit(restore(store, saved, "longer"))]

    changed, longer = on_desk(tmp_path, story)
    assert (changed["state"], changed["reason"]) == ("failed", "mismatch")
    assert (longer["state"], longer["reason"]) == ("failed", "transfer")
    assert (tmp_path / "workspace/notes").read_text() == "kept"


def test_what_is_refused_is_told_without_the_address(tmp_path: Path) -> None:
    store = Store()

    async def story(desk: CommandDesk) -> list[Result]:
        async with serving(store):
            (tmp_path / "workspace/notes").write_text("kept")
            store.faults = [403]
            return [
                await desk.submit(save(store, "denied")),
                await desk.submit(save(store, "large", maxBytes=1)),
                await desk.submit(save(store, "elsewhere", path="notes")),
                await desk.submit(save(store, "no-limit", maxEntries=None)),
                await desk.submit(save(store, "no-address", put="file:///etc/passwd")),
            ]

    results = on_desk(tmp_path, story)
    assert [result["reason"] for result in results] == [
        "transfer",
        "too_large",
        "not_a_directory",
        "invalid",
        "invalid",
    ]
    assert {result["state"] for result in results} == {"failed"}
    assert "signature" not in str(results)


def test_a_store_that_does_not_answer_costs_no_more_than_the_time_that_was_given(tmp_path: Path) -> None:
    store = Store(faults=[503] * 1000)

    async def story(desk: CommandDesk) -> Result:
        async with serving(store):
            return await desk.submit(save(store, timeoutS=1))

    assert on_desk(tmp_path, story)["reason"] == "timeout"


@pytest.mark.req("NOD-168")
def test_commands_stand_still_while_their_folder_is_read(tmp_path: Path) -> None:
    """A command writes two files in turn, always the same into both: what is saved has both alike."""
    store = Store()
    loop = "n=0; while :; do n=$((n+1)); echo $n > a; (echo $n > b); done"
    workspace = tmp_path / "workspace"

    async def story(desk: CommandDesk) -> list[Result]:
        async with serving(store):
            running = desk.submit(execute("loop", loop))
            await until((workspace / "b").exists)
            saves: list[Result] = []
            for number in range(3):
                saves.append(await desk.submit(save(store, f"save-{number}")))
                before = (workspace / "a").read_text()
                await until(lambda before=before: (workspace / "a").read_text() != before)
            later = await desk.submit(execute("later", "echo later"))
            desk.cancel("loop")
            await running
            return [*saves, later]

    results = on_desk(tmp_path, story)
    assert [result["state"] for result in results] == ["exited"] * 4
    assert all(result["frozen"] for result in results[:3])


def test_a_process_that_stood_still_before_stands_still_after(tmp_path: Path) -> None:
    store = Store()

    async def story(desk: CommandDesk) -> list[str]:
        async with serving(store):
            running = desk.submit(execute("stopped", "sleep 600 & echo $! > pid; kill -STOP $!; wait"))
            await until(
                lambda: (tmp_path / "workspace/pid").exists() and (tmp_path / "workspace/pid").read_text()
            )
            pid = (tmp_path / "workspace/pid").read_text().strip()
            await until(lambda: state_of(pid) == "T")
            await desk.submit(save(store))
            found = [state_of(pid)]
            desk.cancel("stopped")
            await running
            return found

    assert on_desk(tmp_path, story) == ["T"]


def state_of(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
