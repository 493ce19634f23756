"""Files by asks at the daemon: conditions, large contents by a store, and names and links that are hostile."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from sandboxd.asks import AskDesk
from sandboxd.contents import Contents
from sandboxd.fileasks import MOST_INLINE_BYTES, FileAsks
from sandboxd.files import FileDesk
from sandboxd.filework import folders
from sandboxd.filework.rules import RefusedError
from sandboxd.results import Result
from sandboxd.transfer import Transfer

from tests.unit.sandboxd.commands import process_host
from tests.unit.sandboxd.test_sandboxd_asks import ask

LARGE = os.urandom(3 * 1024 * 1024)


class Store:
    """What S3 is to the daemon; its first `faults` answers are 503."""

    def __init__(self, faults: int = 0) -> None:
        self.contents: dict[str, bytes] = {}
        self.faults = faults

    async def serve(self, request: web.Request) -> web.Response:
        if self.faults > 0:
            self.faults -= 1
            await request.read()
            return web.Response(status=503)
        if request.method == "PUT":
            assert request.content_length is not None
            assert "Transfer-Encoding" not in request.headers
            self.contents[request.path] = await request.read()
            return web.Response()
        content = self.contents.get(request.path)
        return web.Response(status=404) if content is None else web.Response(body=content)


@asynccontextmanager
async def desk(folder: Path, store: Store) -> AsyncIterator[tuple[AskDesk, str]]:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{name}", store.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    held = folder / "held"
    held.mkdir(exist_ok=True)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    async with process_host() as host, aiohttp.ClientSession() as session:
        asks = FileAsks(FileDesk(host), Contents(Transfer(session, 3, 60.0), held))
        yield AskDesk(asks.handlers, workspace=str(work)), f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
    assert list(held.iterdir()) == []


def do(
    folder: Path, *asked: tuple[str, dict[str, Any]], store: Store | None = None, key: str = ""
) -> list[Result]:
    async def story() -> list[Result]:
        async with desk(folder, store or Store()) as (asks, address):
            results = []
            for number, (kind, request) in enumerate(asked):
                at = {"url": f"{address}/{request['url']}"} if "url" in request else {}
                results.append(await asks.submit(ask(number, kind, {**request, **at}, key)))
            return results

    return asyncio.run(story())


def write(path: str, content: bytes, **more: Any) -> tuple[str, dict[str, Any]]:
    return "write", {"path": path, "content": base64.b64encode(content).decode(), **more}


def read(path: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "read", {"path": path, **more}


def fetch(path: str, content: bytes, **more: Any) -> tuple[str, dict[str, Any]]:
    known = {"size": len(content), "sha256": sha256(content).hexdigest()}
    return "fetch", {"path": path, "url": "up", **known, **more}


@pytest.mark.req("NOD-426", "NOD-428", "FLD-08")
def test_any_bytes_are_saved_and_read(tmp_path: Path) -> None:
    content = bytes(range(256)) * 300
    written, whole, part = do(tmp_path, write("a", content), read("a"), read("a", offset=10, limit=5))
    assert (written["size"], written["created"]) == (len(content), True)
    assert base64.b64decode(whole["content"]) == content
    assert (whole["etag"], whole["more"]) == (written["etag"], False)
    assert (base64.b64decode(part["content"]), part["more"]) == (content[10:15], True)
    big, wrong = do(
        tmp_path, write("b", b"x" * (MOST_INLINE_BYTES + 1)), ("write", {"path": "b", "content": "!"})
    )
    assert [big["reason"], wrong["reason"]] == ["invalid", "invalid"]
    assert not (tmp_path / "work/b").exists()


@pytest.mark.req("NOD-427")
def test_of_many_who_save_the_same_version_at_once_one_does(tmp_path: Path) -> None:
    (version,) = (result["etag"] for result in do(tmp_path, write("f", b"0")))

    async def story() -> list[Result]:
        async with desk(tmp_path, Store()) as (asks, _):
            saves = [
                asks.submit(ask(number, *write("f", f"{number}".encode(), ifMatch=[version])))
                for number in range(1, 9)
            ]
            fresh = [
                asks.submit(ask(number, *write("new", b"x", ifNoneMatch=["*"]))) for number in range(20, 26)
            ]
            return [*await asyncio.gather(*saves), *await asyncio.gather(*fresh)]

    results = asyncio.run(story())
    for group in (results[:8], results[8:]):
        assert sorted(result["state"] for result in group) == ["exited", *["failed"] * (len(group) - 1)]
        assert {result["reason"] for result in group} == {None, "changed"}
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["f", "new"]


def test_a_version_outlives_a_move_and_no_write(tmp_path: Path) -> None:
    first, moved, after = do(
        tmp_path, write("a", b"x"), ("move", {"path": "a", "to": "b"}), ("list", {"path": "b"})
    )
    assert first["etag"] == moved["etag"] == after["entries"][0]["etag"]
    with (tmp_path / "work/b").open("ab") as file:
        file.write(b"more")
    (other,) = do(tmp_path, read("b"))
    assert other["etag"] != first["etag"]


@pytest.mark.req("NOD-426", "NOD-428")
def test_a_large_content_goes_by_the_store_through_its_faults(tmp_path: Path) -> None:
    store = Store(faults=1)
    store.contents["/up"] = LARGE
    (fetched,) = do(tmp_path, fetch("deep/big", LARGE, createDirs=True, mode="0600"), store=store)
    assert (fetched["state"], fetched["size"]) == ("exited", len(LARGE))
    assert (tmp_path / "work/deep/big").read_bytes() == LARGE
    assert (tmp_path / "work/deep/big").stat().st_mode & 0o777 == 0o600
    store.faults = 1
    sending = {"path": "deep/big", "url": "down", "size": len(LARGE), "ifMatch": [fetched["etag"]]}
    sent, other, small = do(
        tmp_path,
        ("send", sending),
        ("send", {**sending, "ifMatch": ["0-0-0"]}),
        ("send", {**sending, "size": 5}),
        store=store,
    )
    assert (sent["sha256"], sent["size"]) == (sha256(LARGE).hexdigest(), len(LARGE))
    assert store.contents["/down"] == LARGE
    assert [other["reason"], small["reason"]] == ["changed", "too_large"]


def test_what_is_not_as_announced_or_not_there_changes_nothing(tmp_path: Path) -> None:
    store = Store()
    store.contents["/up"] = LARGE
    (tmp_path / "work").mkdir()
    (tmp_path / "work/f").write_bytes(b"old")
    results = do(
        tmp_path,
        fetch("f", LARGE[:-1]),
        fetch("f", LARGE, sha256="0" * 64),
        fetch("f", LARGE, ifNoneMatch=["*"]),
        store=store,
    )
    assert [result["reason"] for result in results] == ["wrong_content", "wrong_content", "changed"]
    assert (tmp_path / "work/f").read_bytes() == b"old"
    (gone,) = do(tmp_path, ("fetch", {**fetch("f", LARGE)[1], "url": "none"}))
    assert (gone["state"], gone["reason"]) == ("failed", "store")


def test_with_a_key_a_large_content_is_placed_once(tmp_path: Path) -> None:
    store = Store()
    store.contents["/up"] = LARGE
    first, again = do(tmp_path, fetch("f", LARGE), fetch("f", LARGE), store=store, key="k")
    assert (first["created"], again["created"], first["etag"]) == (True, True, again["etag"])


@pytest.mark.req("FLD-15", "FLD-08")
def test_links_and_names_lead_nowhere_but_where_a_command_would_come(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (work / "out").symlink_to(outside)
    (work / "loop").symlink_to("loop")
    os.mkfifo(work / "pipe")
    hostile = "-rf \n\x1b[31m*;$(id)"
    results = do(
        tmp_path,
        write(hostile, b"x"),
        read(hostile),
        ("remove", {"path": "out", "recursive": True}),
        read("loop"),
        read("pipe"),
        ("move", {"path": hostile, "to": "../work/plain"}),
        ("remove", {"path": "/"}),
        write("a\0b", b"x"),
    )
    assert [result["state"] for result in results] == [
        *("exited", "exited", "exited", "failed", "failed", "exited", "failed", "failed"),
    ]
    assert [results[3]["reason"], results[4]["reason"]] == ["link_loop", "not_a_file"]
    assert (outside / "kept").read_bytes() == b"kept"
    assert sorted(path.name for path in work.iterdir()) == ["loop", "pipe", "plain"]


def test_folders_are_made_moved_and_removed(tmp_path: Path) -> None:
    results = do(
        tmp_path,
        ("mkdir", {"path": "a/b"}),
        ("mkdir", {"path": "a/b"}),
        write("a/b/f", b"x"),
        ("remove", {"path": "a"}),
        ("move", {"path": "a", "to": "c/d", "createDirs": True}),
        ("move", {"path": "c", "to": "c/d/e"}),
        write("g", b"y"),
        ("move", {"path": "g", "to": "c/d/b/f"}),
        ("move", {"path": "g", "to": "c/d/b/f", "overwrite": True}),
        ("move", {"path": "none", "to": "x"}),
        ("move", {"path": "c", "to": "nowhere/x"}),
        ("remove", {"path": "c", "recursive": True}),
        ("remove", {"path": "c", "recursive": True}),
    )
    assert [result["reason"] for result in results] == [
        *(
            None,
            None,
            None,
            "not_empty",
            None,
            "invalid",
            None,
            "exists",
            None,
            "not_found",
            "not_found",
            None,
            "not_found",
        ),
    ]
    assert "nowhere" in (results[10]["message"] or "")
    assert list((tmp_path / "work").iterdir()) == []


def test_all_that_there_is_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept").touch()
    monkeypatch.setattr(folders, "ROOT", str(tmp_path))  # should it be removed after all
    for path in (str(tmp_path), f"{tmp_path}/", f"{tmp_path}/../{tmp_path.name}"):
        with pytest.raises(RefusedError, match="is all that there is"):
            folders.remove({"path": path, "recursive": True})
    assert (tmp_path / "kept").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove anything")
def test_a_folder_that_goes_in_part_says_what_is_left(tmp_path: Path) -> None:
    locked = tmp_path / "work/a/locked"
    locked.mkdir(parents=True)
    (locked / "f").write_bytes(b"")
    locked.chmod(0o500)
    (left,) = do(tmp_path, ("remove", {"path": "a", "recursive": True}))
    locked.chmod(0o700)
    assert (left["state"], "Permission denied" in left["left"]) == ("exited", True)
