"""Turns kept bytes into text that is valid UTF-8 and harmless to look at (FLD-08)."""

import codecs
from dataclasses import dataclass

from sandboxd.execcore.spec import Captured
from sandboxd.execcore.visible import visible


@dataclass(frozen=True)
class ShapedOutput:
    """Text for people and models; `head_bytes + tail_bytes + dropped_bytes` is the raw size, exactly."""

    text: str
    head_bytes: int
    tail_bytes: int
    dropped_bytes: int


def shape_output(captured: Captured) -> ShapedOutput:
    """Shows both ends of an output, with one line about what is missing between.

    Bad bytes become U+FFFD. A character that the cut would split is left out whole and counted as dropped.
    """
    if captured.dropped_bytes == 0:
        return ShapedOutput(
            visible_text(captured.head + captured.tail), len(captured.head), len(captured.tail), 0
        )
    head = captured.head[: len(captured.head) - _open_end(captured.head)]
    tail = captured.tail[_open_start(captured.tail) :]
    dropped = captured.raw_bytes - len(head) - len(tail)
    shown_head = visible_text(head)
    newline = "" if not shown_head or shown_head.endswith("\n") else "\n"
    text = f"{shown_head}{newline}… {dropped} bytes left out …\n{visible_text(tail)}"
    return ShapedOutput(text, len(head), len(tail), dropped)


def visible_text(data: bytes) -> str:
    """Decodes bytes; bad ones become U+FFFD, controls other than line feed and tab become `\\xNN`."""
    return visible(data.decode("utf-8", "replace"))


def whole_characters(data: bytes) -> bytes:
    """`data` without a character that only begins at its end; unchanged when nothing else would be left."""
    cut = data[: len(data) - _open_end(data)]
    return cut or data


def _open_end(data: bytes) -> int:
    """Number of bytes at the end that begin a character which is not complete."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-8:])  # a character has at most 4 bytes; stray ones before it do not matter
    return len(decoder.getstate()[0])


def _open_start(data: bytes) -> int:
    """Number of continuation bytes at the start (at most 3) that belong to a character cut off before."""
    count = 0
    while count < min(3, len(data)) and data[count] & 0xC0 == 0x80:
        count += 1
    return count
