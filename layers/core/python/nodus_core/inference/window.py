"""A conversation that outgrows its model's window: the oldest tool results are left out, in big strides. Pure.

Only bodies of results go: every call keeps its result and every message its blocks, so that pairs, ids and thinking
stay as the provider gave them. The number of those left out stands in the journal, so that a round that is sealed
again gets the same request; it grows rarely, so that the provider's cache of the conversation's beginning mostly holds.
"""

from collections.abc import Sequence
from dataclasses import replace

from nodus_core.inference.exchange import Message, ToolResult, ToolResults, Usage

FULL = 0.75
"""Part of the window that a call may fill before results are left out: the next reply and results need room."""

LEFT_OUT = "[This result was left out to make room in the conversation. Run the tool again if you need it.]"

_LEAST = 512
"""Bytes of a result that are worth leaving out."""


def is_full(usage: Usage | None, window: int | None) -> bool:
    """Whether a call has filled so much of the window that the next one had better be shorter."""
    if usage is None or window is None:
        return False
    return usage.prompt_tokens + usage.output_tokens > window * FULL


def further(messages: Sequence[Message], left_out: int) -> int:
    """How many messages of results to leave out next: at least half of what may go, in bytes.

    The same number when nothing may go any more: the latest results always stay.
    """
    groups = [message for message in messages if isinstance(message, ToolResults)]
    sizes = [_bytes(group) for group in groups[left_out:-1]]
    gone = 0
    for place, size in enumerate(sizes, start=1):
        gone += size
        if gone and gone * 2 >= sum(sizes):
            return left_out + place
    return left_out


def shortened(messages: Sequence[Message], left_out: int) -> tuple[Message, ...]:
    """The messages, the first `left_out` of those with results without the bodies of these."""
    if left_out == 0:
        return tuple(messages)
    shown: list[Message] = []
    for message in messages:
        if left_out > 0 and isinstance(message, ToolResults):
            left_out -= 1
            shown.append(ToolResults(tuple(_without_body(result) for result in message.results)))
        else:
            shown.append(message)
    return tuple(shown)


def words_in_place(messages: Sequence[Message]) -> int:
    """Bytes of the words that stand in the place of results."""
    groups = [message.results for message in messages if isinstance(message, ToolResults)]
    return sum(len(LEFT_OUT) for group in groups for result in group if result.text == LEFT_OUT)


def _bytes(group: ToolResults) -> int:
    return sum(len(result.text.encode()) for result in group.results if _may_go(result))


def _may_go(result: ToolResult) -> bool:
    return len(result.text.encode()) >= _LEAST


def _without_body(result: ToolResult) -> ToolResult:
    return replace(result, text=LEFT_OUT) if _may_go(result) else result
