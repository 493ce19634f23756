"""What is left out of a conversation that outgrows its window: bodies of old results, in strides, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.inference import (
    AssistantMessage,
    Message,
    ModelRequest,
    Target,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    UserMessage,
    Wire,
)
from nodus_core.inference.window import LEFT_OUT, further, is_full, shortened
from nodus_core.inference.wires import encode_request

THINKING = '{"type":"thinking","thinking":"hm","signature":"s/+=="}'


def conversation(sizes: list[list[int]], wire: Wire = "anthropic") -> list[Message]:
    """A prompt, and a message of calls with their results for each list of sizes."""
    messages: list[Message] = [UserMessage("go")]
    for number, results in enumerate(sizes):
        calls = tuple(ToolCall(f"c{number}_{place}", "run", "{}") for place in range(len(results)))
        uses = [{"type": "tool_use", "id": call.id, "name": "run", "input": {}} for call in calls]
        raw = f"[{THINKING},{json.dumps(uses)[1:]}" if uses else f'[{THINKING},{{"type":"text","text":"x"}}]'
        if wire == "openai":
            made = [
                {"id": call.id, "type": "function", "function": {"name": "run", "arguments": "{}"}}
                for call in calls
            ]
            raw = json.dumps({"role": "assistant", "content": None, "tool_calls": made})
        messages.append(AssistantMessage(wire, "m", "f", raw, "", calls, wire))
        told = zip(calls, results, strict=True)
        messages.append(ToolResults(tuple(ToolResult(call.id, "é" * size) for call, size in told)))
    return messages


shapes = st.lists(st.lists(st.integers(0, 900), min_size=1, max_size=3), min_size=1, max_size=12)


@given(shapes, st.sampled_from(["anthropic", "openai"]), st.data())
def test_pairs_ids_and_thinking_stay_whatever_is_left_out(
    sizes: list[list[int]], wire: Wire, data: st.DataObject
) -> None:
    messages = conversation(sizes, wire)
    left_out = data.draw(st.integers(0, len(sizes)))
    after = shortened(messages, left_out)
    assert [type(message) for message in after] == [type(message) for message in messages]
    assert [m for m in after if isinstance(m, AssistantMessage)] == [
        m for m in messages if isinstance(m, AssistantMessage)
    ]
    for old, new in zip(messages, after, strict=True):
        if isinstance(old, ToolResults) and isinstance(new, ToolResults):
            assert [result.call_id for result in old.results] == [result.call_id for result in new.results]
    request = ModelRequest(Target(wire, "m", "f", wire, "m"), "", (*after, UserMessage("on")))
    body = encode_request(request).decode()
    assert body.count(THINKING) == (len(sizes) if wire == "anthropic" else 0)
    assert len(body) <= len(
        encode_request(ModelRequest(request.target, "", (*messages, UserMessage("on")))).decode()
    )


@given(shapes, st.integers(0, 12))
def test_each_stride_takes_at_least_half_and_never_the_latest(sizes: list[list[int]], left_out: int) -> None:
    left_out = min(left_out, len(sizes))
    messages = conversation(sizes)

    def left(number: int) -> int:
        groups = [message for message in messages if isinstance(message, ToolResults)][number:-1]
        texts = [result.text.encode() for group in groups for result in group.results]
        return sum(len(text) for text in texts if len(text) >= 512)

    after = further(messages, left_out)
    assert left_out <= after
    assert after == left_out or after < len(sizes)
    assert left(after) * 2 <= left(left_out)
    assert (after == left_out) == (left(left_out) == 0)


def test_more_of_the_conversation_changes_nothing_of_what_is_left_out() -> None:
    messages = conversation([[900]] * 6)
    longer = conversation([[900]] * 9)
    assert shortened(longer, 3)[: len(messages)] == shortened(messages, 3)
    (first, *_) = [m for m in shortened(longer, 3) if isinstance(m, ToolResults)]
    assert first.results[0].text == LEFT_OUT


@pytest.mark.parametrize(
    ("usage", "window", "full"),
    [
        (None, 1000, False),
        (Usage(900, 1), None, False),
        (Usage(700, 50), 1000, False),
        (Usage(700, 51), 1000, True),
        (Usage(1, 1, cache_read_tokens=900), 1000, True),
    ],
)
def test_a_window_is_full_by_what_the_provider_counted(
    usage: Usage | None, window: int | None, full: bool
) -> None:
    assert is_full(usage, window) is full
