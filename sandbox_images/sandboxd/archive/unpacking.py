"""Unpacks one archive into a folder, in a process of its own that runs as the commands' user (`sandboxd.workers`).

The archive is read twice. The first time nothing is written: one that is refused leaves nothing behind. While files
are written there is no link below the folder, so that no name can lead out of it: each folder is opened from the one
above without following links, symlinks come last, and hard links are made only to files that were written here.
"""

import contextlib
import errno
import json
import os
import resource
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from sandboxd.archive.entries import entries
from sandboxd.archive.judging import FOLDER, HARD_LINK, SYMLINK, Entry, Limits, RefusedError

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_MESSAGE = 1000
"""Characters of a refusal: names of an archive may be long."""

MEMORY = 512 << 20
"""Bytes of memory for the process. The names of a saved folder's 250,000 entries take some hundred; a hostile archive
may ask for all that there is: by a zip file's directory, by xz's, or by names without end."""

REASONS = {
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
}


class Tree:
    """The folders below one that nobody else writes to; keeps those open that lead to the last path."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._open: list[tuple[bytes, int]] = []

    def above(self, path: bytes) -> tuple[int, bytes]:
        """A descriptor of the folder that holds `path`, and the last part of it; folders on the way are made."""
        *folders, last = path.split(b"/")
        same = 0
        while same < min(len(folders), len(self._open)) and folders[same] == self._open[same][0]:
            same += 1
        self.close(same)
        for folder in folders[same:]:
            fd = self._open[-1][1] if self._open else self._root
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=fd)
            self._open.append((folder, os.open(folder, OPEN_FOLDER, dir_fd=fd)))
        return (self._open[-1][1] if self._open else self._root), last

    def close(self, keep: int = 0) -> None:
        """Lets go of all but the first `keep` folders."""
        while len(self._open) > keep:
            os.close(self._open.pop()[1])


@contextlib.contextmanager
def tree_of(root: int) -> Iterator[Tree]:
    """A tree that is closed in the end."""
    tree = Tree(root)
    try:
        yield tree
    finally:
        tree.close()


@contextlib.contextmanager
def new_folder(name: str, above: int) -> Iterator[int]:
    """Makes a folder and opens it."""
    os.mkdir(name, 0o700, dir_fd=above)
    fd = os.open(name, OPEN_FOLDER, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)


def write_file(folder: int, name: bytes, entry: Entry, data: Iterable[bytes]) -> None:
    """Writes a new file."""
    fd = os.open(name, NEW_FILE, 0o600, dir_fd=folder)
    try:
        for part in data:
            view = memoryview(part)
            while view:
                view = view[os.write(fd, view) :]
        os.fchmod(fd, entry.mode)
        os.utime(fd, (entry.mtime, entry.mtime))
    finally:
        os.close(fd)


def make(tree: Tree, root: int, entry: Entry, data: Iterable[bytes]) -> None:
    """Makes one folder, hard link or file."""
    folder, name = tree.above(entry.path)
    if entry.kind == FOLDER:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=folder)
    elif entry.kind == HARD_LINK:
        with tree_of(root) as other:
            source, file = other.above(entry.source)
            os.link(file, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
    else:
        write_file(folder, name, entry, data)


def fill(root: int, archive: int, limits: Limits) -> tuple[int, int, list[Entry]]:
    """Writes all entries below the descriptor `root`; returns how many, the files' bytes, and the folders."""
    links: list[Entry] = []
    folders: list[Entry] = []
    count = size = 0
    with tree_of(root) as tree:
        for entry, data in entries(archive, limits):
            count += 1
            size += entry.size
            if entry.kind == SYMLINK:
                links.append(entry)
            else:
                make(tree, root, entry, data)
            if entry.kind == FOLDER:
                folders.append(entry)
        for link in links:
            folder, name = tree.above(link.path)
            os.symlink(link.target, name, dir_fd=folder)
    return count, size, folders


def settle(root: int, folders: list[Entry]) -> None:
    """Gives folders their modes and times, the deepest first: one that nobody may write to could not be filled."""
    for entry in sorted(folders, key=lambda each: each.path.count(b"/"), reverse=True):
        with tree_of(root) as tree:
            folder, name = tree.above(entry.path)
            fd = os.open(name, OPEN_FOLDER, dir_fd=folder)
            try:
                os.utime(fd, (entry.mtime, entry.mtime))
                os.fchmod(fd, entry.mode)
            finally:
                os.close(fd)


def replace(base: int, archive: int, limits: Limits, part: str) -> dict[str, Any]:
    """Fills a new folder inside of `base`, whose entries then take the place of what was there.

    `base` itself may be a mount, which nobody can rename.
    """
    with new_folder(part, base) as staging, new_folder("new", staging) as new:
        count, size, folders = fill(new, archive, limits)
        with new_folder("old", staging) as old:
            for name in os.listdir(base):
                if name != part:
                    open_up(name, base)
                    os.rename(name, name, src_dir_fd=base, dst_dir_fd=old)
        for name in os.listdir(new):
            os.rename(name, name, src_dir_fd=new, dst_dir_fd=base)
    settle(base, folders)
    return {"entries": count, "bytes": size}


def open_up(name: str, above: int) -> None:
    """Lets its owner write to a folder, which else could not be moved or emptied; leaves alone what is none."""
    try:
        fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except NotADirectoryError:
        return
    try:
        with contextlib.suppress(
            PermissionError
        ):  # somebody else's: what is tried next tells what comes of it
            os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)


def remove(part: str, base: int) -> None:
    """Removes what was made, and what was there before, whatever their folders forbid."""
    with contextlib.suppress(FileNotFoundError):  # nothing was made
        for _, names, _, fd in os.fwalk(part, dir_fd=base):
            for name in names:
                open_up(name, fd)
    shutil.rmtree(part, ignore_errors=True, dir_fd=base)


def unpack(archive: int, request: dict[str, Any]) -> dict[str, Any]:
    """Unpacks the archive: afterwards the folder holds what is in it, and nothing else."""
    for _ in entries(archive, request):
        pass
    os.makedirs(request["dir"], exist_ok=True)
    base = os.open(request["dir"], OPEN_FOLDER)
    part = f".nodus-{secrets.token_hex(8)}.part"
    try:
        return replace(base, archive, request, part)
    finally:
        remove(part, base)
        os.close(base)


def handle(archive: int, request: dict[str, Any]) -> dict[str, Any]:
    """Does the request; every refusal becomes an answer."""
    try:
        return {"fields": unpack(archive, request)}
    except RefusedError as error:
        return {"refused": error.reason, "message": str(error)[:MOST_MESSAGE]}
    except MemoryError:
        return {"refused": "too_large", "message": "The archive takes more memory than there is for one."}
    except OSError as error:
        message = f"{request['dir']!r} cannot be filled: {error.strerror}."
        return {"refused": REASONS.get(error.errno or 0, "io"), "message": message}


def main() -> None:
    """Reads the request from its argument and the archive from its standard input; answers."""
    os.umask(0o022)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard), hard)
    )
    sys.stdout.write(json.dumps(handle(0, json.loads(sys.argv[1]))) + "\n")
