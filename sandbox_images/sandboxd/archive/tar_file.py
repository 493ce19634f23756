"""The entries of a tar file, packed or not.

Read here are the headers that GNU tar, Python and git write: ustar, GNU's long names, and pax; whatever else is
there is refused with the entry's name.
"""

from collections.abc import Iterator

from sandboxd.archive.decompression import Decompressed
from sandboxd.archive.judging import (
    BLOCK,
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

_MOST_HEADER = 64 * 1024
"""Bytes of an extended header."""

_MOST_IN_A_ROW = 8
"""Extended headers of one entry; programs write three at most."""

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

_LONG = {b"L": b"path", b"K": b"linkpath"}
_EXTENDED = (*_LONG, b"x", b"g")

Said = dict[bytes, bytes]
"""What extended headers say, of `_USED` alone."""

_USED = (b"path", b"linkpath", b"size")


def tarred(archive: int, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yields each entry of the tar file at a descriptor, unjudged, with the bytes of its file. Raises `RefusedError`."""
    stream = Decompressed(archive, limits["maxBytes"] + _ENTRY_BYTES * (limits["maxEntries"] + 2))
    for name, header, said in _headers(stream):
        entry = _entry(name, header, said)
        data = _content(stream, entry.size)
        yield entry, data
        for _ in data:
            pass
    stream.finish()


def _headers(stream: Decompressed) -> Iterator[tuple[bytes, bytes, Said]]:
    """Yields name, header block and extended records of each entry."""
    said: Said = {}
    extended = 0
    wrong = "It is neither a tar, packed by gzip, bzip2, xz or not at all, nor a zip file."
    while True:
        block = stream.exactly(BLOCK)
        if not block.strip(b"\0"):
            return
        if not _is_header(block):
            raise RefusedError("damaged", wrong)
        wrong = "A header of the archive has a wrong check sum."
        if block[156:157] in _EXTENDED:
            extended += 1
            if extended > _MOST_IN_A_ROW:
                raise RefusedError(
                    "damaged", "The archive has extended headers in a row, and no entry of theirs."
                )
            said |= _extended(block[156:157], _small(stream, block))
            continue
        prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
        name = block[:100].partition(b"\0")[0]
        yield said.get(b"path", prefix + b"/" + name if prefix else name), block, said
        said, extended = {}, 0


def _extended(kind: bytes, data: bytes) -> Said:
    """What an extended header says of the entry behind it."""
    if kind in _LONG:
        return {_LONG[kind]: data.rstrip(b"\0")}
    records = _records(data)
    if kind == b"g" and records:
        raise RefusedError("hostile", "The archive says of all its entries at once what may differ for each.")
    return records


def _is_header(block: bytes) -> bool:
    digits = block[148:156].strip(b" \0")
    plain = bool(digits) and not digits.strip(b"01234567")
    return plain and int(digits, 8) == sum(block[:148]) + 8 * 32 + sum(block[156:])


def _small(stream: Decompressed, block: bytes) -> bytes:
    """The whole of an extended header."""
    size = _number(block[124:136])
    if size > _MOST_HEADER:
        raise RefusedError("too_large", "An extended header of the archive is too long.")
    return b"".join(_content(stream, size))


def _content(stream: Decompressed, size: int) -> Iterator[bytes]:
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


def _moment(field: bytes) -> int:
    """A time of a header; all before 1970 is its beginning."""
    return 0 if field[:1] == b"\xff" else _number(field)


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise RefusedError("damaged", "An extended header of the archive cannot be read.")
    return int(text)


def _records(data: bytes) -> Said:
    """The records of a pax header that count here."""
    records: Said = {}
    at = 0
    while at < len(data):
        digits = data[at : data.find(b" ", at, at + 21)]
        end = at + _decimal(digits)
        key, equals, value = data[at + len(digits) + 1 : end - 1].partition(b"=")
        if not equals or end > len(data) or data[end - 1 : end] != b"\n":
            raise RefusedError("damaged", "An extended header of the archive cannot be read.")
        if key.startswith(b"GNU.sparse."):
            raise RefusedError("hostile", "The archive holds a sparse file, which is not unpacked.")
        if key in _USED:
            records[key] = value
        at = end
    return records


def _entry(name: bytes, block: bytes, said: Said) -> Entry:
    """The entry of one header."""
    kind = _KINDS.get(block[156:157])
    if kind is None:
        raise hostile(name, f"is {_REFUSED_KINDS.get(block[156:157], 'of an unknown kind')}")
    if kind == FILE and name.endswith(b"/"):
        kind = FOLDER
    size = _decimal(said[b"size"]) if b"size" in said else _number(block[124:136])
    if size and kind != FILE:
        raise hostile(name, "has bytes of its own, and is no file")
    target = said.get(b"linkpath", block[157:257].partition(b"\0")[0])
    return Entry(name, kind, _number(block[100:108]), size, _moment(block[136:148]), target=target)
