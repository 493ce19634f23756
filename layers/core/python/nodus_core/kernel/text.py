"""Texts of any length: short ones stand in their row, long ones are named by hash (design: over 4 KB to S3)."""

from dataclasses import dataclass
from typing import TypeGuard

INLINE_LIMIT = 4096
"""Bytes of UTF-8 up to which a text stands in its row."""

PREVIEW_LIMIT = 4096
"""Bytes of `status.answer.preview` (NOD-065)."""


@dataclass(frozen=True)
class Inline:
    """A text that stands in its row."""

    text: str


@dataclass(frozen=True)
class Stored:
    """A text in the payload store. `sha256` is its hex digest, `size` its bytes.

    `head` are its first bytes, empty where the row does not carry them (`Payloads.with_heads` fetches them).
    """

    sha256: str
    size: int
    head: str


Text = Inline | Stored


def is_bare(text: Text) -> TypeGuard[Stored]:
    """Whether nothing of the text stands in its row."""
    return isinstance(text, Stored) and not text.head


def inline(text: str) -> Inline | None:
    """The text as it stands in its row; None when it is too long for that. Raises ValueError as `str.encode` does."""
    return Inline(text) if len(text.encode()) <= INLINE_LIMIT else None


def cut(text: str, limit: int) -> str:
    """The longest prefix of `text` that has at most `limit` bytes of UTF-8 and splits no character."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[:limit].decode(errors="ignore")


def preview(text: Text, limit: int = PREVIEW_LIMIT) -> str:
    """The first `limit` bytes (at most 4096) without reading the payload store; the text carries its head."""
    return cut(text.text if isinstance(text, Inline) else text.head, limit)
