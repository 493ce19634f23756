"""What an archive's entry may be: each is judged before anybody acts on it (FLD-15).

Everything in an archive is hostile, whatever its form. Paths are bytes, for Linux asks no more of them.
"""

from typing import Any

CHUNK = 1 << 18
BLOCK = 512
"""Bytes that tar counts in."""

MOST_NAME = 4095
MOST_PART = 255

FILE, FOLDER, HARD_LINK, SYMLINK = "file", "folder", "hard link", "symlink"
IMPLIED = "implied"
"""A folder that has no entry of its own, but entries below it."""

_LATEST = 1 << 33

Limits = dict[str, Any]


class RefusedError(Exception):
    """The archive is not unpacked, or not made.

    `damaged`: it is no sound archive; `hostile`: it holds what may not be there; `too_large`: it is beyond a limit.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Entry:
    """One entry, by the name that the archive gives it. Of a link `target` is where it leads, as the archive says.

    Once it has its place, `path` and, of a hard link, `source` are plain relative paths; an empty `path` is the folder
    itself, or what is left away with it.
    """

    def __init__(
        self, name: bytes, kind: str, mode: int, size: int, mtime: int, *, target: bytes = b""
    ) -> None:
        self.name = name
        self.kind = kind
        self.mode = mode & 0o777
        self.size = size if kind == FILE else 0
        self.mtime = max(0, min(mtime, _LATEST))
        self.target = target
        self.path = b""
        self.source = b""

    def place(self, limits: Limits) -> None:
        """Judges the entry by itself and says where it goes, `strip` folders higher. Raises `RefusedError`."""
        plain = _plain(self.name, limits)
        if not plain and self.kind != FOLDER:
            raise hostile(self.name, "has a name that is no plain path below the folder")
        self.path = _stripped(plain, limits)
        if self.kind == HARD_LINK:
            self.source = _stripped(_plain(self.target, limits), limits)
        elif self.kind == SYMLINK:
            self._judge_target(limits)

    def _judge_target(self, limits: Limits) -> None:
        if not self.target or b"\0" in self.target or len(self.target) > MOST_NAME:
            raise hostile(self.name, "is a link without a sound target")
        if self.path and not limits["outerLinks"] and not _stays_inside(self.path, self.target):
            raise hostile(self.name, f"is a link to {shown(self.target)}, which leads out of the folder")


class Seen:
    """The entries before, with the folders that they imply: no name twice, none below what is no folder, hard links to
    files alone, and not more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kinds: dict[bytes, str] = {}

    def add(self, entry: Entry) -> None:
        """Takes up one more, or raises `RefusedError`."""
        kinds = self._kinds
        above = entry.path.rpartition(b"/")[0]
        while above and above not in kinds:
            kinds[above] = IMPLIED
            above = above.rpartition(b"/")[0]
        if above and kinds[above] not in (FOLDER, IMPLIED):
            raise hostile(entry.name, "lies below an entry that is no folder")
        before = kinds.get(entry.path)
        if before is not None and not (before == IMPLIED and entry.kind == FOLDER):
            raise hostile(entry.name, "is there twice")
        if entry.kind == HARD_LINK and kinds.get(entry.source) != FILE:
            raise hostile(
                entry.name, f"is a hard link to {shown(entry.target)}, no file of the archive before it"
            )
        kinds[entry.path] = entry.kind
        if len(kinds) > self._most:
            raise RefusedError("too_large", f"The archive has more than {self._most} entries and folders.")


def shown(name: bytes) -> str:
    """A name of bytes as it can stand in a message."""
    return repr(name[:200].decode("utf-8", "backslashreplace"))


def hostile(name: bytes, what: str) -> RefusedError:
    """The refusal of an archive for one of its entries."""
    return RefusedError("hostile", f"The archive's entry {shown(name)} {what}.")


def _plain(name: bytes, limits: Limits) -> bytes:
    """A plain relative path that stays inside; empty for the folder itself."""
    plain = name.rstrip(b"/") or name[:1]
    while plain.startswith(b"./"):
        plain = plain[2:].lstrip(b"/")
    if plain in (b"", b"."):
        return b""
    if plain.startswith(b"/"):
        raise hostile(name, "has an absolute name")
    parts = plain.split(b"/")
    if b"\0" in plain or any(part in (b"", b".", b"..") or len(part) > MOST_PART for part in parts):
        raise hostile(name, "has a name that is no plain path below the folder")
    if len(plain) > MOST_NAME or len(parts) > limits["maxDepth"]:
        raise RefusedError("too_large", f"The archive's entry {shown(name)} lies too deep.")
    return plain


def _stripped(plain: bytes, limits: Limits) -> bytes:
    """The path without its first folders, as tar's --strip-components leaves them away; empty where no more is left."""
    return b"/".join(plain.split(b"/")[limits["strip"] :])


def _stays_inside(path: bytes, target: bytes) -> bool:
    """Whether a symlink leads nowhere but below the folder, as long as all others do so too.

    It goes up first, through folders, which are no links, and then down.
    """
    steps = [step for step in target.split(b"/") if step not in (b"", b".")]
    up = 0
    while up < len(steps) and steps[up] == b"..":
        up += 1
    return not target.startswith(b"/") and up <= path.count(b"/") and b".." not in steps[up:]
