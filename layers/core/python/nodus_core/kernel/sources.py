"""What a run has of its source."""

from dataclasses import dataclass

from nodus_core.kernel.text import Stored


@dataclass(frozen=True)
class Copied:
    """What a run has of its source: the archive of its files, which each of its sandboxes gets.

    Of a repository it holds those of one `commit`; `entries` and `size` count what is in it, `size` in bytes. Of an
    archive it is what was fetched (no `commit`), into which nobody has looked: `size` is its own.
    """

    archive: Stored
    size: int
    commit: str | None = None
    entries: int | None = None

    @property
    def version(self) -> str:
        """What is pinned, in a word: the commit, or the SHA-256 of the archive."""
        return self.commit or self.archive.sha256

    @property
    def shown(self) -> str:
        """What a person reads of the copy."""
        if self.commit is None:
            return f"{self.version}: {self.size} bytes, unpacked."
        return f"{self.version}: {self.entries} entries, {self.size} bytes of files, without history."
