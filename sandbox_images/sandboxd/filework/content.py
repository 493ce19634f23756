"""Files: read and written."""

import contextlib
import os
import secrets
import stat

from sandboxd.filework.folders import make_folders, remove_folders
from sandboxd.filework.rules import RefusedError, must_be_file, stat_or_none

READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_file(request: dict) -> tuple[dict, bytes]:
    """Reads at most `limit` bytes from `offset`; one more is asked for to know whether there are more."""
    path, offset, limit = request["path"], request["offset"], request["limit"]
    must_be_file(os.stat(path), path)
    fd = os.open(path, READ_FLAGS)
    try:
        info = os.fstat(fd)
        must_be_file(info, path)  # it may have been replaced since
        data = read_at(fd, offset, limit + 1)
    finally:
        os.close(fd)
    size = max(info.st_size, offset + len(data) if data else 0)  # files of /proc say 0
    return {"size": size, "more": len(data) > limit}, data[:limit]


def read_at(fd: int, offset: int, count: int) -> bytes:
    """Reads until `count` bytes or the end of the file."""
    data = bytearray()
    while len(data) < count:
        chunk = os.pread(fd, count - len(data), offset + len(data))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def write_file(request: dict, content: bytes) -> tuple[dict, bytes]:
    """Replaces a file in one step: readers see the old content or the new one, whole."""
    target = os.path.realpath(request["path"])  # a link is written through, as every editor does
    folder = os.path.dirname(target)
    made = make_folders(folder) if request["createDirs"] else []
    try:
        old = stat_or_none(target)
        if old is not None:
            must_be_file(old, target)
        elif request["path"].endswith("/"):
            raise RefusedError("not_a_file", f"{request['path']!r} ends with a slash: it names a folder.")
        mode = request["mode"]
        if mode is None and old is not None:
            mode = stat.S_IMODE(old.st_mode) & 0o777
        replace(target, folder, content, mode)
    except BaseException:
        remove_folders(made)  # what is refused leaves nothing behind
        raise
    return {"size": len(content), "created": old is None}, b""


def replace(target: str, folder: str, content: bytes, mode: int | None) -> None:
    """Writes beside the target and renames; the temporary file goes away when that fails."""
    part = os.path.join(folder, f".nodus-{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(part, flags, 0o666)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if mode is not None:
                os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
