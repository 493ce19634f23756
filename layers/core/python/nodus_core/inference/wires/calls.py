"""The calls of a reply, made whole: own ids, arguments that are objects, and why a call cannot run (FLD-01, FLD-03)."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nodus_core.inference.exchange import AssistantMessage, ModelRequest, ToolCall, Usage
from nodus_core.inference.wires.json_text import BadJson, mend_surrogates, parse

NO_ARGUMENTS = "{}"
REFUSED_TEXT = "The provider stopped this reply for safety reasons; nothing of it was run."

_PORTABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_UNNAMED = "unnamed"
_NONE_RUN = "nothing was run"


@dataclass(frozen=True)
class GivenCall:
    """A call as the provider gave it; None is a part that is missing or has another type."""

    id: str | None
    name: str | None
    arguments: str | None


def make_calls(
    given: Sequence[GivenCall], request: ModelRequest, *, stopped: str | None
) -> tuple[ToolCall, ...]:
    """The calls in their order, each with an id that is unique in the conversation.

    `stopped` says why none of them may run (the reply was cut or refused); None when they may.
    """
    taken = {
        call.id
        for message in request.messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
    }
    calls: list[ToolCall] = []
    for place, call in enumerate(given):
        call_id = call.id if call.id and call.id.strip() and call.id not in taken else None
        call_id = call_id or _own_id(request.id_prefix, place, taken)
        taken.add(call_id)
        name = portable_name(call.name or "")
        arguments, error = _arguments(call.arguments)
        error = stopped or _misnamed(call.name, name) or error
        calls.append(ToolCall(call_id, name, arguments, error))
    return tuple(calls)


def is_cut(given: Sequence[GivenCall], usage: Usage | None, limit: int) -> bool:
    """Whether broken arguments mean that the output limit ended the reply, whatever its finish reason says."""
    if usage is None or usage.output_tokens < limit:
        return False
    return any(_is_broken(call.arguments) for call in given)


def cut_text(limit: int) -> str:
    """What the model is told of each call of a reply that was cut off by the output limit (FLD-03).

    A cut reply without calls needs it as the next user message: the model must have something to answer.
    """
    return (
        f"Your reply was cut off by the output limit of {limit} tokens, so {_NONE_RUN} of it. "
        "Call again with less in one reply, for example a long file in several writes."
    )


def portable_id(call_id: str) -> str:
    """The id itself where every provider accepts it, else one made from it."""
    if _PORTABLE_ID.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:24]


def portable_name(name: str) -> str:
    """A tool name that every provider accepts: the model may have asked for something that is no name at all."""
    return _FOREIGN.sub("_", name)[:_LONGEST_NAME] or _UNNAMED


def _misnamed(given: str | None, name: str) -> str | None:
    """Why a name that had to be changed names no tool; the changed one may be that of a tool, which was not meant."""
    if not given:
        return f"The call names no tool; {_NONE_RUN}."
    return None if given == name else f"There is no tool {name!r} of that spelling; {_NONE_RUN}."


def _own_id(prefix: str, place: int, taken: set[str]) -> str:
    wanted = portable_id(f"{_FOREIGN.sub('_', prefix)}{place}")
    call_id, again = wanted, 1
    while call_id in taken:
        again += 1
        call_id = portable_id(f"{wanted}_{again}")
    return call_id


def _arguments(text: str | None) -> tuple[str, str | None]:
    """The arguments as the text of an object, and why they are none."""
    if text is None or text.strip() in ("", "null"):
        return NO_ARGUMENTS, None
    text = mend_surrogates(text)
    try:
        value = parse(text)
    except BadJson as error:
        return (
            NO_ARGUMENTS,
            f"The arguments are not valid JSON ({error}); {_NONE_RUN}. Send them as a JSON object.",
        )
    if not isinstance(value, dict):
        return NO_ARGUMENTS, f"The arguments must be a JSON object, not {type(value).__name__}; {_NONE_RUN}."
    return text, None


def _is_broken(text: str | None) -> bool:
    if text is None or text.strip() in ("", "null"):
        return False
    try:
        parse(mend_surrogates(text))
    except BadJson:
        return True
    return False
