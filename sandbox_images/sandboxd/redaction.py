"""Takes the values of secrets out of what commands put out, by value: plain, JSON-escaped or URL-encoded (FLD-14).

Values of fewer than 8 characters are left: they would be found in innocent texts. So is what a command makes of a
value, such as its base64.
"""

import re
from collections.abc import Iterable, Iterator

SHORTEST = 8
"""Characters below which a value, or a line of one, is not looked for."""

INSTEAD = "(secret)"
_MARK = INSTEAD.encode()

_EDGE = 4
"""Bytes of a value that are enough to know it by at the edge of a page."""

_LONGEST_MIXED = 1024
"""Characters of a value up to which spellings may be mixed within it; a longer one is written in one of them throughout."""

_ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\", "/": "/"}
_LONGEST_SPELLING = 12

Needle = list[tuple[bytes, ...]]
"""What is looked for: of each character, how it may be written."""


class Redactor:
    """Knows some values and takes them away.

    Args:
        values: the values of all secrets; of one with several lines, each line counts as a value of its own, too.
    """

    def __init__(self, values: Iterable[str]) -> None:
        parts = {part for value in values for part in _parts(value) if len(part) >= SHORTEST}
        longest_first = sorted(parts, key=lambda part: (-len(part), part))
        self._needles = [needle for part in longest_first for needle in _needles(part)]
        self._pattern = _any_of(b"".join(map(_either, needle)) for needle in self._needles)
        self._first = _any_of(_either(needle[0]) for needle in self._needles)
        self._longest = max(
            (sum(max(map(len, each)) for each in needle) for needle in self._needles), default=0
        )

    def whole(self, data: bytes) -> bytes:
        """The bytes without whole values."""
        return self._pattern.sub(_MARK, data) if self._pattern else data

    def text(self, text: str) -> str:
        """The text without whole values."""
        return self.whole(text.encode()).decode() if self._pattern else text

    def page(self, data: bytes) -> bytes:
        """A part of something longer: also without what ends or begins a value at its edges."""
        if self._pattern is None:
            return data
        known = self.whole(data)
        head, tail = self._ends(known), self._begun(known)
        tail = tail if tail >= _EDGE else 0
        inner = known[head : max(len(known) - tail, head)]
        return (_MARK if head else b"") + inner + (_MARK if tail else b"")

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """What may be shown of the beginning of a stream, and what may begin a value that is not complete."""
        if self._pattern is None:
            return data, b""
        safe, shown, at = len(data) - self._begun(data), list[bytes](), 0
        for match in self._pattern.finditer(data):
            if match.start() >= safe:
                break
            shown += (data[at : match.start()], _MARK)
            at = match.end()
        safe = max(safe, at)
        return b"".join((*shown, data[at:safe])), data[safe:]

    def _begun(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of a value."""
        for start in self._candidates(data):
            if any(_begins(data, start, needle) for needle in self._needles):
                return len(data) - start
        return 0

    def _candidates(self, data: bytes) -> Iterator[int]:
        """Where a value may begin that reaches beyond the end, the earliest first."""
        window = max(len(data) - self._longest + 1, 0)
        edge = max(len(data) - _LONGEST_SPELLING, window)  # from here on a first character may be cut
        if self._first is not None:
            yield from _starts(self._first, data, window, edge)
        yield from range(edge, len(data))

    def _ends(self, data: bytes) -> int:
        """How many bytes at the beginning are the end of a value, written as it is."""
        found = 0
        for needle in self._needles:
            plain = b"".join(each[0] for each in needle)
            sizes = range(min(len(plain) - 1, len(data)), max(_EDGE - 1, found), -1)
            found = max(next((size for size in sizes if data.startswith(plain[-size:])), 0), found)
        return found


class Stream:
    """Redacts what comes in pieces: what may begin a value is held back until it is known."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Takes the next bytes, and returns those that may be shown."""
        shown, self._held = self._redactor.split(self._held + data)
        return shown

    def rest(self) -> bytes:
        """What was held back: nothing comes after it."""
        held, self._held = self._held, b""
        return self._redactor.whole(held)


def _parts(value: str) -> Iterator[str]:
    yield value
    yield from value.splitlines()


def _needles(part: str) -> Iterator[Needle]:
    spelled = [_spellings(char) for char in part]
    if len(part) <= _LONGEST_MIXED:
        yield spelled
        return
    for number in range(3):
        yield [(spellings[number],) for spellings in spelled]
    yield [(spellings[-1] if len(spellings) > _PLAIN else spellings[0],) for spellings in spelled]


_PLAIN = 3
"""Spellings that every character has: as it is, and in full in URLs and in JSON."""


def _spellings(char: str) -> tuple[bytes, ...]:
    """Every way in which bytes, URLs and JSON write a character, the plain one first."""
    plain, units = char.encode(errors="replace"), char.encode("utf-16-be", "replace")
    in_urls = b"".join(b"%%%02x" % byte for byte in plain)
    in_json = b"".join(b"\\u%02x%02x" % (units[at], units[at + 1]) for at in range(0, len(units), 2))
    short = (b"\\" + _ESCAPES[char].encode(),) if char in _ESCAPES else (b"+",) if char == " " else ()
    return plain, in_urls, in_json, *short


def _either(spellings: tuple[bytes, ...]) -> bytes:
    """A pattern for one character; hexadecimal digits may be in either case, and nothing else."""
    return b"(?:%s)" % b"|".join(map(_cased, spellings))


def _cased(spelling: bytes) -> bytes:
    is_hex = len(spelling) > 1 and spelling[:1] in b"%\\"
    return b"(?i:%s)" % re.escape(spelling) if is_hex else re.escape(spelling)


def _any_of(patterns: Iterable[bytes]) -> "re.Pattern[bytes] | None":
    joined = b"|".join(patterns)
    return re.compile(joined) if joined else None


def _starts(pattern: "re.Pattern[bytes]", data: bytes, begin: int, end: int) -> Iterator[int]:
    """Where matches begin from `begin` on and before `end`, those within another one as well."""
    at = begin
    while (match := pattern.search(data, at)) is not None and match.start() < end:
        yield match.start()
        at = match.start() + 1


def _begins(data: bytes, start: int, needle: Needle) -> bool:
    """Whether `data` from `start` to its end is the beginning of a value, and not the whole of it."""
    reached = {start}
    for spellings in needle:
        further: set[int] = set()
        for at in reached:
            for spelling in spellings:
                here = data[at : at + len(spelling)]
                if not _is_beginning(here, spelling):
                    continue
                if len(here) < len(spelling):
                    return True
                further.add(at + len(spelling))
        if not further:
            return False
        reached = further
    return False


def _is_beginning(here: bytes, spelling: bytes) -> bool:
    if len(spelling) > 1 and spelling[:1] in b"%\\":
        return spelling.lower().startswith(here.lower())
    return spelling.startswith(here)


NOTHING = Redactor(())
"""Of a sandbox without secrets."""
