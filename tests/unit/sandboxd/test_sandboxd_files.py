"""File requests: what is read and written, what is refused, and that a refusal changes nothing."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from sandboxd.desk import CommandDesk
from sandboxd.requests import MAX_READ_BYTES, MAX_WRITE_BYTES
from sandboxd.results import Result

from tests.unit.sandboxd.commands import command, on_desk


def ask(tmp_path: Path, *requests: tuple[str, dict[str, Any]]) -> list[Result]:
    """Does the requests one after the other."""

    async def story(desk: CommandDesk) -> list[Result]:
        return [await desk.submit(command(f"f{n}", *request)) for n, request in enumerate(requests)]

    return on_desk(tmp_path, story)


def read(path: object, **more: Any) -> tuple[str, dict[str, Any]]:
    return "read_file", {"path": str(path), **more}


def write(path: object, content: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": str(path), "content": content, **more}


def test_relative_paths_start_at_the_workspace(tmp_path: Path) -> None:
    written, content = ask(tmp_path, write("a/b.txt", "hé🦉\0\x1b", createDirs=True), read("a/b.txt"))
    assert (written["state"], written["created"], written["size"]) == ("exited", True, 9)
    assert (tmp_path / "workspace/a/b.txt").read_text() == "hé🦉\0\x1b"
    assert (content["content"], content["rawBytes"], content["truncated"]) == ("hé🦉\0\x1b", 9, False)


def test_paging_gives_every_character_whole(tmp_path: Path) -> None:
    text = "aé漢🦉" * 10
    (tmp_path / "text").write_text(text)
    pages, offset = [], 0
    while True:
        (page,) = ask(tmp_path / str(len(pages)), read(tmp_path / "text", offset=offset, limit=33))
        pages.append(page["content"])
        offset += page["rawBytes"]
        if not page["truncated"]:
            break
    assert "".join(pages) == text
    assert offset == len(text.encode())


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / str(number)).mkdir()


def test_bytes_that_are_no_text_are_shown_and_counted(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\xff\xf0\x9fb")
    (content,) = ask(tmp_path, read(tmp_path / "x"))
    assert (content["content"], content["rawBytes"], content["size"]) == ("a��b", 5, 5)


def test_one_call_reads_at_most_256_kib(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (MAX_READ_BYTES + 5))
    big, rest, beyond = ask(
        tmp_path,
        read(tmp_path / "big", limit=10**9),
        read(tmp_path / "big", offset=MAX_READ_BYTES),
        read(tmp_path / "big", offset=10**9),
    )
    assert (big["rawBytes"], big["size"], big["truncated"]) == (MAX_READ_BYTES, MAX_READ_BYTES + 5, True)
    assert (rest["rawBytes"], rest["truncated"]) == (5, False)
    assert (beyond["content"], beyond["rawBytes"], beyond["truncated"]) == ("", 0, False)


def test_files_of_proc_have_no_size_but_content(tmp_path: Path) -> None:
    (content,) = ask(tmp_path, read("/proc/version"))
    assert content["content"].startswith("Linux")
    assert content["size"] == content["rawBytes"] > 0


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    paths = [
        tmp_path / "pipe",
        "/dev/zero",
        tmp_path,
        tmp_path / "none",
        tmp_path / "loop",
    ]
    reads = ask(tmp_path / "0", *(read(path) for path in paths))
    assert [result["state"] for result in reads] == ["failed"] * 5
    reasons = ["not_a_file"] * 3 + ["not_found", "link_loop"]
    assert [result["reason"] for result in reads] == reasons
    assert "named pipe" in reads[0]["message"]
    assert "device" in reads[1]["message"]
    assert "directory" in reads[2]["message"]
    writes = ask(tmp_path / "1", *(write(path, "x") for path in (tmp_path / "pipe", "/dev/null", tmp_path)))
    assert [result["reason"] for result in writes] == ["not_a_file"] * 3


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual_one(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("old")
    script.chmod(0o750)
    kept, new, asked, setuid = ask(
        tmp_path,
        write(script, "new"),
        write(tmp_path / "new", "x"),
        write(tmp_path / "asked", "x", mode="0600"),
        write(tmp_path / "setuid", "x", mode=0o4755),
    )
    assert (kept["created"], new["created"], asked["state"], setuid["state"]) == (
        False,
        True,
        "exited",
        "exited",
    )
    modes = [oct((tmp_path / name).stat().st_mode & 0o7777) for name in ("script", "new", "asked", "setuid")]
    assert modes == ["0o750", "0o644", "0o600", "0o755"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("fresh")
    ask(tmp_path, write(tmp_path / "link", "new"), write(tmp_path / "dangling", "made"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    assert (tmp_path / "fresh").read_text() == "made"


def test_readers_see_the_old_content_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with target.open() as before:
        ask(tmp_path, write(target, "n" * 100_000))
        assert before.read() == "old"  # the old file is whole for whoever has it open
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_a_refused_write_leaves_no_folder_and_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    results = ask(
        tmp_path,
        write(tmp_path / "none/x", "x"),
        write(tmp_path / "file/x", "x", createDirs=True),
        write(f"{tmp_path}/made/deep/", "x", createDirs=True),
        write(tmp_path / "made/deep" / ("n" * 300), "x", createDirs=True),
    )
    assert [result["state"] for result in results] == ["failed"] * 4
    assert [result["reason"] for result in results] == [
        "not_found",
        "not_a_directory",
        "not_a_file",
        "invalid",
    ]
    assert not (tmp_path / "made").exists()


def test_sizes_and_characters_have_limits(tmp_path: Path) -> None:
    full, too_long, surrogate, nul = ask(
        tmp_path,
        write(tmp_path / "full", "é" * (MAX_WRITE_BYTES // 2)),
        write(tmp_path / "long", "é" * (MAX_WRITE_BYTES // 2) + "x"),
        write(tmp_path / "half", "\ud83c"),
        write("a\0b", "x"),
    )
    assert (full["state"], full["size"]) == ("exited", MAX_WRITE_BYTES)
    assert str(MAX_WRITE_BYTES) in too_long["message"]
    for result in (too_long, surrogate, nul):
        assert (result["state"], result["reason"]) == ("failed", "invalid")


@pytest.mark.req("NOD-157")
def test_folders_are_made_with_those_above_them(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "nowhere").symlink_to("none")
    made, again, on_file, below_file, on_link = ask(
        tmp_path,
        *(
            ("mkdir", {"path": str(tmp_path / name)})
            for name in ("w/x/y", "w/x/y/", "file", "file/x", "nowhere")
        ),
    )
    assert (made["state"], again["state"]) == ("exited", "exited")
    assert (tmp_path / "w/x/y").is_dir()
    assert [result["reason"] for result in (on_file, below_file, on_link)] == [
        "exists",
        "not_a_directory",
        "exists",
    ]


def test_a_write_is_done_once_even_when_it_is_given_again(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Result]:
        once = command("w1", *write(tmp_path / "file", "first"))
        first = await desk.submit(once)
        await asyncio.to_thread((tmp_path / "file").write_text, "changed since")
        return [first, await desk.submit(once)]

    first, again = on_desk(tmp_path, story)
    assert first == again
    assert (tmp_path / "file").read_text() == "changed since"
