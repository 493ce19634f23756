"""Repositories without git: what each read finds is said by a test."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from nodus_core.conversations.repositories import Remote, Snapshot


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
        found = self.commits[min(len(self.asked), len(self.commits) - 1)]
        self.asked.append((remote, ref))
        if isinstance(found, Exception):
            raise found
        yield Snapshot(found, io.BytesIO(found.encode()), entries=3, size=60)
