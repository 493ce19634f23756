"""Texts of any length: short ones stand in their row, long ones are named by hash (design: over 4 KB to S3)."""

import re
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
    """The longest prefix of `text` that has at most `limit` bytes of UTF-8 and splits no character.

    Half a character (a lone surrogate), which outsiders write and no UTF-8 holds, becomes `?` (FLD-08).
    """
    return text.encode(errors="replace")[:limit].decode(errors="ignore")


_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def neutral(text: str) -> str:
    """The text with everything that would steer a terminal or turn the direction of writing shown as a code."""
    return _HARMFUL.sub(lambda found: _code(ord(found[0])), text)


def _code(number: int) -> str:
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def preview(text: Text, limit: int = PREVIEW_LIMIT) -> str:
    """The first `limit` bytes (at most 4096) without reading the payload store; the text carries its head."""
    return cut(text.text if isinstance(text, Inline) else text.head, limit)
