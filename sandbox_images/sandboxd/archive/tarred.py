"""The entries of a tar file, packed or not.

Read here are the headers that GNU tar, Python and git write: ustar, GNU's long names, and pax; whatever else is
there is refused with the entry's name.
"""

from collections.abc import Iterator

from sandboxd.archive.judging import (
    CHUNK,
    FILE,
    FOLDER,
    HARD_LINK,
    SYMLINK,
    Entry,
    Limits,
    RefusedError,
    hostile,
)
from sandboxd.archive.unpacked import Unpacked

BLOCK = 512

_MOST_HEADER = 64 * 1024
"""Bytes of an extended header."""

_ENTRY_BYTES = 4096
"""What an entry may take of an archive beside its file's bytes, on average."""

_KINDS = {
    b"0": FILE,
    b"\0": FILE,
    b"7": FILE,
    b"1": HARD_LINK,
    b"2": SYMLINK,
    b"5": FOLDER,
}
_REFUSED_KINDS = {b"3": "a device", b"4": "a device", b"6": "a named pipe", b"S": "a sparse file"}

Said = dict[bytes, bytes]


def tarred(archive: int, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yields each entry of the tar file at a descriptor, unjudged, with the bytes of its file. Raises `RefusedError`."""
    stream = Unpacked(archive, limits["maxBytes"] + _ENTRY_BYTES * (limits["maxEntries"] + 2))
    for name, header, said in _headers(stream):
        entry = _entry(name, header, said)
        data = _content(stream, entry.size)
        yield entry, data
        for _ in data:
            pass
    stream.finish()


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


def _entry(name: bytes, block: bytes, said: Said) -> Entry:
    """The entry of one header."""
    kind = _KINDS.get(block[156:157])
    if kind is None:
        raise hostile(name, f"is {_REFUSED_KINDS.get(block[156:157], 'of an unknown kind')}")
    if kind == FILE and name.endswith(b"/"):
        kind = FOLDER
    size = _decimal(said[b"size"]) if b"size" in said else _number(block[124:136])
    target = said.get(b"linkpath", block[157:257].partition(b"\0")[0])
    return Entry(name, kind, _number(block[100:108]), size, _number(block[136:148]), target=target)
