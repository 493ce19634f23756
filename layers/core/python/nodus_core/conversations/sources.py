"""What runs take their files from, repositories and archives: where one is read, what comes of it, and how that fails."""

from collections.abc import Container, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol
from urllib.parse import urlsplit

from nodus_core.kernel.errors import RetryableError, TerminalError

MOST_ENTRIES = 50_000
"""Files, folders and links of one copy."""

MOST_BYTES = 512 * 1024 * 1024
"""Bytes of all files of one copy."""

MOST_DEPTH = 64
"""Names of one path."""

MOST_PACKED = 128 * 1024 * 1024
"""Bytes of one source as its host gives it: git's own archive of one commit, or an archive."""

FETCH_TIME_S = 180
"""Seconds within which a copy is made and stored, or the try has failed."""


@dataclass(frozen=True)
class Allowed:
    """What the operator has set up: the id of a GitHub App, git hosts by their names, a folder of bare repositories
    (`OWNER/NAME.git`) on the machine that runs the functions, empty for none, and the hosts of archives: a name,
    `*.NAME` for all below it, or `*` for all. Hosts that the operator has placed by hand are meant by their names alone."""

    app: str = ""
    git_hosts: frozenset[str] = frozenset()
    folder: str = ""
    archive_hosts: frozenset[str] = frozenset()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Allowed":
        """Of the variables `NODUS_GITHUB_APP`, `NODUS_GIT_HOSTS`, `NODUS_GIT_FOLDER` and `NODUS_ARCHIVE_HOSTS`."""
        return cls(
            environment["NODUS_GITHUB_APP"],
            _names(environment["NODUS_GIT_HOSTS"]),
            environment["NODUS_GIT_FOLDER"],
            _names(environment["NODUS_ARCHIVE_HOSTS"]),
        )

    def allows_archive(self, url: str, placed: Container[str] = ()) -> bool:
        """Whether an archive may be read at an address; `placed` are the hosts that were placed by hand."""
        host = (urlsplit(url).hostname or "").lower()
        if host in placed:
            return host in self.archive_hosts
        return any(
            allowed in ("*", host) or (allowed.startswith("*.") and host.endswith(allowed[1:]))
            for allowed in self.archive_hosts
        )


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.lower().split(",")))


NOTHING_ALLOWED = Allowed()


@dataclass(frozen=True)
class Remote:
    """Where a repository is read, and by what right.

    `base` is the https address of the host, empty for a bare repository on this machine. The right is a `token`, an
    `installation` of the operator's GitHub App, or none: then whatever the host shows to everybody.
    """

    type: Literal["GitHub", "Git", "Local"]
    repo: str
    base: str = ""
    user: str | None = None
    token: str | None = field(default=None, repr=False)
    installation: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """The files of a source as an archive.

    Of a repository a tar (gzip) of one `commit`, without history; `entries` and `size` (bytes) count what is in it. Of an
    archive what was found, unopened; `size` is its own.
    """

    archive: BinaryIO
    size: int
    commit: str | None = None
    entries: int | None = None


class SourceUnavailable(RetryableError):
    """The source cannot be read now; it may be later."""


class SourceRefused(TerminalError):
    """There is nothing that could be copied, or nothing that may be. The message names no credential."""


class Repositories(Protocol):
    """Reads of repositories."""

    def snapshot(self, remote: Remote, ref: str | None) -> AbstractContextManager[Snapshot]:
        """The files at a branch, tag or commit, None: the default branch; the archive is gone when the context ends.

        Raises `SourceUnavailable`, `SourceRefused`.
        """
        ...


class Downloads(Protocol):
    """Reads of archives."""

    def snapshot(self, url: str, sha256: str | None) -> AbstractContextManager[Snapshot]:
        """What is at an address, and has this SHA-256 if one is given; the archive is gone when the context ends.

        Raises `SourceUnavailable`, `SourceRefused`.
        """
        ...
