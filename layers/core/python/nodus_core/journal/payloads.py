"""The payload store port: texts too long for a row, kept below the run or conversation that owns them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from nodus_core.kernel.text import Stored, Text

PRESIGNED_S = 300
"""Seconds for which a presigned address works."""


@dataclass(frozen=True)
class Scope:
    """Whose payloads: an organization and the uid of what owns them (they are deleted together)."""

    org: str
    id: str

    def __post_init__(self) -> None:
        for part in (self.org, self.id):
            # Part of an object's key: a slash would let one owner's prefix reach into another's.
            if not part or "/" in part or part in (".", ".."):
                raise ValueError(f"{part!r} cannot own payloads: it must be a name without '/'")


class Payloads(Protocol):
    """Texts by content. All calls may be repeated; a stored text never changes."""

    def put(self, scope: Scope, text: str, *, head: bool = True) -> Text:
        """The reference to keep in a row: the text itself up to `INLINE_LIMIT` bytes, else its hash.

        `head`: with the hash go the first `INLINE_LIMIT` bytes, for whoever shows the beginning. A text that is
        one of many in its run goes without, so that it is stored once.

        A long text is durable when this returns, so the row that names it may be written. Raises
        `StoreUnavailable`, and ValueError for a text that is no Unicode (a lone surrogate).
        """
        ...

    def put_file(self, scope: Scope, file: BinaryIO) -> Stored:
        """Stores a file's bytes, from its beginning, under their hash; durable when this returns.

        They are read by whoever gets the address that `presign` gives. Raises `StoreUnavailable`.
        """
        ...

    def get(self, scope: Scope, text: Text) -> str:
        """The whole text. Raises `CorruptRow` when it is gone or is not what its hash says, `StoreUnavailable`."""
        ...

    def get_many(self, scope: Scope, texts: Sequence[Text]) -> list[str]:
        """The whole texts in the same order; fetched side by side. Raises as `get` does."""
        ...

    def with_heads(self, scope: Scope, texts: Sequence[Text]) -> list[Text]:
        """The same texts in the same order, each with its head; those that no row carries are fetched side by side.

        Raises `CorruptRow` for a text that is gone, `StoreUnavailable`.
        """
        ...

    def presign(self, scope: Scope, stored: Stored) -> str:
        """An address from which anybody may read the text for `PRESIGNED_S` seconds (NOD-065)."""
        ...

    def delete_scope(self, scope: Scope) -> None:
        """Deletes everything of the scope, also texts that no row names. Raises `StoreUnavailable`."""
        ...
