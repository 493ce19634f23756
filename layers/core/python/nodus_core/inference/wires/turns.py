"""A conversation as both wire formats want it: each call answered right behind its message, in order (FLD-05)."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from nodus_core.inference.exchange import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolResult,
    ToolResults,
    UserMessage,
)
from nodus_core.inference.target import Target
from nodus_core.inference.wires.calls import portable_id

_NO_RESULT = "No result of this call was recorded."
_NOTHING_SAID = "(empty message)"


@dataclass(frozen=True)
class Said:
    """A user's text; never blank, since providers refuse blank messages."""

    text: str


@dataclass(frozen=True)
class Replied:
    """An assistant message. `native`: the provider that gets it now made it, so it goes back unchanged."""

    message: AssistantMessage
    native: bool

    def call_id(self, call_id: str) -> str:
        """The id by which the call goes over the wire, in the call and in its result."""
        return call_id if self.native else portable_id(call_id)


@dataclass(frozen=True)
class Answered:
    """The result of one call of the message before, under the id that the call has on the wire."""

    call_id: str
    result: ToolResult


def conversation(request: ModelRequest) -> tuple[Message, ...]:
    """Its messages. Raises: ValueError for a conversation that ends with the model."""
    if not request.messages or isinstance(request.messages[-1], AssistantMessage):
        raise ValueError("a model request must end with a user message or tool results")
    return request.messages


def turns(messages: Iterable[Message], target: Target) -> Iterator[Said | Replied | Answered]:
    """The messages in order; every call has exactly one result.

    Raises: ValueError for results that belong to no call.
    """
    last: Replied | None = None
    for message in messages:
        match message:
            case AssistantMessage():
                yield from _answers(last, ())
                last = Replied(message, is_native(message, target))
                yield last
            case ToolResults(results=results):
                yield from _answers(last, results)
                last = None
            case UserMessage(text=text):
                yield from _answers(last, ())
                last = None
                yield Said(text if text.strip() else _NOTHING_SAID)
    yield from _answers(last, ())


def among(target: Target) -> Hashable:
    """What of a target decides how a conversation is written: for whom its replies are native."""
    return target.wire, target.family, target.provider


def is_native(message: AssistantMessage, target: Target) -> bool:
    """Whether the target may get the message's own blocks: same wire, same family, same provider (FLD-02)."""
    return (
        message.wire == target.wire
        and message.family == target.family
        and message.provider in ("", target.provider)
    )


def _answers(replied: Replied | None, results: tuple[ToolResult, ...]) -> Iterator[Answered]:
    if replied is None and not results:
        return
    calls = replied.message.calls if replied else ()
    known = {result.call_id: result for result in results}
    strangers = known.keys() - {call.id for call in calls}
    if strangers:
        raise ValueError(f"tool results {sorted(strangers)} answer no call of the message before them")
    if replied:
        for call in calls:
            result = known.get(call.id) or ToolResult(call.id, call.error or _NO_RESULT, is_error=True)
            yield Answered(replied.call_id(call.id), result)
