"""The entries of a zip file, as its directory says: names, links and permissions as Unix writes them."""

import calendar
import contextlib
import os
import resource
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
)

MAGIC = (b"PK\3\4", b"PK\5\6")
"""How a zip file begins, and an empty one."""

_MEMORY = 256 << 20
"""Bytes of memory for the whole process: the directory is read at once, and may be as large as the file."""

_UNIX = 3
_ENCRYPTED = 0x1
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_KINDS = {0: FILE, stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: SYMLINK}


def zipped(archive: int) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yields each entry of the zip file at a descriptor, unjudged, with the bytes of its file. Raises `RefusedError`."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    with _told(), os.fdopen(os.dup(archive), "rb") as file, zipfile.ZipFile(file) as opened:
        for info in opened.infolist():
            data = _content(opened, info)
            yield _entry(opened, info), data
            for _ in data:
                pass


def _entry(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    name = info.filename.encode("utf-8", "surrogateescape")
    if info.flag_bits & _ENCRYPTED:
        raise RefusedError("damaged", "The archive is encrypted.")
    if info.compress_type not in _PACKED:
        raise RefusedError("damaged", "The archive is packed in another way than deflate.")
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    kind = FOLDER if name.endswith(b"/") else _KINDS.get(stat.S_IFMT(mode))
    if kind is None:
        raise hostile(name, "is no file, folder or link")
    target = b""
    if kind == SYMLINK:
        if info.file_size > MOST_NAME:
            raise hostile(name, "is a link without a sound target")
        target = b"".join(_content(opened, info))
    mode = stat.S_IMODE(mode) or (0o755 if kind == FOLDER else 0o644)
    return Entry(name, kind, mode, info.file_size, _seconds(info), target=target)


def _content(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """The bytes of an entry in parts: as many as the directory says, and no more."""
    left = info.file_size
    with _told(), opened.open(info) as file:
        while part := file.read(CHUNK):
            left -= len(part)
            yield part
    if left:
        raise RefusedError("damaged", "The archive ends in the middle of an entry.")


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
    except MemoryError as error:
        raise RefusedError("too_large", "The archive has more entries than are taken.") from error
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error),
        *(EOFError, NotImplementedError, RuntimeError, ValueError),
    ) as error:
        raise RefusedError("damaged", f"The archive is no sound zip file: {error}.") from error
