"""Replies in the two wire formats."""

import json
from typing import Any

from localstack.scripted.heard import Heard, Wire
from localstack.scripted.play import arguments_text, call_id
from localstack.scripted.script import Call, Reply, Thinking

_BYTES_PER_TOKEN = 4
_CREATED = 1_800_000_000
"""A fixed time: the same request gets the same bytes."""

_STOPS: dict[Wire, dict[str, str]] = {
    "anthropic": {"end": "end_turn", "tools": "tool_use", "cut": "max_tokens", "refused": "refusal"},
    "openai": {"end": "stop", "tools": "tool_calls", "cut": "length", "refused": "content_filter"},
}

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def speak(heard: Heard, reply: Reply, request_bytes: int) -> bytes:
    """The body of a reply. `request_bytes` is the size of the request, for estimated usage."""
    if reply.body is not None:
        return reply.body.encode()
    data = _message(heard, reply) if heard.wire == "anthropic" else _completion(heard, reply)
    usage = count(reply, request_bytes)
    if usage is not None:
        data["usage"] = _usage(heard.wire, *usage)
    # A lone surrogate, which real models write too, has no UTF-8: it goes out as the JSON escape that it came as.
    return json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace")


def count(reply: Reply, request_bytes: int) -> tuple[int, int] | None:
    """Tokens (input, output) that the reply reports; None when it reports none."""
    if isinstance(reply.usage, tuple) or reply.usage is None:
        return reply.usage
    texts = [reply.text, *(thought.text for thought in reply.thinking)]
    texts += [call.name + arguments_text(call) for call in reply.calls]
    output = sum(len(text.encode()) for text in texts) // _BYTES_PER_TOKEN + 1
    return request_bytes // _BYTES_PER_TOKEN + 1, output


def error_body(wire: Wire, status: int, message: str) -> bytes:
    """An error body of this wire format."""
    kind = _ERROR_TYPES.get(status, "api_error")
    if wire == "anthropic":
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


def _stop(wire: Wire, reply: Reply) -> str:
    words = _STOPS[wire]
    stop = reply.stop or ("tools" if reply.calls else "end")
    return words.get(stop, stop)


def _message(heard: Heard, reply: Reply) -> dict[str, Any]:
    content: list[dict[str, Any]] = [_thinking(thought) for thought in reply.thinking]
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for place, call in enumerate(reply.calls):
        use = {"type": "tool_use", "id": call_id(heard, call, place, "toolu_"), "name": call.name}
        content.append({**use, "input": _object(call)})
    return {
        "id": f"msg_{heard.digest[:20]}",
        "type": "message",
        "role": "assistant",
        "model": heard.model,
        "content": content,
        "stop_reason": _stop("anthropic", reply),
        "stop_sequence": None,
    }


def _object(call: Call) -> object:
    """The arguments as this wire has them; a text that is no JSON becomes `{}`, as on the real one."""
    try:
        return json.loads(arguments_text(call))
    except ValueError:
        return {}


def _thinking(thought: Thinking) -> dict[str, Any]:
    if thought.redacted is not None:
        return {"type": "redacted_thinking", "data": thought.redacted}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


def _completion(heard: Heard, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    thoughts = [thought.text for thought in reply.thinking if thought.redacted is None]
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call_id(heard, call, place, "call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call)},
            }
            for place, call in enumerate(reply.calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop("openai", reply)}
    return {
        "id": f"chatcmpl-{heard.digest[:20]}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": heard.model,
        "choices": [choice],
    }


def _usage(wire: Wire, tokens_in: int, tokens_out: int) -> dict[str, Any]:
    if wire == "anthropic":
        caches = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return {"input_tokens": tokens_in, **caches, "output_tokens": tokens_out}
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
