"""The entries of a zip file, as its directory says: names, links and permissions as Unix writes them."""

import calendar
import contextlib
import errno
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator

from sandboxd.archive.judging import (
    CHUNK,
    FILE,
    FOLDER,
    MOST_NAME,
    SYMLINK,
    Entry,
    RefusedError,
    hostile,
    shown,
)

MAGIC = (b"PK\3\4", b"PK\5\6")
"""How a zip file begins, and an empty one."""

_UNIX = (3, 19)
"""Unix, and macOS."""

_ENCRYPTED, _UTF8 = 0x1, 0x800
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_KINDS = {0: FILE, stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: SYMLINK}


def zipped(archive: int) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yields each entry of the zip file at a descriptor, unjudged, with the bytes of its file. Raises `RefusedError`."""
    with _told(), os.fdopen(os.dup(archive), "rb") as file, zipfile.ZipFile(file) as opened:
        for info in opened.infolist():
            entry = _entry(opened, info)
            data = _content(opened, info) if entry.kind == FILE else iter(())
            yield entry, data
            for _ in data:
                pass


def _entry(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    name = _name(info)
    if info.flag_bits & _ENCRYPTED:
        raise RefusedError("damaged", f"The archive's entry {shown(name)} is encrypted.")
    if info.compress_type not in _PACKED:
        raise RefusedError(
            "damaged", f"The archive's entry {shown(name)} is packed by another way than deflate."
        )
    mode = info.external_attr >> 16 if info.create_system in _UNIX else 0
    kind = _KINDS.get(stat.S_IFMT(mode))
    if name.endswith(b"/") and kind in (FILE, FOLDER):
        kind = FOLDER
    if kind is None or (kind == FOLDER) != name.endswith(b"/"):
        raise hostile(name, "is no file, folder or link")
    if kind == FOLDER and info.file_size:
        raise hostile(name, "has bytes of its own, and is no file")
    if kind == SYMLINK and info.file_size > MOST_NAME:
        raise hostile(name, "is a link without a sound target")
    target = b"".join(_content(opened, info)) if kind == SYMLINK else b""
    mode = stat.S_IMODE(mode) or (0o755 if kind == FOLDER else 0o644)
    return Entry(name, kind, mode, info.file_size, _seconds(info), target=target)


def _name(info: zipfile.ZipInfo) -> bytes:
    """The entry's name. Where it does not say that it is UTF-8, Unix writes its own bytes, and DOS those of its page."""
    if info.filename != info.orig_filename:
        raise hostile(info.orig_filename.encode(), "has a name that is no plain path below the folder")
    raw = info.create_system in _UNIX and not info.flag_bits & _UTF8
    name = info.filename.encode("cp437") if raw else info.filename.encode()
    if len(name) > MOST_NAME:
        raise hostile(name, "has a name that is no plain path below the folder")
    return name


def _content(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """The bytes of an entry in parts: as many as the directory says, and no more."""
    left = info.file_size
    with _told(), opened.open(info) as file:
        while part := file.read(CHUNK):
            left -= len(part)
            yield part
    if left:
        raise RefusedError(
            "damaged", f"The archive's entry {shown(info.filename.encode())} is shorter than it says."
        )


def _seconds(info: zipfile.ZipInfo) -> int:
    """When the entry was changed; zip knows no zone."""
    try:
        return calendar.timegm((*info.date_time, 0, 0, 0))
    except ValueError:
        return 0


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Says what zipfile raises over a file that is none."""
    try:
        yield
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error),
        *(EOFError, NotImplementedError, RuntimeError, ValueError),
    ) as error:
        raise RefusedError("damaged", f"The archive is no sound zip file: {error}.") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the beginning of the file, or far beyond its end
            raise
        raise RefusedError("damaged", "The archive's directory names places that it has not.") from error
