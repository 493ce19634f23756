"""Repositories that runs take their files from: where one is read, what comes of it, and how that fails."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol

from nodus_core.kernel.errors import RetryableError, TerminalError

MOST_ENTRIES = 50_000
"""Files, folders and links of one copy."""

MOST_BYTES = 512 * 1024 * 1024
"""Bytes of all files of one copy."""

MOST_DEPTH = 64
"""Names of one path."""

FETCH_TIME_S = 180
"""Seconds within which a copy is made and stored, or the try has failed."""


@dataclass(frozen=True)
class Allowed:
    """What the operator has set up: the id of a GitHub App, git hosts by their names, and a folder of bare repositories
    (`OWNER/NAME.git`) on the machine that runs the functions, empty for none."""

    app: str = ""
    hosts: frozenset[str] = frozenset()
    folder: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Allowed":
        """Of the variables `NODUS_GITHUB_APP`, `NODUS_GIT_HOSTS` and `NODUS_GIT_FOLDER`."""
        hosts = environment["NODUS_GIT_HOSTS"].lower().split(",")
        return cls(
            environment["NODUS_GITHUB_APP"], frozenset(filter(None, hosts)), environment["NODUS_GIT_FOLDER"]
        )


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
    """The files of one commit as an archive (tar, gzip), without history. `entries` and `size` count what is in it."""

    commit: str
    archive: BinaryIO
    entries: int
    size: int


class SourceUnavailable(RetryableError):
    """The repository cannot be read now; it may be later."""


class SourceRefused(TerminalError):
    """There is nothing that could be copied, or nothing that may be. The message names no credential."""


class Repositories(Protocol):
    """Reads of repositories."""

    def snapshot(self, remote: Remote, ref: str | None) -> AbstractContextManager[Snapshot]:
        """The files at a branch, tag or commit, None: the default branch; the archive is gone when the context ends.

        Raises `SourceUnavailable`, `SourceRefused`.
        """
        ...
