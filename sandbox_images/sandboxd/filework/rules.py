"""What is refused, and how a file is known again."""

import errno
import os
import stat

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
    errno.EBUSY: "denied",
    errno.ENOTDIR: "not_a_directory",
    errno.EISDIR: "not_a_file",
    errno.EEXIST: "exists",
    errno.ENOTEMPTY: "not_empty",
    errno.ELOOP: "link_loop",
    errno.ENAMETOOLONG: "invalid",
    errno.EINVAL: "invalid",
    errno.EXDEV: "other_device",
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


def stat_or_none(path: str) -> os.stat_result | None:
    """What a path names; None when there is nothing."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def etag(info: os.stat_result) -> str:
    """The version of a file: another one after every write and every replacement, the same one under a new name."""
    return f"{info.st_ino:x}-{info.st_size:x}-{info.st_mtime_ns:x}"


def check_version(request: dict, path: str, found: os.stat_result | None) -> None:
    """Refuses what was decided on another version than the one that is there.

    `ifMatch` is a list of versions, or `*`: there must be a file. `ifNoneMatch` is `*`: there must be none.
    """
    wanted, none = request.get("ifMatch"), request.get("ifNoneMatch")
    if wanted and (found is None or not ("*" in wanted or etag(found) in wanted)):
        now = "is gone" if found is None else "was changed since"
        raise RefusedError("changed", f"{path!r} {now}: read it again. Nothing was changed.")
    if none and found is not None:
        raise RefusedError("changed", f"{path!r} is there already. Nothing was changed.")
