"""Asks at the daemon: the same id is answered once, the same key changes something once, and nothing is recorded."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from sandboxd.asks import KEPT, Ask, AskDesk, Handler
from sandboxd.contents import Contents
from sandboxd.desk import CommandDesk
from sandboxd.fileasks import FileAsks
from sandboxd.files import FileDesk
from sandboxd.requests import Fields, InvalidRequestError
from sandboxd.results import Result, failed_result

from tests.unit.sandboxd.commands import on_desk, process_host
from tests.unit.sandboxd.link_server import LinkServer
from tests.unit.sandboxd.test_sandboxd_link import linked


def ask_id(number: int) -> str:
    return f"ask-00-{number:032x}"


def ask(number: int, kind: str, request: dict[str, Any], key: str = "") -> Ask:
    return Ask.from_wire({"id": ask_id(number), "key": key, "kind": kind, "request": request})


def answered(handlers: dict[str, Handler], *asks: Ask) -> list[Result]:
    async def story() -> list[Result]:
        desk = AskDesk(handlers, workspace="/w")
        return [await desk.submit(each) for each in asks]

    return asyncio.run(story())


def nowhere() -> Contents:
    """No content is moved by these."""
    return Contents.__new__(Contents)


def counting() -> tuple[list[str], dict[str, Handler]]:
    done: list[str] = []

    async def effect(fields: Fields) -> Result:
        done.append(fields.text("what"))
        if fields.text("what") == "fails":
            return failed_result("not_found", "none")
        return {"state": "exited", "n": len(done)}

    return done, {"effect": effect}


def test_the_same_id_and_the_same_key_are_done_once() -> None:
    done, handlers = counting()
    results = answered(
        handlers,
        ask(1, "effect", {"what": "a", "url": "one"}, "k"),
        ask(1, "effect", {"what": "a", "url": "one"}, "k"),
        ask(2, "effect", {"what": "a", "url": "signed anew"}, "k"),
        ask(3, "effect", {"what": "b"}, "k"),
        ask(4, "effect", {"what": "a"}),
        ask(5, "effect", {"what": "fails"}, "f"),
        ask(6, "effect", {"what": "fails"}, "f"),
    )
    assert done == ["a", "a", "fails", "fails"]
    assert [result.get("n") for result in results[:3]] == [1, 1, 1]
    assert results[3]["reason"] == "conflict"


def test_what_is_no_ask_is_refused_and_a_fault_is_answered() -> None:
    async def broken(fields: Fields) -> Result:
        raise RuntimeError("no")

    unknown, wrong, fault = answered(
        {"broken": broken, "list": FileAsks(FileDesk.__new__(FileDesk), nowhere()).handlers["list"]},
        ask(1, "nonsense", {}),
        ask(2, "list", {"path": 7}),
        ask(3, "broken", {}),
    )
    assert (unknown["state"], wrong["state"], fault["state"]) == ("failed", "failed", "lost")
    for wire in ({}, {"id": "u-1", "key": ""}, {"id": ask_id(1)}, {"id": ask_id(1), "key": "k" * 201}, None):
        with pytest.raises(InvalidRequestError):
            Ask.from_wire(wire)


def test_old_answers_are_forgotten() -> None:
    _, handlers = counting()

    async def story() -> int:
        desk = AskDesk(handlers, workspace="/w")
        for number in range(KEPT + 50):
            await desk.submit(ask(number, "effect", {"what": "a"}, f"k{number}"))
        return len(desk._by_id) + len(desk._by_key)

    assert asyncio.run(story()) == 2 * KEPT


def test_asks_are_answered_over_the_link_through_losses_and_leave_no_record(tmp_path: Path) -> None:
    _, handlers = counting()

    async def story(desk: CommandDesk) -> dict[str, Any]:
        asks = AskDesk(handlers, workspace="/w")
        async with LinkServer(loss=0.3) as server, linked(server, desk, asks, pull_every_s=0.2):
            for number in range(10):
                server.asks[ask_id(number)] = {"kind": "effect", "request": {"what": "a"}}
            await server.ring()
            await server.until(lambda: len(server.answers) == 10)
            return server.answers

    answers = on_desk(tmp_path, story)
    assert sorted(answer["n"] for answer in answers.values()) == list(range(1, 11))
    assert list((tmp_path / "state/commands").iterdir()) == []


def listed(folder: Path, **request: Any) -> Result:
    async def story() -> Result:
        async with process_host() as host:
            desk = AskDesk(FileAsks(FileDesk(host), nowhere()).handlers, workspace=str(folder))
            return await desk.submit(ask(1, "list", {"path": ".", **request}))

    return asyncio.run(story())


@pytest.mark.req("NOD-425", "FLD-15", "FLD-08")
def test_a_folder_is_listed_page_by_page_whatever_its_names_are(tmp_path: Path) -> None:
    for name in (b"a", b"b\n\x1b[31m", b"c\xff", "ü".encode(), b"-rf", b"d" * 255):
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    pages, after = [], None
    while True:
        page = listed(tmp_path, limit=4, **({"after": after} if after else {}))
        assert page["state"] == "exited"
        pages += page["entries"]
        after = page.get("next")
        if after is None:
            break
    found = {entry["name"]: entry for entry in pages}
    assert [entry["name"] for entry in pages] == [
        *("-rf", "a", "b\n\x1b[31m", "c�", "d" * 255, "folder", "link", "pipe", "ü"),
    ]
    assert (found["c�"]["named"], found["ü"]["named"]) == (False, True)
    assert (found["link"]["type"], found["link"]["target"]) == ("Link", "/etc/passwd")
    assert (found["folder"]["type"], found["pipe"]["type"], found["a"]["type"]) == ("Folder", "Other", "File")
    assert (found["a"]["size"], "etag" in found["a"], "etag" in found["pipe"]) == (1, True, False)


def test_a_file_is_the_one_entry_of_its_list_and_what_is_not_there_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    one = listed(tmp_path, path="file")
    assert (one["folder"], one["entries"][0]["name"], one["entries"][0]["size"]) == (False, "file", 1)
    assert listed(tmp_path, path="none")["reason"] == "not_found"
    assert listed(tmp_path, path="file/x")["reason"] == "not_a_directory"


def test_a_page_of_long_names_fits_into_an_answer(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / ("\x01" * 200 + f"{number:04d}")).symlink_to("\x01" * 900)
    page = listed(tmp_path)
    assert "next" in page
    assert len(str(page)) < 200_000
