"""The bytes of a packed file, as they are asked for: gzip, bzip2, xz, or such as is not packed at all.

Never more at once than is asked for, and never more than a limit in all, whatever the file says of itself.
"""

import bz2
import lzma
import os
import zlib
from collections.abc import Callable
from typing import Protocol

from sandboxd.archive.judging import CHUNK, RefusedError

_ZSTD = b"\x28\xb5\x2f\xfd"


class _Decompressor(Protocol):
    """What the decompressors of bz2 and lzma have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Inflate:
    """gzip, as the other two are spoken to."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail or data, max_length)


class _AsItIs:
    """What is not packed: it ends where nothing more comes."""

    eof = False
    needs_input = True
    unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        del max_length  # no more was read
        self.eof = not data
        return data


_PACKED: dict[bytes, Callable[[], _Decompressor]] = {
    b"\x1f\x8b": _Inflate,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}


class Decompressed:
    """The file at a descriptor, from its beginning; `most` bytes at most."""

    def __init__(self, fd: int, most: int) -> None:
        head = os.pread(fd, 8, 0)
        if head.startswith(_ZSTD):
            raise RefusedError("damaged", "The archive is packed by zstd; gzip, bzip2, xz and zip are read.")
        os.lseek(fd, 0, os.SEEK_SET)
        self._fd = fd
        self._left = most
        self._new = next((new for magic, new in _PACKED.items() if head.startswith(magic)), _AsItIs)
        self._now = self._new()
        self._ready = memoryview(b"")

    def exactly(self, count: int) -> bytes:
        """So many bytes; an archive that ends before is damaged."""
        found = []
        while count > 0:
            part = self._some(count)
            if not part:
                raise RefusedError("damaged", "It is no whole archive: it ends too early.")
            found.append(part)
            count -= len(part)
        return b"".join(found)

    def finish(self) -> None:
        """Reads to the end, so that the check sum is compared; there is nothing but zeros."""
        while part := self._some(CHUNK):
            if part.strip(b"\0"):
                raise RefusedError("damaged", "Something follows the end of the archive.")

    def _some(self, count: int) -> bytes:
        """Some bytes, at most so many; none at the end."""
        if not self._ready:
            self._ready = memoryview(self._more())
        part, self._ready = bytes(self._ready[:count]), self._ready[count:]
        return part

    def _more(self) -> bytes:
        """The next bytes, at most `CHUNK`; none at the end."""
        while True:
            data = b""
            if self._now.eof:
                data = self._behind(self._now.unused_data)
                if not data:
                    return b""
                # Several packed files, one behind the other, are one: pbzip2 makes such.
                self._now = self._new()
            elif self._now.needs_input:
                data = self._read()
            if part := self._part(data):
                return part
            if not data and not self._now.eof:
                raise RefusedError("damaged", "The archive is cut off.")

    def _part(self, data: bytes) -> bytes:
        try:
            part = self._now.decompress(data, CHUNK)
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError) as error:
            raise RefusedError("damaged", f"The archive cannot be unpacked: {error}.") from error
        self._left -= len(part)
        if self._left < 0:
            raise RefusedError("too_large", "The archive unpacks to more bytes than are taken.")
        return part

    def _behind(self, data: bytes) -> bytes:
        """What stands behind the end of a packed file; zeros fill it up."""
        while not data.strip(b"\0"):
            data = self._read()
            if not data:
                return b""
        return data.lstrip(b"\0")

    def _read(self) -> bytes:
        return os.read(self._fd, CHUNK)
