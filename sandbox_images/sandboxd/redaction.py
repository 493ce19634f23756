"""Takes the values of secrets out of what commands put out, by value: plain, JSON-escaped or URL-encoded (FLD-14).

Values of fewer than 8 characters are left: they would be found in innocent texts. So is what a command makes of a
value, such as its base64.

A value is looked up by its first bytes, so that the time for an output does not depend on how many values there are,
nor on how long they are: a bundle of certificates has a thousand lines, and each of them counts.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

SHORTEST = 8
"""Characters below which a value, or a line of one, is not looked for."""

INSTEAD = "(secret)"
_MARK = INSTEAD.encode()

_EDGE = 4
"""Bytes of a value that are enough to know it by at the edge of a page."""

_HEAD = SHORTEST
"""Bytes by which a value is looked up."""

_UNIT, _FIRST, _SECOND = (
    rb"\\u[0-9a-fA-F]{4}",
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}",
    rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}",
)
_WRITTEN = re.compile(rb'%%[0-9a-fA-F]{2}|%s%s|%s|\\["\\/bfnrt]|\+' % (_FIRST, _SECOND, _UNIT))
"""What may stand for another byte, or several, in JSON or in a URL."""

_NEXT = re.compile(rb"(?=%s)" % _WRITTEN.pattern)
_BACKSLASH = rb"\\(?:u[0-9a-fA-F]{0,3})?"
_CUT = re.compile(rb"(?:%%[0-9a-fA-F]?|%s(?:%s)?|%s)\Z" % (_FIRST, _BACKSLASH, _BACKSLASH))
"""Such a one whose rest is still to come."""


class Redactor:
    """Knows some values and takes them away.

    Args:
        values: the values of all secrets; of one with several lines, each line counts as a value of its own, too.
    """

    def __init__(self, values: Iterable[str]) -> None:
        parts = {part for value in values for part in _parts(value) if len(part) >= SHORTEST}
        self._values = sorted((part.encode(errors="replace") for part in parts), key=len, reverse=True)
        self._by_head: dict[bytes, list[bytes]] = {}
        for value in self._values:
            self._by_head.setdefault(value[:_HEAD], []).append(value)
        self._beginnings = frozenset(head[:size] for head in self._by_head for size in range(_HEAD))

    def whole(self, data: bytes) -> bytes:
        """The bytes without whole values."""
        return _without(data, self._found(data)[0], len(data))[0] if self._values else data

    def text(self, text: str) -> str:
        """The text without whole values."""
        return self.whole(text.encode()).decode() if self._values else text

    def page(self, data: bytes) -> bytes:
        """A part of something longer: also without what ends or begins a value at its edges."""
        if not self._values:
            return data
        known = self.whole(data)
        head, tail = self._ended(known), len(known) - self._found(known)[1]
        tail = tail if tail >= _EDGE else 0
        inner = known[head : max(len(known) - tail, head)]
        return (_MARK if head else b"") + inner + (_MARK if tail else b"")

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """What may be shown of the beginning of a stream, and what may begin a value that is not complete."""
        if not self._values:
            return data, b""
        spans, safe = self._found(data)
        shown, until = _without(data, spans, safe)
        return shown, data[until:]

    def _found(self, data: bytes) -> tuple[list[tuple[int, int]], int]:
        """Where values begin and end, and where the first begins that may go on behind the end of the data."""
        cut = _CUT.search(data)
        edge = len(data) if cut is None else cut.start()
        written = [found.start() for found in _NEXT.finditer(data)]
        spans, open_at = list[tuple[int, int]](), len(data)
        for start in self._candidates(data, edge, written):
            if spans and start < spans[-1][1]:
                continue  # it is taken away already
            values, is_open = self._begun(data, start, edge)
            ends = list[int]()
            for value in values:
                ended, goes_on = _ends(data, start, edge, value, written)
                ends += ended
                is_open = is_open or goes_on
            if ends:
                spans.append((start, max(ends)))
            if is_open:
                open_at = min(open_at, start)
        return spans, open_at

    def _candidates(self, data: bytes, edge: int, written: Sequence[int]) -> list[int]:
        """Where a value may begin: at its first bytes, just before one that is written otherwise, or at the end."""
        heads = self._by_head
        found = {at for at in range(len(data) - _HEAD + 1) if data[at : at + _HEAD] in heads}
        for at in written:
            found.update(range(max(at - _HEAD + 1, 0), at + 1))
        found.update(range(max(edge - _HEAD + 1, 0), len(data)))
        return sorted(found)

    def _begun(self, data: bytes, start: int, edge: int) -> tuple[list[bytes], bool]:
        """Values whose first bytes stand there, and whether the data ends within the first bytes of one."""
        found, is_open, ways = list[bytes](), False, [(b"", start)]
        while ways:
            known, at = ways.pop()
            if len(known) >= _HEAD:
                found += self._by_head.get(known[:_HEAD], ())
            elif known in self._beginnings:
                is_open = is_open or at == len(data) or (at == edge and self._goes_on(known, data[edge:]))
                ways += ((known + meant, after) for meant, after in _readings(data, at))
        return found, is_open

    def _goes_on(self, known: bytes, cut: bytes) -> bool:
        heads = (values[0] for head, values in self._by_head.items() if head.startswith(known))
        return any(_may_stand_for(cut, value[len(known) :]) for value in heads)

    def _ended(self, data: bytes) -> int:
        """How many bytes at the beginning are the end of a value, written as it is."""
        found, first = 0, data[:_EDGE]
        for value in self._values if len(first) == _EDGE else ():
            at = value.find(first, 1)
            while at > 0 and len(value) - at > found:
                if data.startswith(value[at:]):
                    found = len(value) - at
                at = value.find(first, at + 1)
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


def _without(data: bytes, spans: Iterable[tuple[int, int]], until: int) -> tuple[bytes, int]:
    """The data up to `until` without the spans that begin before it, and where the last part of it ends."""
    shown, at = list[bytes](), 0
    for start, end in spans:
        if start >= until:
            break
        shown += (data[at:start], _MARK)
        at = end
    until = max(until, at)
    return b"".join((*shown, data[at:until])), until


def _ends(data: bytes, start: int, edge: int, value: bytes, written: Sequence[int]) -> tuple[list[int], bool]:
    """Where a value that begins at `start` ends, by each way to read it, and whether the data ends before it does.

    `written`: where something stands that may stand for another byte.
    """
    ends, is_open = list[int](), False
    ways, seen = [(start, 0)], set[tuple[int, int]]()
    while ways:
        at, done = ways.pop()
        following = bisect_left(written, at)
        until = written[following] if following < len(written) else len(data)
        plain = min(until - at, max(edge - at, 0), len(value) - done)
        if (at, done) in seen or not data.startswith(value[done : done + plain], at):
            continue
        seen.add((at, done))
        at, done = at + plain, done + plain
        if done == len(value):
            ends.append(at)
            continue
        is_open = is_open or at == len(data) or (at == edge and _may_stand_for(data[edge:], value[done:]))
        readings = (
            (after, done + len(meant))
            for meant, after in _readings(data, at)
            if value.startswith(meant, done)
        )
        ways += readings
    return ends, is_open


def _readings(data: bytes, at: int) -> Iterator[tuple[bytes, int]]:
    """What may stand at a place, and where it goes on: the byte itself, and what JSON and URLs mean by it."""
    if at < len(data):
        yield data[at : at + 1], at + 1
    written = _WRITTEN.match(data, at)
    if written is not None:
        yield _meant(written[0]), written.end()


def _meant(written: bytes) -> bytes:
    match written[:1]:
        case b"+":
            return b" "
        case b"%":
            return bytes.fromhex(written[1:].decode())
        case _:
            return str(json.loads(b'"%s"' % written)).encode(errors="replace")


def _may_stand_for(cut: bytes, value: bytes) -> bool:
    """Whether the beginning of an escape may be that of the value's first character."""
    if cut.startswith(b"%"):
        return (b"%%%02x" % value[0]).startswith(cut.lower())
    char = value[:4].decode(errors="ignore")[:1]
    units = char.encode("utf-16-be")
    in_full = b"".join(b"\\u%02x%02x" % (units[at], units[at + 1]) for at in range(0, len(units), 2))
    return in_full.startswith(cut.lower()) or (cut == b"\\" and char in '"\\/\b\f\n\r\t')


NOTHING = Redactor(())
"""Of a sandbox without secrets."""
