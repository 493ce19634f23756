"""Files: read and written."""

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable

from sandboxd.filework.folders import make_folders, remove_folders
from sandboxd.filework.rules import RefusedError, check_version, etag, must_be_file, stat_or_none

READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CHUNK_BYTES = 1024 * 1024


def open_file(path: str) -> tuple[int, os.stat_result]:
    """Opens a regular file for reading."""
    must_be_file(os.stat(path), path)
    fd = os.open(path, READ_FLAGS)
    try:
        info = os.fstat(fd)
        must_be_file(info, path)  # it may have been replaced since
    except BaseException:
        os.close(fd)
        raise
    return fd, info


def read_file(request: dict) -> tuple[dict, bytes]:
    """Reads at most `limit` bytes from `offset`; one more is asked for to know whether there are more."""
    path, offset, limit = request["path"], request["offset"], request["limit"]
    fd, info = open_file(path)
    try:
        check_version(request, path, info)
        data = read_at(fd, offset, limit + 1)
    finally:
        os.close(fd)
    size = max(info.st_size, offset + len(data) if data else 0)  # files of /proc say 0
    return {"size": size, "more": len(data) > limit, "etag": etag(info)}, data[:limit]


def read_at(fd: int, offset: int, count: int) -> bytes:
    """Reads until `count` bytes or the end of the file."""
    data = bytearray()
    while len(data) < count:
        chunk = os.pread(fd, count - len(data), offset + len(data))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def copy_out(request: dict) -> tuple[dict, bytes]:
    """Copies a file to the descriptor `fd`, as it is at one moment; one of more than `most` bytes is refused."""
    path, most = request["path"], request["most"]
    fd, info = open_file(path)
    try:
        check_version(request, path, info)
        if info.st_size > most:
            raise RefusedError(
                "too_large", f"{path!r} has {info.st_size} bytes; at most {most} can be fetched."
            )
        size, sha256 = copied(fd, request["fd"], info.st_size)
        if etag(os.fstat(fd)) != etag(info) or size != info.st_size:
            raise RefusedError("changed", f"{path!r} was changed while it was read: ask again.")
    finally:
        os.close(fd)
    return {"size": size, "etag": etag(info), "sha256": sha256}, b""


def copied(source: int, target: int, most: int) -> tuple[int, str]:
    """Copies at most `most` bytes from where the descriptors stand; their number, and their sha256."""
    seen, left = hashlib.sha256(), most
    while left > 0 and (chunk := os.read(source, min(CHUNK_BYTES, left))):
        seen.update(chunk)
        write_all(target, chunk)
        left -= len(chunk)
    return most - left, seen.hexdigest()


def write_file(request: dict, content: bytes) -> tuple[dict, bytes]:
    """Replaces a file in one step: readers see the old content or the new one, whole.

    What is written is `content`, or the first `size` bytes of the descriptor `fd`.
    """
    target = os.path.realpath(request["path"])  # a link is written through, as every editor does
    folder = os.path.dirname(target)
    made = make_folders(folder) if request["createDirs"] else []
    try:
        old = stat_or_none(target)
        check_version(request, request["path"], old)
        if old is not None:
            must_be_file(old, target)
        elif request["path"].endswith("/"):
            raise RefusedError("not_a_file", f"{request['path']!r} ends with a slash: it names a folder.")
        mode = request["mode"]
        if mode is None and old is not None:
            mode = stat.S_IMODE(old.st_mode) & 0o777
        new = replace(target, mode, _filling(request, content), lambda: _place(request, target))
    except BaseException:
        remove_folders(made)  # what is refused leaves nothing behind
        raise
    return {"size": new.st_size, "etag": etag(new), "created": old is None}, b""


def _filling(request: dict, content: bytes) -> Callable[[int], object]:
    source = request.get("fd")
    if source is None:
        return lambda fd: write_all(fd, content)
    return lambda fd: _copied_whole(source, fd, request["size"])


def _copied_whole(source: int, fd: int, size: int) -> None:
    if copied(source, fd, size)[0] != size:
        raise RefusedError("io", "The content to write is cut short. Nothing was changed.")


def _place(request: dict, target: str) -> Callable[[str, str], None]:
    """How the new file comes to its name: a last look at what is there, and never over what must not be there."""
    check_version(request, request["path"], stat_or_none(target))
    return put_new if request.get("ifNoneMatch") else os.rename


def put_new(part: str, target: str) -> None:
    """Gives a file its name unless somebody has it."""
    try:
        os.link(part, target, follow_symlinks=False)
    except FileExistsError:
        raise RefusedError("changed", f"{target!r} is there already. Nothing was changed.") from None
    os.unlink(part)


def replace(
    target: str,
    mode: int | None,
    fill: Callable[[int], object],
    place: Callable[[], Callable[[str, str], None]],
) -> os.stat_result:
    """Writes beside the target and gives it the name; the temporary file goes away when that fails."""
    part = os.path.join(os.path.dirname(target), f".nodus-{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(part, flags, 0o666)
    try:
        try:
            fill(fd)
            if mode is not None:
                os.fchmod(fd, mode)
            os.fsync(fd)
            new = os.fstat(fd)
        finally:
            os.close(fd)
        place()(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
    return new


def write_all(fd: int, data: bytes) -> None:
    """Writes all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
