"""The files of a commit, checked, as an archive: nothing in it leads out of the folder that it is unpacked into.

Imports dulwich: import this module only when a source is about to be copied.
"""

import gzip
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from dulwich.errors import ObjectFormatException
from dulwich.objects import Commit, parse_tree

from nodus_core.conversations.sources import MOST_BYTES, MOST_DEPTH, MOST_ENTRIES, SourceRefused
from nodus_core.providers.git_pack import BLOB, TREE, Objects

MOST_PART = 255
MOST_PATH = 4095
"""Bytes that Linux takes as one name, and as one path or link."""

MOST_ARCHIVE = 256 * 1024 * 1024
"""Bytes of the archive, packed."""

FOLDER, FILE, LINK, SUBMODULE = 0o040000, 0o100000, 0o120000, 0o160000
_KIND = 0o170000
_LEVEL = 3
"""Of gzip: a third of the time of the usual level, for a few hundredths more bytes."""


@dataclass(frozen=True)
class Entry:
    """One file, folder or link. `content` is a file's bytes or a link's target."""

    path: tuple[bytes, ...]
    kind: int
    executable: bool = False
    content: bytes = b""


def archived(objects: Objects, commit: Commit, repo: str, into: BinaryIO) -> tuple[int, int]:
    """Writes the commit's files; returns how many entries there are, and the bytes of the files.

    The same commit gives the same bytes: times are the commit's, owners nobody's. Raises `SourceRefused`.
    """
    entries = size = 0
    moment = max(0, min(int(commit.commit_time), 2**33 - 1))
    with (
        gzip.GzipFile("", "wb", _LEVEL, _Bounded(into, repo), mtime=0) as packed,
        tarfile.open(
            fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
        ) as archive,
    ):
        for entry in checked(objects, commit, repo):
            entries += 1
            if entry.kind != FILE:
                archive.addfile(_header(entry, moment))
                continue
            size += len(entry.content)
            if size > MOST_BYTES:
                raise SourceRefused(f"the files of {repo} have more than {MOST_BYTES} bytes at one commit")
            archive.addfile(_header(entry, moment), io.BytesIO(entry.content))
    into.flush()
    return entries, size


def checked(objects: Objects, commit: Commit, repo: str) -> Iterator[Entry]:
    """The entries of a commit, folders before what is in them. A submodule is an empty folder: its files are another
    repository's. Raises `SourceRefused`, naming the entry."""
    waiting: list[tuple[tuple[bytes, ...], bytes]] = [((), commit.tree)]
    count = 0
    while waiting:
        above, tree = waiting.pop()
        seen: set[bytes] = set()
        for name, mode, sha in _parsed(objects.read(tree, TREE), repo):
            count += 1
            if count > MOST_ENTRIES:
                raise SourceRefused(
                    f"{repo} has more than {MOST_ENTRIES} files, folders and links at one commit"
                )
            path = (*above, name)
            _check_name(path, seen, repo)
            if mode & _KIND == FOLDER:
                waiting.append((path, sha))
            yield _entry(objects, path, mode, sha, repo)


def _entry(objects: Objects, path: tuple[bytes, ...], mode: int, sha: bytes, repo: str) -> Entry:
    kind = mode & _KIND
    if kind in (FOLDER, SUBMODULE):
        return Entry(path, FOLDER)
    if kind not in (FILE, LINK):
        raise _hostile(repo, path, f"is of an unknown kind ({mode:o})")
    content = objects.read(sha, BLOB)
    if kind == LINK and not _stays_inside(path, content):
        raise _hostile(repo, path, f"is a link to {_shown(content)}, which leads out of the repository")
    return Entry(path, kind, executable=bool(mode & 0o100), content=content)


def _parsed(tree: bytes, repo: str) -> Iterator[tuple[bytes, int, bytes]]:
    try:
        yield from parse_tree(tree, 20)
    except (ObjectFormatException, ValueError):
        raise SourceRefused(f"a folder of {repo} cannot be read") from None


def _check_name(path: tuple[bytes, ...], seen: set[bytes], repo: str) -> None:
    name = path[-1]
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name or len(name) > MOST_PART:
        raise _hostile(repo, path, "has a name that is none of a file")
    if name.lower() == b".git":
        raise _hostile(repo, path, "is called as git's own folder, which no copy has")
    if name in seen:
        raise _hostile(repo, path, "is there twice")
    if len(path) > MOST_DEPTH or sum(len(part) + 1 for part in path) > MOST_PATH:
        raise _hostile(repo, path, "lies too deep")
    seen.add(name)


def _stays_inside(path: tuple[bytes, ...], target: bytes) -> bool:
    """Whether a link leads nowhere but below the copy, whatever the other links are: first up, and then only down."""
    steps = [step for step in target.split(b"/") if step not in (b"", b".")]
    up = 0
    while up < len(steps) and steps[up] == b"..":
        up += 1
    plain = bool(target) and b"\0" not in target and len(target) <= MOST_PATH and not target.startswith(b"/")
    return plain and up < len(path) and b".." not in steps[up:]


def _header(entry: Entry, moment: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(b"/".join(entry.path).decode("utf-8", "surrogateescape"))
    header.mtime = moment
    if entry.kind == FOLDER:
        header.type, header.mode = tarfile.DIRTYPE, 0o755
    elif entry.kind == LINK:
        header.type, header.mode = tarfile.SYMTYPE, 0o777
        header.linkname = entry.content.decode("utf-8", "surrogateescape")
    else:
        header.mode, header.size = 0o755 if entry.executable else 0o644, len(entry.content)
    return header


def _shown(name: bytes) -> str:
    return repr(name[:200].decode("utf-8", "backslashreplace"))


def _hostile(repo: str, path: tuple[bytes, ...], what: str) -> SourceRefused:
    return SourceRefused(f"{repo} is not copied: {_shown(b'/'.join(path))} {what}")


class _Bounded(io.RawIOBase):
    """A file that takes so many bytes and no more."""

    def __init__(self, file: BinaryIO, repo: str) -> None:
        self._file = file
        self._repo = repo

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._file.tell() + len(data) > MOST_ARCHIVE:
            raise SourceRefused(f"the files of {self._repo} have more than {MOST_ARCHIVE} bytes, packed")
        return self._file.write(data)
