"""One file request, done by a process of its own that runs as the commands' user.

The daemon hands the source of this module to `python -I -S -c`: it imports nothing of the daemon, and no file of
the daemon has to be readable for commands. It reads one line of JSON and then the bytes to write from its
standard input, and answers one line of JSON and then the bytes it read.
"""

import contextlib
import errno
import json
import os
import secrets
import stat
import sys

READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
REASONS = {
    errno.ENOENT: "not_found",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENOTDIR: "not_a_directory",
    errno.EISDIR: "not_a_file",
    errno.EEXIST: "exists",
    errno.ELOOP: "link_loop",
    errno.ENAMETOOLONG: "invalid",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
}


class RefusedError(Exception):
    """The request is not done, and nothing has changed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def must_be_file(info: os.stat_result, path: str) -> None:
    """Only regular files: reading a pipe may wait for ever, and opening a device may do something."""
    kind = stat.S_IFMT(info.st_mode)
    if kind != stat.S_IFREG:
        raise RefusedError("not_a_file", f"{path!r} is {KINDS.get(kind, 'no regular file')}, not a file.")


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


def make_folder(request: dict) -> tuple[dict, bytes]:
    """Makes a folder; one that is there already is fine."""
    path = request["path"].rstrip("/") or "/"
    old = stat_or_none(path)
    if old is not None and not stat.S_ISDIR(old.st_mode):
        raise RefusedError("exists", f"{path!r} is there already and is no folder.")
    make_folders(path)
    return {}, b""


def make_folders(path: str) -> list[str]:
    """Makes a folder and those above it; returns what was made, and takes it back when it fails half-way."""
    missing = []
    while stat_or_none(path) is None:
        missing.append(path)
        path = os.path.dirname(path)
    made: list[str] = []
    try:
        for folder in reversed(missing):
            try:
                os.mkdir(folder)
                made.append(folder)
            except FileExistsError:  # a command may have made it meanwhile; a link to nowhere is no folder
                if not os.path.isdir(folder):
                    raise
    except OSError:
        remove_folders(made)
        raise
    return made


def remove_folders(made: list[str]) -> None:
    """Removes folders that are still empty, the deepest first."""
    for folder in reversed(made):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def stat_or_none(path: str) -> os.stat_result | None:
    """What a path names; None when there is nothing."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def handle(request: dict, content: bytes) -> tuple[dict, bytes]:
    """Does the request; every refusal becomes an answer."""
    try:
        if request["kind"] == "read_file":
            fields, data = read_file(request)
        elif request["kind"] == "write_file":
            fields, data = write_file(request, content)
        else:
            fields, data = make_folder(request)
    except RefusedError as error:
        return {"refused": error.reason, "message": str(error)}, b""
    except OSError as error:
        reason = REASONS.get(error.errno or 0, "io")
        return {"refused": reason, "message": f"{request['path']!r}: {error.strerror}."}, b""
    return {"fields": fields}, data


def main() -> None:
    """Reads the request, answers it."""
    os.umask(0o022)
    line, _, content = sys.stdin.buffer.read().partition(b"\n")
    answer, data = handle(json.loads(line), content)
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
