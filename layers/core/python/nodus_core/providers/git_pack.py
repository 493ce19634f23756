"""The objects of a pack that somebody has sent, read within bounds: sizes are judged before anything is unpacked.

Imports dulwich: import this module only when a source is about to be copied.
"""

import mmap
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import BinaryIO

from dulwich.errors import ApplyDeltaError, ChecksumMismatch
from dulwich.object_format import SHA1
from dulwich.objects import Commit, Tag
from dulwich.pack import (
    DELTA_TYPES,
    MemoryPackIndex,
    Pack,
    PackData,
    UnresolvedDeltas,
    read_pack_header_at,
    take_msb_bytes_at,
    unpack_object_at,
)

from nodus_core.conversations.sources import MOST_BYTES, MOST_ENTRIES, SourceRefused

MOST_FILE = 100 * 1024 * 1024
"""Bytes of one object: GitHub takes no larger file."""

MOST_OBJECTS = 2 * MOST_ENTRIES
"""Objects of one pack: files and folders, a commit, a tag."""

MOST_TAGS = 8
"""Tags of tags that are followed."""

BROKEN = (
    AssertionError,
    ValueError,
    KeyError,
    zlib.error,
    ApplyDeltaError,
    ChecksumMismatch,
    UnresolvedDeltas,
)
"""What dulwich raises over a pack that is none."""

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4


@contextmanager
def opened(file: BinaryIO, repo: str) -> Iterator["Objects"]:
    """The objects of a pack. Each is found by the hash of its content, so that it is what its name says.

    Raises `SourceRefused` for a pack that is too large or broken.
    """
    try:
        _measure(file)
        data = PackData.from_file(file, SHA1)
    except BROKEN as error:
        raise SourceRefused(f"what the host of {repo} sent is no sound pack: {error}") from None
    with data:
        try:
            index = MemoryPackIndex(sorted(data.iterentries()), SHA1)
        except BROKEN as error:
            raise SourceRefused(f"what the host of {repo} sent is no sound pack: {error}") from None
        with closing(Pack.from_objects(data, index)) as pack:
            yield Objects(pack, repo)


class Objects:
    """Objects by their names, 20 bytes or 40 digits."""

    def __init__(self, pack: Pack, repo: str) -> None:
        self._pack = pack
        self._repo = repo

    def commit(self, name: bytes) -> Commit:
        """The commit of that name, or that a tag of that name means."""
        for _ in range(MOST_TAGS):
            kind, raw = self._read(name)
            if kind == COMMIT:
                return self._commit(raw)
            if kind != TAG:
                break
            name = self._target(raw)
        raise SourceRefused(f"the ref of {self._repo} leads to no commit")

    def read(self, name: bytes, kind: int) -> bytes:
        """The bytes of an object of that kind."""
        found, raw = self._read(name)
        if found != kind:
            raise SourceRefused(f"an object of {self._repo} is of another kind than its folder says")
        return raw

    def _read(self, name: bytes) -> tuple[int, bytes]:
        try:
            return self._pack.get_raw(name)  # pyright: ignore[reportArgumentType]
        except BROKEN:
            message = f"the host of {self._repo} did not send all objects of the commit, or broken ones"
            raise SourceRefused(message) from None

    def _commit(self, raw: bytes) -> Commit:
        try:
            commit = Commit.from_string(raw)
            commit.check()
        except Exception:  # noqa: BLE001 - whatever a hostile text does to the parser
            raise SourceRefused(f"a commit of {self._repo} cannot be read") from None
        return commit

    def _target(self, raw: bytes) -> bytes:
        try:
            return Tag.from_string(raw).object[1]
        except Exception:  # noqa: BLE001 - whatever a hostile text does to the parser
            raise SourceRefused(f"a tag of {self._repo} cannot be read") from None


def _measure(file: BinaryIO) -> None:
    """Judges what each object says it unpacks to; dulwich then unpacks none to more than that."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as contents:
        _version, count = read_pack_header_at(contents)
        if count > MOST_OBJECTS:
            raise SourceRefused(f"the commit has {count} objects, at most {MOST_OBJECTS} are taken")
        offset, total = 12, 0
        for _ in range(count):
            total += _allowed(_size(take_msb_bytes_at(contents, offset)[0]))
            unpacked, offset = unpack_object_at(contents, offset, SHA1.hash_func)
            if unpacked.pack_type_num in DELTA_TYPES:
                total += _allowed(_result_size(b"".join(unpacked.decomp_chunks)))
            if total > 2 * MOST_BYTES:
                raise SourceRefused(f"the commit's objects unpack to more than {2 * MOST_BYTES} bytes")


def _allowed(size: int) -> int:
    if size > MOST_FILE:
        raise SourceRefused(f"an object of the commit has {size} bytes, at most {MOST_FILE} are taken")
    return size


def _size(header: list[int]) -> int:
    """The size in an object's header: four bits in its first byte, seven in each that follows."""
    size, shift = header[0] & 0x0F, 4
    for byte in header[1:]:
        size |= (byte & 0x7F) << shift
        shift += 7
    return size


def _result_size(delta: bytes) -> int:
    """What a delta makes: the second of the two numbers at its beginning."""
    _base, offset, _ = take_msb_bytes_at(delta, 0)
    digits, _, _ = take_msb_bytes_at(delta, offset)
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(digits))
