"""The Chat Completions format: one message object, stored and sent back as the text that the provider gave."""

from functools import partial

from nodus_core.inference.exchange import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolSpec,
    Usage,
)
from nodus_core.inference.target import Target
from nodus_core.inference.wires.calls import (
    REFUSED_TEXT,
    GivenCall,
    cut_text,
    is_cut,
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

_Texts = tuple[str, ...]
_WRITTEN: Growth[_Texts] = Growth()
_STOPS: dict[str, StopReason] = {"length": "cut", "content_filter": "refused"}


def encode(request: ModelRequest) -> bytes:
    """The request's body. Raises: ValueError for a conversation that is out of order."""
    parts = [
        ("model", dump(request.target.model)),
        (request.target.limit_field, dump(request.output_limit)),
    ]
    if request.tools:
        parts.append(("tools", array_text(_tool(tool) for tool in request.tools)))
    parts.append(("messages", array_text(_messages(request))))
    return object_text(parts).encode()


def decode(request: ModelRequest, text: str) -> ModelReply:
    """The reply in a response body.

    Raises: BadJson when the body is not a completion of this format.
    """
    body = members(text, lenient=True)
    choices = elements(body.get("choices", "[]"), lenient=True)
    if not choices:
        raise BadJson("the body has no `choices`")
    choice = members(choices[0], lenient=True)
    if parse(choice.get("error", "null")):
        raise BadJson("the choice holds an error in place of a reply")
    raw = choice.get("message", "null")
    message = members(raw)
    usage = _usage(body.get("usage"))
    given = [_given(call) for call in _calls(message)]
    refusal = parse(message.get("refusal", "null"))
    stop = _stop(choice, given, usage, request, refused=bool(refusal))
    stopped = {"cut": cut_text(request.output_limit), "refused": REFUSED_TEXT}.get(stop)
    said = AssistantMessage(
        wire="openai",
        model=request.target.model,
        family=request.target.family,
        raw=raw,
        text=_shown(parse(message.get("content", "null"))) or (refusal if isinstance(refusal, str) else ""),
        calls=make_calls(given, request, stopped=stopped),
        provider=request.target.provider,
    )
    return ModelReply(said, stop, usage)


def _stop(
    choice: dict[str, str],
    given: list[GivenCall],
    usage: Usage | None,
    request: ModelRequest,
    *,
    refused: bool,
) -> StopReason:
    word = parse(choice.get("finish_reason", "null"))
    if is_cut(given, usage, request.output_limit):
        return "cut"
    stop = _STOPS.get(str(word))
    if stop is None and refused:
        return "refused"
    return stop or ("tools" if given else "end")


def _messages(request: ModelRequest) -> _Texts:
    system = (dump({"role": "system", "content": request.system}),) if request.system else ()
    target = request.target
    written = _WRITTEN.of(conversation(request), among(target), (), partial(_grown, target))
    return (*system, *written)


def _grown(target: Target, written: _Texts, messages: tuple[Message, ...]) -> _Texts:
    return (*written, *map(_text, turns(messages, target)))


def _text(turn: Said | Replied | Answered) -> str:
    match turn:
        case Said(text=text):
            return dump({"role": "user", "content": text})
        case Answered():
            return _result(turn)
        case Replied():
            return _reply(turn)


def _result(turn: Answered) -> str:
    # The format has no mark for a failed call, so the text says it.
    text = f"[error] {turn.result.text}" if turn.result.is_error else turn.result.text
    return dump({"role": "tool", "tool_call_id": turn.call_id, "content": text})


def _reply(turn: Replied) -> str:
    return _native(turn.message) if turn.native else _foreign(turn)


def _native(message: AssistantMessage) -> str:
    """The provider's message object, unchanged where the format accepts it back; else only what it refuses
    is replaced: empty ids, arguments that are no JSON, an empty list of calls, a message without content."""
    parts = members(message.raw)
    fixed = dict(parts)
    if message.calls:
        if not _as_given(parts, message.calls):
            fixed["tool_calls"] = array_text(_call(call.id, call) for call in message.calls)
    else:
        fixed.pop("tool_calls", None)
    if not _may_return(parse(parts.get("content", "null")), alone=not message.calls):
        fixed["content"] = dump(message.text)
    if parse(parts.get("role", "null")) != "assistant":
        fixed["role"] = '"assistant"'
    return message.raw if fixed == parts else object_text(fixed.items())


def _may_return(content: object, *, alone: bool) -> bool:
    """Whether the format takes this content back: a text, parts, or none where calls stand beside it."""
    if isinstance(content, list):
        return all(isinstance(part, dict) for part in content)
    return isinstance(content, str) or (content is None and not alone)


def _foreign(turn: Replied) -> str:
    """A message of another provider or family: what was said and called, without its own fields (FLD-02)."""
    message = turn.message
    parts = [("role", '"assistant"'), ("content", dump(message.text or (None if message.calls else "")))]
    if message.calls:
        calls = array_text(_call(turn.call_id(call.id), call) for call in message.calls)
        parts.append(("tool_calls", calls))
    return object_text(parts)


def _as_given(parts: dict[str, str], calls: tuple[ToolCall, ...]) -> bool:
    """Whether the provider's own calls are whole: they say exactly what was made of them."""
    values = [parse(call) for call in _calls(parts)]
    return values == [
        {**value, "id": call.id, "type": "function", "function": {**value["function"], **_function(call)}}
        for value, call in zip(values, calls, strict=True)
        if isinstance(value, dict) and isinstance(value.get("function"), dict)
    ]


def _function(call: ToolCall) -> dict[str, str]:
    return {"name": call.name, "arguments": call.arguments}


def _call(call_id: str, call: ToolCall) -> str:
    function = {"name": portable_name(call.name), "arguments": call.arguments}
    return dump({"id": call_id, "type": "function", "function": function})


def _tool(tool: ToolSpec) -> str:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return dump({"type": "function", "function": function})


def _calls(message: dict[str, str]) -> list[str]:
    text = message.get("tool_calls", "null")
    return [] if parse(text) is None else elements(text)


def _given(text: str) -> GivenCall:
    """A call with whatever parts it has; arguments that are an object count as its text."""
    call = parse(text)
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return GivenCall(None, None, None)
    arguments = function.get("arguments")
    if isinstance(arguments, dict | list):
        arguments = members(members(text)["function"])["arguments"]
    return GivenCall(
        id=call.get("id") if isinstance(call.get("id"), str) else None,
        name=function.get("name") if isinstance(function.get("name"), str) else None,
        arguments=arguments if isinstance(arguments, str) else None,
    )


def _shown(content: object) -> str:
    """The text of a message's content: a string, or a list of parts of which the text parts count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in parts if isinstance(text, str))


def _usage(text: str | None) -> Usage | None:
    counted = counts(text)
    if counted is None:
        return None
    prompt, output = token_count(counted.get("prompt_tokens")), token_count(counted.get("completion_tokens"))
    if prompt is None or output is None:
        return None
    details = counted.get("prompt_tokens_details")
    cached = token_count(details.get("cached_tokens")) if isinstance(details, dict) else None
    cached = min(cached or 0, prompt)  # this format counts the cached ones among the prompt's
    return Usage(prompt - cached, output, cache_read_tokens=cached)
