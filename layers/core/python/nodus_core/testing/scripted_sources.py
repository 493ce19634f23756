"""Repositories without git and archives without a network: what each read finds is said by a test."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from nodus_core.conversations.sources import Remote, Snapshot

T = TypeVar("T")
Question = TypeVar("Question")


@dataclass
class ScriptedRepositories:
    """`Repositories`: every read finds what `commits` says next, the last of them for ever; an exception is raised.

    `asked` counts the reads, each with what it was asked for.
    """

    commits: list[str | Exception] = field(default_factory=lambda: ["a" * 40])
    asked: list[tuple[Remote, str | None]] = field(default_factory=list[tuple[Remote, str | None]])

    @contextmanager
    def snapshot(self, remote: Remote, ref: str | None) -> Iterator[Snapshot]:
        """The next commit; its archive says which."""
        found = _next(self.commits, self.asked, (remote, ref))
        yield Snapshot(io.BytesIO(found.encode()), 60, found, 3)


@dataclass
class ScriptedDownloads:
    """`Downloads`, likewise: every read finds what `archives` says next."""

    archives: list[bytes | Exception] = field(default_factory=lambda: [b"an archive"])
    asked: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])

    @contextmanager
    def snapshot(self, url: str, sha256: str | None) -> Iterator[Snapshot]:
        """The next archive, whatever its hash is to be."""
        found = _next(self.archives, self.asked, (url, sha256))
        yield Snapshot(io.BytesIO(found), len(found))


def _next(script: list[T | Exception], asked: list[Question], question: Question) -> T:
    found = script[min(len(asked), len(script) - 1)]
    asked.append(question)
    if isinstance(found, Exception):
        raise found
    return found
