"""The Messages format: content blocks, stored and sent back as the text that the provider gave."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from nodus_core.inference.exchange import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolSpec,
    Usage,
)
from nodus_core.inference.target import Target
from nodus_core.inference.wires.calls import (
    REFUSED_TEXT,
    GivenCall,
    cut_text,
    make_calls,
    portable_name,
)
from nodus_core.inference.wires.json_text import (
    BadJson,
    array_text,
    dump,
    elements,
    members,
    object_text,
    parse,
)
from nodus_core.inference.wires.memo import Growth
from nodus_core.inference.wires.tokens import counts, token_count
from nodus_core.inference.wires.turns import Answered, Replied, Said, among, conversation, turns

_THINKING = ("thinking", "redacted_thinking")
_STOPS: dict[str, StopReason] = {
    "max_tokens": "cut",
    "model_context_window_exceeded": "cut",
    "refusal": "refused",
}


def encode(request: ModelRequest) -> bytes:
    """The request's body. Raises: ValueError for a conversation that is out of order."""
    parts = [("model", dump(request.target.model)), ("max_tokens", dump(request.output_limit))]
    if request.system:
        parts.append(("system", dump(request.system)))
    if request.tools:
        parts.append(("tools", array_text(_tool(tool) for tool in request.tools)))
    parts.append(("messages", array_text(_messages(request))))
    return object_text(parts).encode()


def decode(request: ModelRequest, text: str) -> ModelReply:
    """The reply in a response body.

    Raises: BadJson when the body is not a message of this format.
    """
    body = members(text, lenient=True)
    if "content" not in body:
        raise BadJson("the body has no `content`")
    raw = _array(body["content"])
    blocks = [(parse(block), block) for block in elements(raw)]
    if not all(isinstance(block, dict) for block, _ in blocks):
        raise BadJson("a content block is not an object")
    usage = _usage(body.get("usage"))
    given = [_given(block, text) for block, text in blocks if block.get("type") == "tool_use"]
    stop = _STOPS.get(_word(body.get("stop_reason")), "tools" if given else "end")
    stopped = {"cut": cut_text(request.output_limit), "refused": REFUSED_TEXT}.get(stop)
    message = AssistantMessage(
        wire="anthropic",
        model=request.target.model,
        family=request.target.family,
        raw=raw,
        text=_shown([block for block, _ in blocks]),
        calls=make_calls(given, request, stopped=stopped),
        provider=request.target.provider,
    )
    return ModelReply(message, stop, usage)


@dataclass(frozen=True)
class _Written:
    """Messages of both roles in turn, and the blocks of a user's message that goes on."""

    messages: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()


_WRITTEN: Growth[_Written] = Growth()


def _messages(request: ModelRequest) -> list[str]:
    target = request.target
    written = _WRITTEN.of(conversation(request), among(target), _Written(), partial(_grown, target))
    return [*written.messages, _of_user(written.blocks)]


def _grown(target: Target, before: _Written, messages: tuple[Message, ...]) -> _Written:
    """Roles alternate: results and the user's next text share one message, as the format wants."""
    written, blocks = [*before.messages], [*before.blocks]
    for turn in turns(messages, target):
        match turn:
            case Said(text=text):
                blocks.append(dump({"type": "text", "text": text}))
            case Answered():
                blocks.append(_result(turn))
            case Replied():
                reply = _reply(turn)
                if reply is None:
                    continue
                if blocks:
                    written.append(_of_user(blocks))
                blocks = []
                written.append(reply)
    return _Written(tuple(written), tuple(blocks))


def _of_user(blocks: Iterable[str]) -> str:
    return f'{{"role":"user","content":{array_text(blocks)}}}'


def _reply(turn: Replied) -> str | None:
    content = _content(turn)
    return None if content is None else object_text([("role", '"assistant"'), ("content", content)])


def _content(turn: Replied) -> str | None:
    """The content array of an assistant message; None when nothing is left that may stand alone.

    A message of nothing but thinking is refused by the format, so it is left out whole (FLD-02).
    """
    message = turn.message
    if not turn.native:
        blocks = [dump({"type": "text", "text": message.text})] if message.text.strip() else []
        blocks += [_use(turn.call_id(call.id), call.name, call.arguments) for call in message.calls]
        return array_text(blocks) if blocks else None
    calls = iter(message.calls)
    kept: list[str] = []
    changed, speaks = False, False
    for block in elements(message.raw):
        again = _again(block, calls)
        changed = changed or again != block
        if again is not None:
            kept.append(again)
            speaks = speaks or parse(again).get("type") not in _THINKING
    if not speaks:
        return None
    return array_text(kept) if changed else message.raw


def _again(block: str, calls: Iterator[Any]) -> str | None:
    """A block as it goes back: unchanged where the format accepts it, None where it must be left out."""
    value = parse(block)
    if value.get("type") == "text" and not str(value.get("text") or "").strip():
        return None
    if value.get("type") != "tool_use":
        return block
    call = next(calls)
    if value.get("id") == call.id and value.get("name") == call.name and isinstance(value.get("input"), dict):
        return block
    return _use(call.id, call.name, call.arguments)


def _use(call_id: str, name: str, arguments: str) -> str:
    start = [("type", '"tool_use"'), ("id", dump(call_id)), ("name", dump(portable_name(name)))]
    return object_text([*start, ("input", arguments)])


def _result(turn: Answered) -> str:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": turn.call_id}
    if turn.result.text:
        block["content"] = turn.result.text
    if turn.result.is_error:
        block["is_error"] = True
    return dump(block)


def _tool(tool: ToolSpec) -> str:
    return dump({"name": tool.name, "description": tool.description, "input_schema": tool.schema})


def _array(content: str) -> str:
    """The content as an array: some compatible servers send null or a plain string."""
    value = parse(content)
    if value is None:
        return "[]"
    if isinstance(value, str):
        return array_text([object_text([("type", '"text"'), ("text", content)])])
    return content


def _given(block: dict[str, Any], text: str) -> GivenCall:
    call_id, name = block.get("id"), block.get("name")
    return GivenCall(
        id=call_id if isinstance(call_id, str) else None,
        name=name if isinstance(name, str) else None,
        arguments=members(text).get("input"),
    )


def _shown(blocks: list[dict[str, Any]]) -> str:
    """What people read: text blocks, with a blank line where something stood between two of them."""
    shown, apart = "", False
    for block in blocks:
        text = block.get("text") if block.get("type") == "text" else None
        if not isinstance(text, str):
            apart = bool(shown)
            continue
        shown += ("\n\n" if apart else "") + text
        apart = False
    return shown


def _word(text: str | None) -> str:
    return str(parse(text)) if text is not None else ""


def _usage(text: str | None) -> Usage | None:
    counted = counts(text)
    if counted is None:
        return None
    tokens = [
        token_count(counted.get("input_tokens")),
        token_count(counted.get("output_tokens")),
        token_count(counted.get("cache_read_input_tokens") or 0),
        token_count(counted.get("cache_creation_input_tokens") or 0),
    ]
    whole = [number for number in tokens if number is not None]
    return Usage(*whole) if len(whole) == len(tokens) else None
