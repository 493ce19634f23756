"""The Messages format: what a request's body holds, and what a reply's body says."""

import json
from typing import Any

import pytest
from nodus_core.inference import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    Target,
    ToolCall,
    ToolResult,
    ToolResults,
    ToolSpec,
    Usage,
    UserMessage,
)
from nodus_core.inference.wires import BadJson, decode_reply, encode_request

SONNET = Target("anthropic", "claude-sonnet-5-5", "sonnet", "anthropic", "claude-sonnet-5-5")
OPUS = Target("anthropic", "claude-opus-5-5", "opus", "anthropic", "claude-opus-5-5")
GPT = Target("openai", "gpt", "gpt", "openai", "gpt")
RUN = ToolSpec("run_command", "runs", {"type": "object", "required": ["command"]})
HELLO = UserMessage("hello")

# Odd on purpose: no dump of a parsed value would give these bytes again.
THINKING = r'{"type":"thinking",  "thinking":"","signature":"sg.A+\/9=="}'
REDACTED = r'{"data" : "b64:cGx1bQ==","type":"redacted_thinking"}'
TEXT = '{"type":"text","text":"caf\\u00e9 \U0001f378"}'
USE = '{"type":"tool_use","id":"toolu_1","name":"run_command","input":{"command":"ls","n":1.0,"e":1E+2}}'
CONTENT = f"[{THINKING}, {REDACTED},\n{TEXT}, {USE}]"


def request(
    *messages: Message, target: Target = SONNET, tools: tuple[ToolSpec, ...] = (RUN,)
) -> ModelRequest:
    return ModelRequest(target, "be brief", messages, tools, max_tokens=1024, id_prefix="r2t")


def reply(content: str = CONTENT, stop: str = "tool_use", usage: str = "", **target: Any) -> ModelReply:
    body = f'{{"id":"m","content":{content},"stop_reason":"{stop}"{usage}}}'
    return decode_reply(request(HELLO, **target), body.encode())


def sent(asked: ModelRequest) -> dict[str, Any]:
    return json.loads(encode_request(asked))


def answered(message: AssistantMessage, text: str = "done") -> ToolResults:
    return ToolResults(tuple(ToolResult(call.id, text) for call in message.calls))


@pytest.mark.req("NOD-010", "NOD-013")
def test_a_request_carries_system_prompt_limit_tools_and_messages() -> None:
    body = sent(request(HELLO))
    assert body["system"] == "be brief"
    assert body["max_tokens"] == 1024
    assert body["model"] == "claude-sonnet-5-5"
    assert body["tools"] == [{"name": "run_command", "description": "runs", "input_schema": RUN.schema}]
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]


def test_the_limit_is_never_more_than_the_model_can_give() -> None:
    small = Target("anthropic", "m", "f", "anthropic", "m", max_output=100)
    assert sent(request(HELLO, target=small))["max_tokens"] == 100


def test_a_reply_is_read_with_its_text_calls_and_usage() -> None:
    usage = ',"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":2}'
    told = reply(usage=usage)
    assert told.stop == "tools"
    assert told.message.text == "café \U0001f378"
    assert told.message.calls == (ToolCall("toolu_1", "run_command", '{"command":"ls","n":1.0,"e":1E+2}'),)
    assert told.usage == Usage(10, 5, 3, 2)
    assert told.usage.prompt_tokens == 15


@pytest.mark.req("FLD-02")
def test_blocks_go_back_byte_for_byte_to_the_same_family() -> None:
    message = reply().message
    assert message.raw == CONTENT
    assert CONTENT.encode() in encode_request(request(HELLO, message, answered(message)))


@pytest.mark.req("FLD-02")
def test_the_same_bytes_go_back_after_storage() -> None:
    stored = json.dumps(reply().message.to_record())
    message = AssistantMessage.from_record(json.loads(stored))
    assert CONTENT.encode() in encode_request(request(HELLO, message, answered(message)))


@pytest.mark.req("FLD-02")
@pytest.mark.parametrize(
    "other",
    [
        OPUS,
        Target("anthropic", "claude-sonnet-5-5", "sonnet", "elsewhere", "x"),
        Target("anthropic", "claude-sonnet-5-5", "sonnet", "anthropic", "x", scripted=True),
        GPT,
    ],
)
def test_thinking_is_left_out_whole_for_another_family_provider_or_wire(other: Target) -> None:
    message = reply().message
    body = encode_request(request(HELLO, message, answered(message), target=other))
    for secret in ("sg.A", "b64:", "thinking"):
        assert secret.encode() not in body
    assert "café".encode() in body
    assert b"toolu_1" in body


@pytest.mark.req("FLD-02")
def test_signatures_are_no_answer_text() -> None:
    assert "sg.A" not in reply().message.text
    assert "b64" not in reply().message.text


def test_a_message_of_nothing_but_thinking_is_left_out_whole() -> None:
    message = reply(f"[{THINKING}]", stop="max_tokens").message
    messages = sent(request(HELLO, message, UserMessage("go on")))["messages"]
    assert [part["text"] for part in messages[0]["content"]] == ["hello", "go on"]
    assert len(messages) == 1


def test_blank_text_blocks_are_left_out_and_the_rest_keeps_its_bytes() -> None:
    message = reply(f'[{THINKING}, {{"type":"text","text":" "}}, {USE}]').message
    assert f"[{THINKING},{USE}]".encode() in encode_request(request(HELLO, message, answered(message)))


def test_results_come_first_in_order_of_the_calls_and_share_a_message_with_the_next_text() -> None:
    second = USE.replace("toolu_1", "toolu_2")
    message = reply(f"[{USE},{second}]").message
    results = ToolResults((ToolResult("toolu_2", "two", is_error=True), ToolResult("toolu_1", "")))
    messages = sent(request(HELLO, message, results, UserMessage("and now?")))["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "two", "is_error": True},
        {"type": "text", "text": "and now?"},
    ]


def test_a_call_without_a_result_is_told_as_failed() -> None:
    message = reply().message
    content = sent(request(HELLO, message, UserMessage("stop that")))["messages"][2]["content"]
    assert content[0]["tool_use_id"] == "toolu_1"
    assert content[0]["is_error"] is True


def test_messages_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="answer no call"):
        encode_request(request(HELLO, ToolResults((ToolResult("x", "y"),))))
    with pytest.raises(ValueError, match="must end with"):
        encode_request(request(HELLO, reply().message))


@pytest.mark.req("FLD-03")
@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_a_cut_reply_runs_none_of_its_calls(stop: str) -> None:
    told = reply(f"[{USE}, {USE.replace('toolu_1', 'toolu_2')}]", stop=stop)
    assert told.stop == "cut"
    assert len(told.message.calls) == 2
    assert all("output limit of 1024 tokens" in (call.error or "") for call in told.message.calls)


def test_a_refused_reply_runs_none_of_its_calls() -> None:
    told = reply(stop="refusal")
    assert told.stop == "refused"
    assert told.message.calls[0].error


def test_a_reply_without_usage_has_none_and_odd_content_is_read() -> None:
    assert reply().usage is None
    assert reply("null", stop="end_turn").message.text == ""
    assert reply('"plain"', stop="end_turn").message.text == "plain"
    assert reply('"plain"', stop="end_turn").stop == "end"
    assert reply(usage=',"usage":{"input_tokens":true,"output_tokens":1}').usage is None


def test_a_call_without_id_or_input_gets_its_own() -> None:
    message = reply('[{"type":"tool_use","name":"run_command","input":null}]').message
    assert message.calls[0].id == "r2t0"
    assert message.calls[0].arguments == "{}"
    use = sent(request(HELLO, message, answered(message)))["messages"][1]["content"][0]
    assert use == {"type": "tool_use", "id": "r2t0", "name": "run_command", "input": {}}


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"content":[1]}', "<html>", '{"content":[{"type":"te'])
def test_what_is_no_reply_is_said_to_be_none(body: str) -> None:
    with pytest.raises(BadJson):
        decode_reply(request(HELLO), body.encode())


def test_texts_that_stand_apart_are_shown_apart() -> None:
    told = reply(
        f'[{{"type":"text","text":"a"}},{{"type":"text","text":"b"}},{USE},{{"type":"text","text":"c"}}]'
    )
    assert told.message.text == "ab\n\nc"
