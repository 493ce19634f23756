"""What an archive (tar, gzip) holds: its entries, each checked before anybody acts on it.

Everything in an archive is hostile. Read here are the headers that GNU tar, Python and git write: ustar, GNU's long
names, and pax; whatever else is there is refused with the entry's name.
"""

import os
import zlib
from collections.abc import Iterator
from typing import Any

BLOCK = 512
CHUNK = 1 << 18
MOST_NAME = 4095
MOST_PART = 255

FILE, FOLDER, HARD_LINK, SYMLINK = "file", "folder", "hard link", "symlink"
IMPLIED = "implied"
"""A folder that has no entry of its own, but entries below it."""

_MOST_HEADER = 64 * 1024
"""Bytes of an extended header."""

_ENTRY_BYTES = 4096
"""What an entry may take of an archive beside its file's bytes, on average."""

_LATEST = 1 << 33
_KINDS = {
    b"0": FILE,
    b"\0": FILE,
    b"7": FILE,
    b"1": HARD_LINK,
    b"2": SYMLINK,
    b"5": FOLDER,
}
_REFUSED_KINDS = {b"3": "a device", b"4": "a device", b"6": "a named pipe", b"S": "a sparse file"}


Limits = dict[str, Any]
Said = dict[bytes, bytes]


class RefusedError(Exception):
    """The archive is not unpacked, or not made.

    `damaged`: it is no sound archive; `hostile`: it holds what may not be there; `too_large`: it is beyond a limit.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Entry:
    """One entry. `path` and, of a hard link, `source` are plain relative paths; `target` is a symlink's."""

    def __init__(self, path: bytes, kind: str, mode: int, size: int, mtime: int) -> None:
        self.path = path
        self.kind = kind
        self.mode = mode & 0o777
        self.size = size
        self.mtime = min(mtime, _LATEST)
        self.target = b""
        self.source = b""


class Unpacked:
    """The bytes of a gzip file, as they are asked for: never more at once, and never more than `most` in all.

    The window of gzip is 32 KiB, so unpacking needs no more memory whatever the archive says.
    """

    def __init__(self, fd: int, most: int) -> None:
        self._fd = fd
        self._left = most
        self._inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    def exactly(self, count: int) -> bytes:
        """So many bytes; an archive that ends before is damaged."""
        found = []
        while count > 0:
            part = self._some(count)
            if not part:
                raise RefusedError("damaged", "The archive ends in the middle of an entry.")
            found.append(part)
            count -= len(part)
        return b"".join(found)

    def finish(self) -> None:
        """Reads to the end, so that the check sum is compared; behind it there is nothing but zeros."""
        while self._some(CHUNK):
            pass
        if self._inflate.unused_data.strip(b"\0"):
            raise RefusedError("damaged", "Something follows the end of the archive.")

    def _some(self, count: int) -> bytes:
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or os.read(self._fd, CHUNK)
            try:
                part = self._inflate.decompress(packed, min(count, CHUNK))
            except zlib.error as error:
                raise RefusedError("damaged", f"The archive is no sound gzip file: {error}.") from error
            self._left -= len(part)
            if self._left < 0:
                raise RefusedError("too_large", "The archive unpacks to more bytes than are taken.")
            if part:
                return part
            if not packed:
                raise RefusedError("damaged", "The archive is cut off.")
        return b""


def entries(archive: int, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yields each entry of the archive at the descriptor `archive`, with the bytes of its file in parts.

    `limits`: `maxBytes` of all files, `maxEntries`, `maxDepth` of folders, and `outerLinks`, whether symlinks may
    lead out of the folder. Raises `RefusedError`; only when this has ended is the whole archive known to be sound.
    """
    os.lseek(archive, 0, os.SEEK_SET)
    stream = Unpacked(archive, limits["maxBytes"] + _ENTRY_BYTES * (limits["maxEntries"] + 2))
    seen: dict[bytes, str] = {}
    left = limits["maxBytes"]
    for count, (name, header, said) in enumerate(_headers(stream), start=1):
        if count > limits["maxEntries"]:
            raise RefusedError("too_large", f"The archive has more than {limits['maxEntries']} entries.")
        entry = _entry(name, header, said, limits)
        if entry.path:
            _remember(name, entry, seen)
        left -= entry.size
        if left < 0:
            raise RefusedError("too_large", f"The archive's files have more than {limits['maxBytes']} bytes.")
        data = _content(stream, entry.size)
        if entry.path:
            yield entry, data
        for _ in data:
            pass
    stream.finish()


def shown(name: bytes) -> str:
    """A name of bytes as it can stand in a message."""
    return repr(name[:200].decode("utf-8", "backslashreplace"))


def _hostile(name: bytes, what: str) -> RefusedError:
    return RefusedError("hostile", f"The archive's entry {shown(name)} {what}.")


def _headers(stream: Unpacked) -> Iterator[tuple[bytes, bytes, Said]]:
    """Yields name, header block and extended records of each entry."""
    said: Said = {}
    while True:
        block = stream.exactly(BLOCK)
        if not block.strip(b"\0"):
            return
        if _number(block[148:156]) != sum(block[:148]) + 8 * 32 + sum(block[156:]):
            raise RefusedError("damaged", "A header of the archive has a wrong check sum.")
        kind = block[156:157]
        if kind in (b"L", b"K"):
            said[b"path" if kind == b"L" else b"linkpath"] = _small(stream, block).rstrip(b"\0")
        elif kind == b"x":
            said |= _records(_small(stream, block))
        elif kind == b"g":
            _small(stream, block)
        else:
            prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
            name = block[:100].partition(b"\0")[0]
            yield said.get(b"path", prefix + b"/" + name if prefix else name), block, said
            said = {}


def _small(stream: Unpacked, block: bytes) -> bytes:
    """The whole of an extended header."""
    size = _number(block[124:136])
    if size > _MOST_HEADER:
        raise RefusedError("too_large", "An extended header of the archive is too long.")
    return b"".join(_content(stream, size))


def _content(stream: Unpacked, size: int) -> Iterator[bytes]:
    """The bytes of an entry in parts; what fills its last block is left away."""
    left = size
    while left > 0:
        part = stream.exactly(min(left, CHUNK))
        left -= len(part)
        yield part
    stream.exactly(-size % BLOCK)


def _number(field: bytes) -> int:
    """A number of a header: octal digits, or binary behind a first byte of 0x80."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if any(digit not in b"01234567" for digit in digits):
        raise RefusedError("damaged", "A header of the archive holds no number where there must be one.")
    return int(digits or b"0", 8)


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise RefusedError("damaged", "An extended header of the archive cannot be read.")
    return int(text)


def _records(data: bytes) -> Said:
    """The records of a pax header."""
    records: Said = {}
    while data:
        digits = data.partition(b" ")[0]
        size = _decimal(digits)
        key, equals, value = data[len(digits) + 1 : size - 1].partition(b"=")
        if not equals or size > len(data) or data[size - 1 : size] != b"\n":
            raise RefusedError("damaged", "An extended header of the archive cannot be read.")
        records[key], data = value, data[size:]
    if any(key.startswith(b"GNU.sparse.") for key in records):
        raise RefusedError("hostile", "The archive holds a sparse file, which is not unpacked.")
    return records


def _entry(name: bytes, block: bytes, said: Said, limits: Limits) -> Entry:
    """The entry of one header, checked by itself."""
    kind = _KINDS.get(block[156:157])
    if kind is None:
        raise _hostile(name, f"is {_REFUSED_KINDS.get(block[156:157], 'of an unknown kind')}")
    if kind == FILE and name.endswith(b"/"):
        kind = FOLDER
    path = _path(name, limits)
    if not path and kind != FOLDER:
        raise _hostile(name, "has a name that is no plain path below the folder")
    size = _decimal(said[b"size"]) if b"size" in said else _number(block[124:136])
    mode, mtime = _number(block[100:108]), _number(block[136:148])
    entry = Entry(path, kind, mode, size if kind == FILE else 0, mtime)
    target = said.get(b"linkpath", block[157:257].partition(b"\0")[0])
    if kind == HARD_LINK:
        entry.source = _path(target, limits)
    elif kind == SYMLINK:
        entry.target = _target(name, path, target, limits)
    return entry


def _path(name: bytes, limits: Limits) -> bytes:
    """A plain relative path that stays inside; empty for the folder itself."""
    plain = name.rstrip(b"/") or name[:1]
    while plain.startswith(b"./"):
        plain = plain[2:].lstrip(b"/")
    if plain in (b"", b"."):
        return b""
    if plain.startswith(b"/"):
        raise _hostile(name, "has an absolute name")
    parts = plain.split(b"/")
    if b"\0" in plain or any(part in (b"", b".", b"..") or len(part) > MOST_PART for part in parts):
        raise _hostile(name, "has a name that is no plain path below the folder")
    if len(plain) > MOST_NAME or len(parts) > limits["maxDepth"]:
        raise RefusedError("too_large", f"The archive's entry {shown(name)} lies too deep.")
    return plain


def _target(name: bytes, path: bytes, target: bytes, limits: Limits) -> bytes:
    if not target or b"\0" in target or len(target) > MOST_NAME:
        raise _hostile(name, "is a link without a sound target")
    if not limits["outerLinks"] and not _stays_inside(path, target):
        raise _hostile(name, f"is a link to {shown(target)}, which leads out of the folder")
    return target


def _stays_inside(path: bytes, target: bytes) -> bool:
    """Whether a symlink leads nowhere but below the folder, as long as all others do so too.

    It goes up first, through folders, which are no links, and then down.
    """
    steps = [step for step in target.split(b"/") if step not in (b"", b".")]
    up = 0
    while up < len(steps) and steps[up] == b"..":
        up += 1
    return not target.startswith(b"/") and up <= path.count(b"/") and b".." not in steps[up:]


def _remember(name: bytes, entry: Entry, seen: dict[bytes, str]) -> None:
    """Takes up an entry among those before: no name twice, none below what is no folder, links to files alone."""
    above = entry.path.rpartition(b"/")[0]
    while above and above not in seen:
        seen[above] = IMPLIED
        above = above.rpartition(b"/")[0]
    if above and seen[above] not in (FOLDER, IMPLIED):
        raise _hostile(name, "lies below an entry that is no folder")
    before = seen.get(entry.path)
    if before is not None and not (before == IMPLIED and entry.kind == FOLDER):
        raise _hostile(name, "is there twice")
    if entry.kind == HARD_LINK and seen.get(entry.source) != FILE:
        raise _hostile(name, f"is a hard link to {shown(entry.source)}, no file of the archive before it")
    seen[entry.path] = entry.kind
