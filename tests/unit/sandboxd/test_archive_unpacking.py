"""What an archive cannot do to the machine that it is unpacked on, and what it gives back (FLD-15, NOD-169)."""

import gzip
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.sandboxd.archives import entry, file, made, packed, unpack, unpack_as

LONG = "d" * 240
SYMLINK, HARD, FOLDER = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


def path_max(archive: tarfile.TarFile) -> None:
    """The kind of CVE-2025-4517: a path so long that `realpath` gives up, and a link that climbs behind it."""
    path = ""
    for letter in "abcdefghijklmnop":
        entry(f"{path}{LONG}", FOLDER)(archive)
        entry(f"{path}{letter}", SYMLINK, LONG)(archive)
        path += f"{letter}/"
    entry(path + "l" * 254, SYMLINK, "../" * 16)(archive)
    entry("escape", SYMLINK, path + "l" * 254 + "/../../../outside")(archive)
    file("escape/out", b"out")(archive)


HOSTILE: dict[str, tuple[Callable[[tarfile.TarFile], None], ...]] = {
    "an absolute name": (file("/tmp/nodus-escaped"),),
    "a name that climbs": (file("../out"),),
    "a name that climbs later": (file("a/../../out"),),
    "a name with an empty part": (file("a//b"),),
    "a link, and a file through it": (entry("d", SYMLINK, "/tmp"), file("d/out")),
    "a link inside, and a file through it": (entry("e", FOLDER), entry("d", SYMLINK, "e"), file("d/out")),
    "a file through a link that comes later": (file("d/out"), entry("d", SYMLINK, "/tmp")),
    "a hard link to the machine": (entry("h", HARD, "/etc/hostname"),),
    "a hard link that climbs": (entry("h", HARD, "../out"),),
    "a hard link to a link": (entry("l", SYMLINK, "/etc/hostname"), entry("h", HARD, "l")),
    "a hard link to what comes later": (entry("h", HARD, "f"), file("f")),
    "a character device": (entry("null", tarfile.CHRTYPE, devmajor=1, devminor=3),),
    "a block device": (entry("disk", tarfile.BLKTYPE, devmajor=8),),
    "a named pipe": (entry("pipe", tarfile.FIFOTYPE),),
    "a name twice": (file("a", b"1"), file("a", b"2")),
    "a name twice, written in two ways": (file("a", b"1"), file("./a", b"2")),
    "a file and then a folder": (file("a"), file("a/b")),
    "a path longer than the system resolves": (path_max,),
    "a link without a target": (entry("l", SYMLINK, ""),),
    "an unknown kind": (entry("x", b"V"),),
    "a folder with bytes of its own": (entry("d", FOLDER, size=512), file("hidden")),
    "a link with bytes of its own": (entry("l", SYMLINK, "first", size=512), file("hidden")),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with something in it, beside something that nobody may touch."""
    (tmp_path / "out").write_text("untouched")
    inside = tmp_path / "folder"
    inside.mkdir()
    (inside / "old").write_text("old")
    return inside


def unharmed(folder: Path) -> None:
    assert [entry.name for entry in folder.iterdir()] == ["old"], "a refused archive leaves nothing behind"
    assert (folder.parent / "out").read_text() == "untouched"
    assert not Path("/tmp/nodus-escaped").exists()


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused_before_anything_is_written(
    tmp_path: Path, folder: Path, case: str, form: int
) -> None:
    archive = made(tmp_path / "a.tgz", file("first"), *HOSTILE[case], form=form)
    answer = unpack(archive, folder)
    assert answer["refused"] == "hostile"
    assert "entry '" in answer["message"]
    unharmed(folder)


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize(
    ("name", "target"),
    [("l", "/etc/passwd"), ("l", ".."), ("a/l", "../../out"), ("a/l", "b/../../../out"), ("l", "a/..")],
)
def test_where_links_must_stay_inside_one_that_does_not_is_refused(
    tmp_path: Path, folder: Path, name: str, target: str
) -> None:
    archive = made(tmp_path / "a.tgz", entry("a", FOLDER), entry(name, SYMLINK, target))
    assert unpack(archive, folder, outerLinks=False)["refused"] == "hostile"
    unharmed(folder)


def test_where_links_must_stay_inside_those_that_do_are_made(tmp_path: Path, folder: Path) -> None:
    links = (
        entry("a/b/up", SYMLINK, "../../f"),
        entry("a/beside", SYMLINK, "./b"),
        entry("down", SYMLINK, "a/b"),
    )
    answer = unpack(made(tmp_path / "a.tgz", file("f"), *links), folder, outerLinks=False)
    assert answer["fields"]["entries"] == 4
    assert (folder / "a/b/up").read_text() == "x"
    assert os.readlink(folder / "down") == "a/b"


@pytest.mark.req("FLD-15")
def test_a_small_archive_that_unpacks_to_four_gibibytes_is_refused(tmp_path: Path, folder: Path) -> None:
    header = tarfile.TarInfo("bomb")
    header.size = 4 << 30
    with gzip.open(tmp_path / "a.tgz", "wb", compresslevel=9) as out:
        out.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(64):
            out.write(bytes(1 << 20))
    assert unpack(tmp_path / "a.tgz", folder)["refused"] == "too_large"
    unharmed(folder)


@pytest.mark.req("FLD-15")
def test_bytes_entries_and_depth_have_limits(tmp_path: Path, folder: Path) -> None:
    many = made(tmp_path / "many.tgz", *(file(f"f{number}") for number in range(11)))
    assert unpack(many, folder, maxEntries=10)["refused"] == "too_large"
    deep = made(tmp_path / "deep.tgz", file("/".join("abcdefghijk")))
    assert unpack(deep, folder, maxDepth=10)["refused"] == "too_large"
    large = made(tmp_path / "large.tgz", file("a", b"x" * 600), file("b", b"x" * 600))
    assert unpack(large, folder, maxBytes=1000)["refused"] == "too_large"
    trailing = packed(tmp_path / "zeros.tgz", bytes(64 << 20))
    assert unpack(trailing, folder, maxBytes=1000, maxEntries=10)["refused"] == "too_large"
    unharmed(folder)


@pytest.mark.req("FLD-15")
def test_folders_that_names_imply_count_as_well(tmp_path: Path, folder: Path) -> None:
    """A few entries in an archive of kilobytes would make millions of folders."""
    deep = [file("/".join([str(number), *"abcdefgh"])) for number in range(20)]
    assert unpack(made(tmp_path / "a.tgz", *deep), folder, maxEntries=100)["refused"] == "too_large"
    unharmed(folder)


def _header(kind: bytes, data: bytes) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, len(data)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (_header(tarfile.XHDTYPE, b"11 comment=\n") * 9, "damaged"),
        (_header(tarfile.XGLTYPE, b"12 size=512\n"), "hostile"),
        (_header(tarfile.XGLTYPE, b"15 path=hidden\n"), "hostile"),
        (_header(tarfile.XHDTYPE, b"4 =\n" * 16_000), "fine"),
        (_header(tarfile.XGLTYPE, b"52 comment=0123456789012345678901234567890123456789\n"), "fine"),
    ],
    ids=["in-a-row", "size-of-all", "name-of-all", "many-records", "git"],
)
def test_extended_headers_have_limits(tmp_path: Path, folder: Path, headers: bytes, reason: str) -> None:
    raw = headers + tarfile.TarInfo("a").tobuf() + bytes(1024)
    assert unpack(packed(tmp_path / "a.tgz", raw), folder).get("refused", "fine") == reason


def test_a_time_before_1970_is_its_beginning(tmp_path: Path, folder: Path) -> None:
    info = tarfile.TarInfo("a")
    info.mtime = -1000
    raw = info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    assert unpack(packed(tmp_path / "a.tgz", raw), folder)["fields"]["entries"] == 1
    assert (folder / "a").stat().st_mtime == 0


@pytest.mark.req("NOD-154", "NOD-168")
def test_folders_that_forbid_all_are_replaced_like_others(tmp_path: Path) -> None:
    """As the commands' user, who needs write permission to move a folder."""
    archive = made(
        tmp_path / "a.tgz", entry("shut", FOLDER, mode=0o555), file("shut/f"), entry("none", FOLDER, mode=0)
    )
    folder = tmp_path / "own"
    folder.mkdir()
    for each in (tmp_path, *tmp_path.parents):
        if each.stat().st_mode & 0o001 == 0 and os.access(each, os.W_OK):
            each.chmod(each.stat().st_mode | 0o011)
    user = {} if os.geteuid() else {"user": 65534, "group": 65534}
    if user:
        os.chown(folder, 65534, 65534)
    for _ in range(3):
        assert unpack_as(archive, folder, **user) == {"fields": {"entries": 3, "bytes": 1}}
        assert sorted(os.listdir(folder)) == ["none", "shut"]


def _sound(path: Path) -> bytes:
    return made(path / "sound.tgz", file("a", os.urandom(5000))).read_bytes()


def _changed(sound: bytes) -> bytes:
    raw = bytearray(gzip.decompress(sound))
    raw[5] ^= 1
    return gzip.compress(bytes(raw))


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "no gzip file": lambda _: b"PK\3\4 something else",
    "cut off": lambda sound: sound[: len(sound) // 2],
    "cut off at its check sum": lambda sound: sound[:-4],
    "a wrong header": _changed,
    "without an end": lambda sound: gzip.compress(gzip.decompress(sound)[:512]),
    "followed by another": lambda sound: sound + sound,
    "followed by something": lambda sound: sound + b"something",
    "packed by what is not read": lambda _: b"\x28\xb5\x2f\xfd" + bytes(100),
    "a size that is no number": lambda _: gzip.compress(b"a" * 512),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_damaged_archive_is_refused(tmp_path: Path, folder: Path, case: str) -> None:
    archive = tmp_path / "a.tgz"
    archive.write_bytes(BROKEN[case](_sound(tmp_path)))
    assert unpack(archive, folder)["refused"] == "damaged"
    unharmed(folder)


@pytest.mark.parametrize(
    "records",
    [
        b"30 path=../somewhere/else/out\n",
        b"9999999999999999999999 path=a\n",
        b"x",
        b"12 path=a\0b\n",
        b"7 path\n",
        b"0 a=b\n",
        b"13 size=-100\n",
    ],
)
def test_what_a_pax_header_says_is_checked_too(tmp_path: Path, folder: Path, records: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(records)
    raw = (
        info.tobuf(tarfile.USTAR_FORMAT)
        + records.ljust(512, b"\0")
        + tarfile.TarInfo("a").tobuf()
        + bytes(1024)
    )
    assert unpack(packed(tmp_path / "a.tgz", raw), folder)["refused"] in ("damaged", "hostile")
    unharmed(folder)


@pytest.mark.req("NOD-168")
def test_afterwards_the_folder_holds_what_the_archive_holds_and_nothing_else(
    tmp_path: Path, folder: Path
) -> None:
    archive = made(
        tmp_path / "a.tgz",
        file("run.sh", b"echo", mode=0o6755),
        entry("empty", FOLDER),
        file("deep/er/f", b"deep"),
        entry("same", HARD, "run.sh"),
        entry("python", SYMLINK, "/usr/bin/python3"),
        entry("shut", FOLDER, mode=0o555),
    )
    answer = unpack(archive, folder)
    assert answer == {"fields": {"entries": 6, "bytes": 8}}
    assert sorted(entry.name for entry in folder.iterdir()) == [
        "deep",
        "empty",
        "python",
        "run.sh",
        "same",
        "shut",
    ]
    assert stat.S_IMODE((folder / "run.sh").stat().st_mode) == 0o755, "no setuid, no setgid"
    assert stat.S_IMODE((folder / "shut").stat().st_mode) == 0o555
    assert (folder / "same").samefile(folder / "run.sh")
    assert os.readlink(folder / "python") == "/usr/bin/python3"
    assert (folder / "deep/er/f").read_bytes() == b"deep"


def test_a_folder_that_is_not_there_is_made_and_a_link_is_no_folder(tmp_path: Path, folder: Path) -> None:
    archive = made(tmp_path / "a.tgz", file("a"))
    assert "fields" in unpack(archive, tmp_path / "new/one")
    assert (tmp_path / "new/one/a").read_text() == "x"
    (tmp_path / "link").symlink_to(folder)
    assert unpack(archive, tmp_path / "link")["refused"] == "io"
    unharmed(folder)
