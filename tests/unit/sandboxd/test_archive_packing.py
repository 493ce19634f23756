"""What a saved folder's archive holds, what is left out of it, and that it gives back the same folder."""

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from sandboxd.archive import packing
from sandboxd.archive.tar_file import _number

from tests.unit.sandboxd.archives import pack, unpack


def seen(folder: Path) -> dict[bytes, tuple[Any, ...]]:
    """What stands below a folder: kinds, modes, contents, link targets, times of files."""
    found: dict[bytes, tuple[Any, ...]] = {}
    for above, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            info = os.lstat(path)
            kind, mode = stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                facts: tuple[Any, ...] = (kind, os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                facts = (kind, mode)
            else:
                with open(path, "rb") as file:
                    facts = (kind, mode, int(info.st_mtime), info.st_nlink, file.read())
            found[os.path.relpath(path, os.fsencode(folder))] = facts
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.mark.req("FLD-15", "NOD-161", "NOD-168")
def test_a_folder_comes_back_as_it_was(tmp_path: Path, folder: Path) -> None:
    for number in range(1000):
        path = folder / f"n{number % 7}" / f"m{number % 31}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(number))
    (folder / "run").write_text("#!/bin/sh")
    (folder / "run").chmod(0o755)
    os.link(folder / "run", folder / "same")
    (folder / "empty").mkdir(mode=0o700)
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to("/usr/bin/python3")
    (folder / "inner").symlink_to("n1/m1")
    (folder / "nowhere").symlink_to("not/there/" + "x" * 200)
    (folder / ("long" * 60)).mkdir()
    (folder / ("long" * 60) / ("name" * 60)).write_text("long")
    (folder / "漢 \n").write_text("a name of any characters")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe")).write_text("a name of any bytes")
    os.utime(folder / "run", (1_000_000_000, 1_000_000_000))
    (folder / "shut").mkdir()
    (folder / "shut/f").write_text("f")
    (folder / "shut").chmod(0o555)
    answer = pack(folder, tmp_path / "a.tgz")["fields"]
    assert (answer["leftOutCount"], answer["changed"]) == (0, 0)
    back = tmp_path / "back"
    assert unpack(tmp_path / "a.tgz", back)["fields"]["entries"] == answer["entries"]
    assert seen(back) == seen(folder)
    (folder / "shut").chmod(0o755)
    (back / "shut").chmod(0o755)


@pytest.mark.req("NOD-168")
def test_what_cannot_be_saved_is_named(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("file")
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        answer = pack(folder, tmp_path / "a.tgz")["fields"]
    assert answer["leftOut"] == [
        {"path": "pipe", "why": "a named pipe"},
        {"path": "socket", "why": "a socket"},
    ]
    assert (answer["leftOutCount"], answer["entries"]) == (2, 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is denied to root")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, folder: Path) -> None:
    (folder / "mine").write_text("mine")
    (folder / "denied").write_text("denied")
    (folder / "denied").chmod(0)
    answer = pack(folder, tmp_path / "a.tgz")["fields"]
    assert [left["path"] for left in answer["leftOut"]] == ["denied"]


def test_no_link_is_followed(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "outside")
    pack(folder, tmp_path / "a.tgz")
    unpack(tmp_path / "a.tgz", tmp_path / "back")
    assert list(seen(tmp_path / "back")) == [b"link"]
    (tmp_path / "way").symlink_to(folder)
    assert pack(tmp_path / "way", tmp_path / "b.tgz")["refused"] == "not_a_directory"


def test_the_daemons_own_files_stay_out(tmp_path: Path, folder: Path) -> None:
    (folder / ".sandboxd").mkdir()
    (folder / ".sandboxd/token").write_text("t")
    (folder / ".nodus-0123456789abcdef.part").write_text("half")
    (folder / ".nodus-notes").write_text("kept")
    pack(folder, tmp_path / "a.tgz")
    unpack(tmp_path / "a.tgz", tmp_path / "back")
    assert list(seen(tmp_path / "back")) == [b".nodus-notes"]


def test_a_folder_that_nobody_has_made_is_an_empty_one(tmp_path: Path) -> None:
    assert pack(tmp_path / "not/there", tmp_path / "a.tgz")["fields"]["entries"] == 0
    assert unpack(tmp_path / "a.tgz", tmp_path / "back")["fields"]["entries"] == 0
    assert (tmp_path / "not/there").is_dir()


@pytest.mark.req("NOD-169")
@pytest.mark.parametrize(
    "limit", [{"maxBytes": 100}, {"maxEntries": 2}, {"maxDepth": 1}, {"maxArchiveBytes": 200}]
)
def test_a_folder_beyond_a_limit_is_not_saved(tmp_path: Path, folder: Path, limit: dict[str, int]) -> None:
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/c").write_bytes(os.urandom(1000))
    assert pack(folder, tmp_path / "a.tgz", **limit)["refused"] == "too_large"


def test_a_file_that_shrinks_is_filled_up_and_one_that_grows_is_cut(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "shrinks").write_bytes(b"s" * 5000)
    (folder / "zgrows").write_bytes(b"g" * 10)
    real = os.fstat

    def changing(fd: int) -> os.stat_result:
        info = real(fd)
        if info.st_size == 5000:
            os.truncate(folder / "shrinks", 100)
        if info.st_size == 10:
            (folder / "zgrows").write_bytes(b"g" * 1000)
        return info

    monkeypatch.setattr(packing.os, "fstat", changing)
    with (tmp_path / "a.tgz").open("w+b") as archive:
        told = packing.pack(archive.fileno(), {"dir": str(folder), **_LIMITS})
    monkeypatch.undo()
    assert (told["changed"], told["entries"], told["bytes"]) == (1, 2, 5010)
    unpack(tmp_path / "a.tgz", tmp_path / "back")
    assert (tmp_path / "back/shrinks").read_bytes() == b"s" * 100 + bytes(4900)
    assert (tmp_path / "back/zgrows").read_bytes() == b"g" * 10


@pytest.mark.parametrize("value", [0, 8**11 - 1, 8**11, 1 << 62])
def test_a_number_of_any_size_fits_into_a_header(value: int) -> None:
    header = packing.block(b"name", b"0", 0o644, value, value)
    assert (_number(header[124:136]), _number(header[136:148])) == (value, value)


_LIMITS = {"maxBytes": 1 << 20, "maxEntries": 100, "maxDepth": 10, "maxArchiveBytes": 1 << 20}
