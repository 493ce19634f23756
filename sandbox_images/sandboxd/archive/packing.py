"""Packs one folder into an archive (tar, gzip), in a process of its own that runs as the commands' user.

The folder's files may change meanwhile, and may be anything: what is opened is looked at after it was opened, no
link is followed, nothing is waited for, and what cannot be packed is reported, not passed over in silence.
"""

import errno
import json
import os
import re
import stat
import sys
import zlib
from typing import Any

from sandboxd.archive.judging import BLOCK, CHUNK, MOST_NAME, Limits, RefusedError, shown

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
LEVEL = 1
"""Of compression: what takes longer costs more time of the sandbox than it saves in S3."""

MOST_TOLD = 5
"""Names of what was left out that are told; all are counted."""

OWN = re.compile(rb"\.nodus-[0-9a-f]{16}\.part")
STATE = b".sandboxd"
"""The daemon's own files, which may stand in the folder while it works."""

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
REASONS = {
    errno.EEXIST: "not_a_directory",
    errno.ENOTDIR: "not_a_directory",
    errno.ELOOP: "not_a_directory",
    errno.EACCES: "denied",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
}


class Packed:
    """A gzip file that is written; `most` bytes at most."""

    def __init__(self, fd: int, most: int) -> None:
        self._fd = fd
        self._left = most
        self._most = most
        self._deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)

    def write(self, data: bytes) -> None:
        """Takes up some bytes."""
        self._out(self._deflate.compress(data))

    def close(self) -> None:
        """Writes the end of the archive."""
        self.write(bytes(2 * BLOCK))
        self._out(self._deflate.flush())

    def _out(self, packed: bytes) -> None:
        self._left -= len(packed)
        if self._left < 0:
            raise RefusedError("too_large", f"The folder's archive has more than {self._most} bytes.")
        view = memoryview(packed)
        while view:
            view = view[os.write(self._fd, view) :]


class Packing:
    """One folder on its way into an archive."""

    def __init__(self, out: Packed, limits: Limits) -> None:
        self._out = out
        self._limits = limits
        self._files: dict[tuple[int, int], bytes] = {}
        self.entries = 0
        self.bytes = 0
        self.changed = 0
        self.left_out: list[dict[str, str]] = []
        self.missed = 0

    def folder(self, fd: int, above: bytes) -> None:
        """Packs what is in the folder at `fd`; `above` is its path with a slash behind, empty for the whole."""
        if above.count(b"/") >= self._limits["maxDepth"] or len(above) > MOST_NAME - 256:
            raise RefusedError("too_large", f"The folder {shown(above)} lies too deep to be saved.")
        for name in sorted(os.fsencode(entry) for entry in os.listdir(fd)):
            if not OWN.fullmatch(name) and not (name == STATE and not above):
                self._one(fd, name, above + name)

    def _one(self, fd: int, name: bytes, path: bytes) -> None:
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                self._folder(fd, name, path)
            elif stat.S_ISREG(info.st_mode):
                self._file(fd, name, path)
            elif stat.S_ISLNK(info.st_mode):
                self._header(path, b"2", info, target=os.fsencode(os.readlink(name, dir_fd=fd)))
            else:
                self._miss(path, KINDS.get(stat.S_IFMT(info.st_mode), "no regular file"))
        except FileNotFoundError:
            self.changed += 1
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise  # of the archive, not of the file
            self._miss(path, error.strerror or "it cannot be read")

    def _folder(self, fd: int, name: bytes, path: bytes) -> None:
        below = os.open(name, OPEN_FOLDER, dir_fd=fd)
        try:
            self._header(path + b"/", b"5", os.fstat(below))
            self.folder(below, path + b"/")
        finally:
            os.close(below)

    def _file(self, fd: int, name: bytes, path: bytes) -> None:
        file = os.open(name, OPEN_FILE, dir_fd=fd)
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode):
                self._miss(path, "no regular file any more")
                return
            first = self._files.get((info.st_dev, info.st_ino))
            if first is not None:
                self._header(path, b"1", info, target=first)
                return
            if info.st_nlink > 1:
                self._files[info.st_dev, info.st_ino] = path
            self._header(path, b"0", info, size=info.st_size)
            self._content(file, info.st_size)
        finally:
            os.close(file)

    def _content(self, file: int, size: int) -> None:
        """As many bytes as were announced: one that shrinks is filled up with zeros, one that grows is cut."""
        left = size
        while left > 0:
            try:
                part = os.read(file, min(left, CHUNK))
            except OSError as error:  # a file that cannot be read must not become a save of zeros
                raise RefusedError("io", f"a file cannot be read: {error.strerror}") from error
            if not part:
                self.changed += 1
                self._zeros(left)
                break
            self._out.write(part)
            left -= len(part)
        self._zeros(-size % BLOCK)

    def _zeros(self, count: int) -> None:
        while count > 0:
            self._out.write(bytes(min(count, CHUNK)))
            count -= CHUNK

    def _header(
        self, path: bytes, kind: bytes, info: os.stat_result, *, size: int = 0, target: bytes = b""
    ) -> None:
        self.entries += 1
        self.bytes += size
        if self.entries > self._limits["maxEntries"]:
            raise RefusedError("too_large", f"The folder has more than {self._limits['maxEntries']} entries.")
        if self.bytes > self._limits["maxBytes"]:
            raise RefusedError(
                "too_large", f"The folder's files have more than {self._limits['maxBytes']} bytes."
            )
        for name, letter in ((target, b"K"), (path, b"L")):
            if len(name) > 100:
                self._out.write(block(b"././@LongLink", letter, 0o644, len(name) + 1, 0))
                self._out.write(name + bytes(1 + -(len(name) + 1) % BLOCK))
        self._out.write(
            block(path[:100], kind, info.st_mode & 0o777, size, int(info.st_mtime), target=target[:100])
        )

    def _miss(self, path: bytes, why: str) -> None:
        self.missed += 1
        if len(self.left_out) < MOST_TOLD:
            self.left_out.append({"path": path[:80].decode("utf-8", "backslashreplace"), "why": why})


def block(name: bytes, kind: bytes, mode: int, size: int, mtime: int, *, target: bytes = b"") -> bytes:
    """A header in GNU's form: names are bytes, whatever they are."""
    fields = (
        *(
            name.ljust(100, b"\0"),
            octal(mode, 8),
            octal(0, 8),
            octal(0, 8),
            octal(size, 12),
            octal(max(mtime, 0), 12),
        ),
        *(b" " * 8, kind, target.ljust(100, b"\0"), b"ustar  \0", bytes(247)),
    )
    header = b"".join(fields)
    return header[:148] + b"%06o\0 " % sum(header) + header[156:]


def octal(value: int, width: int) -> bytes:
    """A number in a header's field, in binary where octal digits do not hold it."""
    digits = b"%0*o\0" % (width - 1, value)
    return digits if len(digits) == width else b"\x80" + value.to_bytes(width - 1, "big")


def pack(archive: int, request: dict[str, Any]) -> dict[str, Any]:
    """Writes the archive of a folder to the descriptor `archive`, and tells what is in it and what is not.

    A folder that nobody has made yet is an empty one.
    """
    os.makedirs(request["dir"], exist_ok=True)
    base = os.open(request["dir"], OPEN_FOLDER)
    try:
        out = Packed(archive, request["maxArchiveBytes"])
        packing = Packing(out, request)
        packing.folder(base, b"")
        out.close()
    finally:
        os.close(base)
    told = {"leftOut": packing.left_out, "leftOutCount": packing.missed, "changed": packing.changed}
    return {"entries": packing.entries, "bytes": packing.bytes, **told}


def handle(archive: int, request: dict[str, Any]) -> dict[str, Any]:
    """Does the request; every refusal becomes an answer."""
    try:
        return {"fields": pack(archive, request)}
    except RefusedError as error:
        return {"refused": error.reason, "message": str(error)}
    except OSError as error:
        message = f"{request['dir']!r} cannot be packed: {error.strerror}."
        return {"refused": REASONS.get(error.errno or 0, "io"), "message": message}


def main() -> None:
    """Reads the request from its argument, and writes the archive to its standard input; answers."""
    os.umask(0o022)
    sys.stdout.write(json.dumps(handle(0, json.loads(sys.argv[1]))) + "\n")
