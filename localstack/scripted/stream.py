"""A finished reply told as server-sent events, for clients that ask with `stream: true`."""

import json
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from localstack.scripted.heard import Wire


async def speak_stream(request: web.Request, wire: Wire, body: bytes) -> web.StreamResponse:
    """Answers with the events of the reply whose whole body is given."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    data = json.loads(body)
    if wire == "anthropic":
        for event in _message_events(data):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    else:
        for chunk in _chunks(data):
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def _message_events(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = data.get("usage", {"input_tokens": 0, "output_tokens": 0})
    yield {"type": "message_start", "message": {**data, "content": [], "stop_reason": None, "usage": usage}}
    for index, block in enumerate(data["content"]):
        start, deltas = _block(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": data["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [thought, signature]
        case "tool_use":
            arguments = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            return {**block, "input": {}}, [arguments]
        case _:
            return block, []


def _chunks(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    choice = data["choices"][0]
    delta = dict(choice["message"])
    delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(delta.get("tool_calls", ()))]
    common = {**data, "object": "chat.completion.chunk"}
    common.pop("usage", None)
    yield {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if "usage" in data:
        yield {**common, "choices": [], "usage": data["usage"]}
