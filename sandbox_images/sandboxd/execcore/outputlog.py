"""What a viewer sees of a command's output: both streams by offset, live, the end of it, and lines of bounded length.

It holds text that is harmless to look at (`visible`), never bytes. Offsets count characters from the beginning, also
of what is no longer held.
"""

import asyncio
import codecs
import contextlib
import json
from collections import deque
from pathlib import Path
from typing import NamedTuple

from sandboxd.execcore.visible import visible

MOST_LINES = 10_000
MOST_CHARACTERS = 2_000_000
LONGEST_LINE = 65_536
"""What is held (NOD-441): the last lines and characters, and the beginning of a longer line."""

PIECE_CHARACTERS = 16_384
MOST_TOLD_BYTES = 150 * 1024
"""Of one reading, and a piece more: it has to fit into the answer to an ask."""

_SLACK = 1.25
"""How far what is held may grow before it is cut: each character is moved rarely."""


class Piece(NamedTuple):
    """Text that one stream has put out: 1 is standard output, 2 standard error."""

    stream: int
    text: str


class Reading(NamedTuple):
    """What was put out behind an offset. `first`: the first offset that is held; `next`: where to go on."""

    pieces: list[Piece]
    first: int
    next: int
    ended: bool


class OutputLog:
    """The log of one command."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self._first = self._next = 0
        self._lines = 0
        self._streams = {number: _Stream() for number in (1, 2)}
        self._ended = False
        self._grown = asyncio.Event()

    def feed(self, stream: int, data: bytes) -> None:
        """Takes the next bytes of a stream."""
        self._add(stream, self._streams[stream].shaped(data))

    def end(self) -> None:
        """Nothing comes any more."""
        for number, stream in self._streams.items():
            self._add(number, stream.rest())
        self._ended = True
        self._grown.set()

    async def grown(self, after: int, within_s: float) -> None:
        """Waits until there is something behind an offset, or the end, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._next <= after and not self._ended:
                    self._grown.clear()
                    await self._grown.wait()

    def read(self, after: int) -> Reading:
        """What stands behind an offset, as much as one answer holds; `ended`: nothing will come behind `next`."""
        self._trim(1.0)
        at, told = self._first, 0
        found: list[Piece] = []
        for piece in self._pieces:
            behind = at + len(piece.text)
            if behind > after and told < MOST_TOLD_BYTES:
                text = piece.text[max(after - at, 0) :]
                found.append(Piece(piece.stream, text))
                told += len(json.dumps(text, ensure_ascii=False).encode())
            elif behind > after:
                break
            at = behind
        return Reading(found, self._first, max(at, self._first), self._ended and at == self._next)

    def to_json(self) -> str:
        """All that is held of an ended log."""
        self._trim(1.0)
        return json.dumps({"first": self._first, "pieces": list(self._pieces)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "OutputLog":
        """What `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        value, log = json.loads(text), cls()
        log._first = log._next = int(value["first"])
        for stream, shown in value["pieces"]:
            log._add(stream, shown)
        log._ended = True
        return log

    def _add(self, stream: int, text: str) -> None:
        if not text:
            return
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.stream == stream and len(last.text) + len(text) <= PIECE_CHARACTERS:
            self._pieces[-1] = Piece(stream, last.text + text)
        else:
            for start in range(0, len(text), PIECE_CHARACTERS):
                self._pieces.append(Piece(stream, text[start : start + PIECE_CHARACTERS]))
        self._next += len(text)
        self._lines += text.count("\n")
        self._trim(_SLACK)
        self._grown.set()

    def _trim(self, slack: float) -> None:
        """Cuts what is held to its bounds, once it has grown beyond them by `slack`."""
        characters, lines = self._next - self._first, self._lines
        if characters <= MOST_CHARACTERS * slack and lines <= MOST_LINES * slack:
            return
        excess = max(characters - MOST_CHARACTERS, 0)
        surplus = max(lines - MOST_LINES, 0)
        while excess > 0 or surplus > 0:
            piece = self._pieces.popleft()
            within = piece.text.count("\n")
            if len(piece.text) <= excess or within < surplus:
                cut = len(piece.text)
            else:
                cut = max(excess, _behind_line(piece.text, surplus))
            left = piece.text[cut:]
            if left:
                self._pieces.appendleft(Piece(piece.stream, left))
            gone = within - left.count("\n")
            self._first += cut
            self._lines -= gone
            excess, surplus = excess - cut, surplus - gone


class _Stream:
    """One stream on its way to text: characters that are cut by a read, and lines that are too long."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._column = 0
        self._left_out = 0

    def shaped(self, data: bytes) -> str:
        return self._shortened(visible(self._decoder.decode(data)))

    def rest(self) -> str:
        """What the end of the stream leaves."""
        return self._shortened(visible(self._decoder.decode(b"", final=True))) + self._mark()

    def _shortened(self, text: str) -> str:
        if self._fits(text):
            end = text.rfind("\n")
            self._column = self._column + len(text) if end < 0 else len(text) - end - 1
            return text
        shown: list[str] = []
        for number, line in enumerate(text.split("\n")):
            if number > 0:
                shown.append(self._mark() + "\n")
                self._column = 0
            kept = line[: max(LONGEST_LINE - self._column, 0)]
            self._left_out += len(line) - len(kept)
            self._column += len(kept)
            shown.append(kept)
        return "".join(shown)

    def _fits(self, text: str) -> bool:
        """Whether certainly no line becomes too long; told without looking at each."""
        if self._left_out or self._column + len(text) > LONGEST_LINE:
            first = text.find("\n", 0, LONGEST_LINE)
            if self._left_out or first < 0 or self._column + first > LONGEST_LINE:
                return False
            half = LONGEST_LINE // 2
            return all(text.find("\n", at, at + half) >= 0 for at in range(first, len(text) - half, half))
        return True

    def _mark(self) -> str:
        """What stands at the end of a shortened line."""
        left_out, self._left_out = self._left_out, 0
        return f" … {left_out} characters left out …" if left_out else ""


def _behind_line(text: str, lines: int) -> int:
    """The position behind so many line feeds."""
    at = 0
    for _ in range(lines):
        at = text.index("\n", at) + 1
    return at


class OutputShelf:
    """The logs of a machine: those at work in memory, those that have ended in files, the newest of them.

    Args:
        folder: nobody but the daemon can enter it.
        most_bytes: of all files together.
    """

    def __init__(self, folder: Path, most_bytes: int = 256 * 1024 * 1024) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._working: dict[str, OutputLog] = {}

    def begin(self, name: str) -> OutputLog:
        """The log of a command that starts; `name` is a file's."""
        return self._working.setdefault(name, OutputLog())

    def end(self, name: str) -> None:
        """The command has ended: its log goes to its file. A full disk costs the log, and nothing else."""
        log = self._working.pop(name)
        log.end()
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            part = self._folder / f"{name}.part"
            part.write_text(log.to_json(), encoding="utf-8")
            part.replace(self._folder / f"{name}.log")
            self._evict()
        except OSError:
            return

    def find(self, name: str) -> OutputLog | None:
        """The log of a command that runs or ran here; None: there is none any more."""
        if name in self._working:
            return self._working[name]
        try:
            return OutputLog.from_json((self._folder / f"{name}.log").read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _evict(self) -> None:
        """Removes the oldest files, until the others fit."""
        found = sorted(
            (path.stat().st_mtime_ns, path.stat().st_size, path) for path in self._folder.iterdir()
        )
        left = sum(size for _, size, _ in found)
        for _, size, path in found:
            if left <= self._most_bytes:
                return
            path.unlink(missing_ok=True)
            left -= size
