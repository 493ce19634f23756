"""Text of others on a terminal: shown, never obeyed (NOD-008)."""

from __future__ import annotations

import re
import unicodedata

# What a terminal acts on instead of showing it: C0 and C1 controls (escape sequences begin with them), line and
# paragraph separators, the marks that turn the direction of writing, and halves of characters.
_MARKS = "\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_UNSAFE_IN_LINE = re.compile(f"[\x00-\x1f\x7f-\x9f{_MARKS}]")
_UNSAFE_IN_BLOCK = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_MARKS}]")
_UNSAFE_IN_JSON = re.compile(f"[\x7f-\x9f{_MARKS}]")


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    short = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def line(text: object) -> str:
    """``text`` in one line, every control character made visible (``\\x1b``, ``\\n``)."""
    return _UNSAFE_IN_LINE.sub(_visible, str(text))


def block(text: str) -> str:
    """``text`` with its line breaks and tabs, every other control character made visible."""
    return _UNSAFE_IN_BLOCK.sub(_visible, text.replace("\r\n", "\n"))


def json_safe(text: str) -> str:
    """JSON text that means exactly the same and holds nothing that a terminal acts on."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def holds_marks(text: str) -> bool:
    """Whether the text holds characters that only an escaped form shows safely."""
    return _UNSAFE_IN_BLOCK.search(text) is not None


def width(text: str) -> int:
    """Columns that a line takes on a terminal."""
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def cut(text: str, columns: int) -> str:
    """``text`` in at most ``columns`` columns; ``…`` stands for what is left out."""
    if width(text) <= columns:
        return text
    kept, used = "", 1
    for char in text:
        used += _columns(char)
        if used > columns:
            break
        kept += char
    return kept + "…"


class Table:
    """A table whose rows come bit by bit: columns two spaces apart, once as wide always so, as kubectl has them."""

    def __init__(self, header: list[str], *, with_header: bool = True) -> None:
        self._pending = [[line(name) for name in header]] if with_header else []
        self._widths = [0] * len(header)

    def add(self, rows: list[list[str]]) -> str:
        """The lines of more rows, the heading above the first; cells are made safe here."""
        safe = [*self._pending, *([line(cell) for cell in row] for row in rows)]
        self._pending = []
        self._widths = [
            max(most, *(width(row[index]) for row in safe)) if safe else most
            for index, most in enumerate(self._widths)
        ]
        lines: list[str] = []
        for row in safe:
            padded = (cell + " " * (most - width(cell)) for cell, most in zip(row, self._widths, strict=True))
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)


def table(header: list[str], rows: list[list[str]], *, with_header: bool = True) -> str:
    """A whole table."""
    return Table(header, with_header=with_header).add(rows)
