"""Archives as people make them elsewhere: packed in other ways, as zip files, and with a folder around all (FLD-15)."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sandboxd.archives import entry, file, made, unpack

SYMLINK, HARD, FOLDER = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
CONTENT = os.urandom(300_000) + bytes(700_000)


def xz(raw: bytes, dictionary: int = 1 << 20) -> bytes:
    return lzma.compress(raw, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": dictionary}])


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda raw: raw,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": xz,
    "bzip2 in parts": lambda raw: bz2.compress(raw[:5000]) + bz2.compress(raw[5000:]),
    "gzip in parts": lambda raw: gzip.compress(raw[:511]) + gzip.compress(b"") + gzip.compress(raw[511:]),
    "xz in parts": lambda raw: xz(raw[:5000]) + bytes(8) + xz(raw[5000:]),
}


def tar(*fill: Callable[[tarfile.TarFile], None]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for step in fill:
            step(archive)
    return raw.getvalue()


def zipped(path: Path, *members: tuple[str, bytes, int], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip file of names, contents and modes as Unix has them; 0 for none."""
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10))
            info.external_attr, info.compress_type = mode << 16 or 1, packing
            info.create_system = 3 if mode else 0
            archive.writestr(info, content)
    return path


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("form", PACKERS)
def test_a_tar_is_read_however_it_is_packed(tmp_path: Path, form: str) -> None:
    archive = tmp_path / "a"
    archive.write_bytes(PACKERS[form](tar(file("a", CONTENT), entry("d", FOLDER), file("d/b", b"b"))))
    assert unpack(archive, tmp_path / "new") == {"fields": {"entries": 3, "bytes": len(CONTENT) + 1}}
    assert (tmp_path / "new/a").read_bytes() == CONTENT
    assert (tmp_path / "new/d/b").read_bytes() == b"b"


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("form", [form for form in PACKERS if form != "plain"])
def test_one_that_is_cut_off_is_refused_however_it_is_packed(tmp_path: Path, form: str) -> None:
    archive = tmp_path / "a"
    archive.write_bytes(PACKERS[form](tar(file("a", CONTENT)))[:-9])
    assert unpack(archive, tmp_path / "new")["refused"] == "damaged"
    assert not (tmp_path / "new").exists()


@pytest.mark.req("FLD-15")
def test_no_packing_takes_more_bytes_than_are_allowed(tmp_path: Path) -> None:
    for number, pack in enumerate((gzip.compress, bz2.compress, xz)):
        archive = tmp_path / f"{number}"
        archive.write_bytes(pack(tar(file("a")) + bytes(48 << 20)))
        answer = unpack(archive, tmp_path / "new", maxBytes=1000, maxEntries=10)
        assert answer["refused"] == "too_large"


@pytest.mark.req("FLD-15")
def test_an_xz_file_that_asks_for_a_gigabyte_of_memory_is_refused(tmp_path: Path) -> None:
    raw = bytearray(xz(tar(file("a"))))
    block = raw[12 : 12 + (raw[12] + 1) * 4]
    at = 12 + block.index(0x21) + 2  # the size of the dictionary, behind the filter's number and its length
    raw[at] = 40
    size = (raw[12] + 1) * 4
    raw[12 + size - 4 : 12 + size] = zlib.crc32(raw[12 : 12 + size - 4]).to_bytes(4, "little")
    (tmp_path / "a").write_bytes(raw)
    assert unpack(tmp_path / "a", tmp_path / "new")["refused"] == "too_large"


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_file_gives_names_modes_links_and_empty_folders(tmp_path: Path, packing: int) -> None:
    archive = zipped(
        tmp_path / "a.zip",
        ("run.sh", b"echo", stat.S_IFREG | 0o6755),
        ("empty/", b"", stat.S_IFDIR | 0o755),
        ("deep/er/gr\u00fcn", CONTENT, 0),
        ("deep/up", b"../run.sh", stat.S_IFLNK | 0o777),
        packing=packing,
    )
    folder = tmp_path / "new"
    assert unpack(archive, folder, outerLinks=False) == {"fields": {"entries": 4, "bytes": 4 + len(CONTENT)}}
    assert sorted(each.name for each in folder.iterdir()) == ["deep", "empty", "run.sh"]
    assert stat.S_IMODE((folder / "run.sh").stat().st_mode) == 0o755
    assert (folder / "run.sh").stat().st_mtime == 1714979290
    assert stat.S_IMODE((folder / "deep/er/gr\u00fcn").stat().st_mode) == 0o644
    assert (folder / "deep/er/gr\u00fcn").read_bytes() == CONTENT
    assert (folder / "deep/up").read_bytes() == b"echo"


HOSTILE: dict[str, tuple[tuple[str, bytes, int], ...]] = {
    "a name that climbs": (("../out", b"x", 0),),
    "an absolute name": (("/tmp/nodus-escaped", b"x", 0),),
    "a link that leads out": (("l", b"../out", stat.S_IFLNK | 0o777),),
    "a link, and a file through it": (("d", b"e", stat.S_IFLNK | 0o777), ("d/out", b"x", 0)),
    "a link without a target": (("l", b"", stat.S_IFLNK | 0o777),),
    "a link with a target beyond all": (("l", b"a" * 5000, stat.S_IFLNK | 0o777),),
    "a named pipe": (("p", b"", stat.S_IFIFO | 0o644),),
    "a device": (("d", b"", stat.S_IFCHR | 0o644),),
    "a file and then a folder": (("a", b"x", 0), ("a/b", b"x", 0)),
    "a folder with bytes of its own": (("d/", b"x" * 1000, stat.S_IFDIR | 0o755),),
    "a pipe that is called a folder": (("p/", b"", stat.S_IFIFO | 0o644),),
    "a link that is called a folder": (("l/", b"first", stat.S_IFLNK | 0o777),),
    "a name without end": (("l" * 60_000, b"first", stat.S_IFLNK | 0o777),),
}


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_zip_file_is_refused_before_anything_is_written(tmp_path: Path, case: str) -> None:
    (tmp_path / "out").write_text("untouched")
    archive = zipped(tmp_path / "a.zip", ("first", b"x", 0), *HOSTILE[case])
    answer = unpack(archive, tmp_path / "new", outerLinks=False)
    assert (answer["refused"], "entry '" in answer["message"]) == ("hostile", True)
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "out").read_text() == "untouched"
    assert not Path("/tmp/nodus-escaped").exists()


def _lost_name(path: Path) -> None:
    """A name that ends before it says so."""
    zipped(path, ("a+/../../evil", b"1", 0))
    path.write_bytes(path.read_bytes().replace(b"a+/", b"a\0/"))


def _elsewhere(path: Path) -> None:
    """A directory that is said to begin ten bytes later than it does."""
    zipped(path, ("a", b"1", 0))
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\5\6") + 16
    raw[at : at + 4] = (int.from_bytes(raw[at : at + 4], "little") + 10).to_bytes(4, "little")
    path.write_bytes(raw)


def _twice(path: Path) -> None:
    zipped(path, ("a", b"1", 0), ("b", b"2", 0))
    path.write_bytes(path.read_bytes().replace(b"b", b"a"))


def _encrypted(path: Path) -> None:
    zipped(path, ("a", b"1", 0))
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(raw)


def _changed(path: Path) -> None:
    zipped(path, ("a", b"plum", 0), packing=zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"plum", b"plug"))


def _says_more(path: Path) -> None:
    """The directory says that a file is longer than it is."""
    zipped(path, ("a", b"plum", 0))
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\1\2") + 24
    raw[at : at + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(raw)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a name twice": (_twice, "hostile"),
    "a name with an end in it": (_lost_name, "hostile"),
    "a directory elsewhere": (_elsewhere, "damaged"),
    "encrypted": (_encrypted, "damaged"),
    "a changed byte": (_changed, "damaged"),
    "a file longer than it is": (_says_more, "damaged"),
    "packed by lzma": (lambda path: zipped(path, ("a", b"1", 0), packing=zipfile.ZIP_LZMA), "damaged"),
    "no directory": (lambda path: path.write_bytes(b"PK\3\4" + bytes(200)), "damaged"),
}


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("case", BROKEN)
def test_a_damaged_zip_file_is_refused(tmp_path: Path, case: str) -> None:
    make, reason = BROKEN[case]
    make(tmp_path / "a.zip")
    assert unpack(tmp_path / "a.zip", tmp_path / "new")["refused"] == reason
    assert not (tmp_path / "new").exists()


def test_names_that_unix_has_written_keep_their_bytes(tmp_path: Path) -> None:
    """`zip` does not say that they are UTF-8."""
    archive = zipped(tmp_path / "a.zip", ("gr++n.txt", b"x", stat.S_IFREG | 0o644))
    archive.write_bytes(archive.read_bytes().replace(b"gr++n", "gr\u00fcn".encode()))
    assert unpack(archive, tmp_path / "new")["fields"]["entries"] == 1
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["gr\u00fcn.txt"]


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("zeros", [100, 1 << 20])
def test_behind_the_end_there_is_nothing_but_zeros(tmp_path: Path, zeros: int) -> None:
    raw = gzip.compress(tar(file("a"))) + bytes(zeros)
    (tmp_path / "a").write_bytes(raw)
    assert unpack(tmp_path / "a", tmp_path / "new")["fields"]["entries"] == 1
    (tmp_path / "b").write_bytes(raw + b"garbage")
    assert unpack(tmp_path / "b", tmp_path / "new")["refused"] == "damaged"


@pytest.mark.parametrize("content", [b"<!doctype html>" * 100, os.urandom(2000), b'{"json": true}', b""])
def test_what_is_no_archive_is_called_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    answer = unpack(tmp_path / "a", tmp_path / "new")
    assert answer["refused"] == "damaged"
    assert answer["message"].startswith(("It is neither a tar", "It is no whole archive"))


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize("limits", [{"maxBytes": 1000}, {"maxEntries": 10}, {"maxDepth": 2}])
def test_a_zip_file_has_the_same_limits(tmp_path: Path, limits: dict[str, Any]) -> None:
    members = [(f"d/e/{number}", b"x" * 200, 0) for number in range(11)]
    answer = unpack(zipped(tmp_path / "a.zip", *members), tmp_path / "new", **limits)
    assert answer["refused"] == "too_large"


@pytest.mark.req("FLD-15")
def test_folders_around_all_are_left_away(tmp_path: Path) -> None:
    archive = made(
        tmp_path / "a.tgz",
        entry("site-1.0", FOLDER),
        file("site-1.0/readme"),
        file("site-1.0/docs/page"),
        entry("site-1.0/docs/up", SYMLINK, "../readme"),
        entry("site-1.0/same", HARD, "site-1.0/readme"),
        file("beside"),
        file("./site-1.0/here"),
    )
    folder = tmp_path / "new"
    assert unpack(archive, folder, outerLinks=False, strip=1)["fields"]["entries"] == 5
    assert sorted(each.name for each in folder.iterdir()) == ["docs", "here", "readme", "same"]
    assert (folder / "docs/up").read_text() == "x"
    assert (folder / "same").samefile(folder / "readme")


@pytest.mark.req("FLD-15")
def test_a_name_is_judged_as_it_is_written_and_by_what_is_left_of_it(tmp_path: Path) -> None:
    out = made(tmp_path / "out.tgz", entry("top/l", SYMLINK, "../x"))
    assert unpack(out, tmp_path / "new", outerLinks=False, strip=1)["refused"] == "hostile"
    twice = made(tmp_path / "twice.tgz", file("a/x"), file("b/x"))
    assert unpack(twice, tmp_path / "new", strip=1)["refused"] == "hostile"
    link = made(tmp_path / "link.tgz", file("f"), entry("a/h", HARD, "f"))
    assert unpack(link, tmp_path / "new", strip=1)["refused"] == "hostile"
    deep = made(tmp_path / "deep.tgz", file("/".join(["top", *"abcdefghij"])))
    assert unpack(deep, tmp_path / "new", strip=1, maxDepth=10)["refused"] == "too_large"
    absolute = made(tmp_path / "absolute.tgz", file("/top/x"))
    assert unpack(absolute, tmp_path / "new", strip=1)["refused"] == "hostile"
    nothing = made(tmp_path / "nothing.tgz", file("a"), file("b"))
    assert unpack(nothing, tmp_path / "new", strip=1)["refused"] == "damaged"
    assert not (tmp_path / "new").exists()
