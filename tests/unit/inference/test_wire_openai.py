"""The Chat Completions format: what a request's body holds, and what a reply's body says."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.inference import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    Target,
    ToolResult,
    ToolResults,
    ToolSpec,
    Usage,
    UserMessage,
)
from nodus_core.inference.wires import BadJson, decode_reply, encode_request

GPT = Target("openai", "gpt", "gpt", "openai", "gpt")
SONNET = Target("anthropic", "claude-sonnet-5-5", "sonnet", "anthropic", "claude-sonnet-5-5")
NOW = ToolSpec("now", "tells the time", {"type": "object"})
RUN = ToolSpec("run_command", "runs", {"type": "object", "required": ["command"]})
HELLO = UserMessage("hello")


def request(*messages: Message, target: Target = GPT) -> ModelRequest:
    return ModelRequest(target, "be brief", messages, (NOW, RUN), max_tokens=50, id_prefix="r1t")


def reply(
    message: str, finish: str = '"tool_calls"', usage: str = "", asked: ModelRequest | None = None
) -> ModelReply:
    body = f'{{"choices":[{{"message":{message},"finish_reason":{finish}}}]{usage}}}'
    return decode_reply(asked or request(HELLO), body.encode())


def call(arguments: str | None = "{}", call_id: str | None = "c1", name: str = "now") -> dict[str, Any]:
    function: dict[str, Any] = {"name": name}
    if arguments is not None:
        function["arguments"] = arguments
    made: dict[str, Any] = {"type": "function", "function": function}
    return made if call_id is None else {"id": call_id, **made}


def calling(*calls: dict[str, Any], **more: Any) -> str:
    return json.dumps({"role": "assistant", "content": None, "tool_calls": list(calls), **more})


def used(output_tokens: int) -> str:
    return f',"usage":{{"prompt_tokens":7,"completion_tokens":{output_tokens}}}'


def sent(asked: ModelRequest) -> list[dict[str, Any]]:
    return json.loads(encode_request(asked))["messages"]


def answered(message: AssistantMessage) -> ToolResults:
    return ToolResults(tuple(ToolResult(made.id, "done") for made in message.calls))


@pytest.mark.req("NOD-010", "NOD-013")
def test_a_request_carries_system_prompt_limit_tools_and_messages() -> None:
    body = json.loads(encode_request(request(HELLO)))
    assert body["max_tokens"] == 50
    assert body["tools"][0]["function"] == {
        "name": "now",
        "description": "tells the time",
        "parameters": NOW.schema,
    }
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
    ]


def test_the_output_limit_goes_by_the_name_that_the_model_knows() -> None:
    newer = Target("openai", "o", "o", "openai", "o", limit_field="max_completion_tokens")
    body = json.loads(encode_request(request(HELLO, target=newer)))
    assert body["max_completion_tokens"] == 50
    assert "max_tokens" not in body


@pytest.mark.req("FLD-01")
def test_two_calls_with_empty_ids_and_blank_arguments_each_get_their_own() -> None:
    message = reply(calling(call("", ""), call("  ", ""))).message
    assert [made.id for made in message.calls] == ["r1t0", "r1t1"]
    assert [made.arguments for made in message.calls] == ["{}", "{}"]
    assert [made.error for made in message.calls] == [None, None]
    assistant, first, second = sent(request(HELLO, message, answered(message)))[2:]
    assert [made["id"] for made in assistant["tool_calls"]] == ["r1t0", "r1t1"]
    assert [made["function"]["arguments"] for made in assistant["tool_calls"]] == ["{}", "{}"]
    assert [first["tool_call_id"], second["tool_call_id"]] == ["r1t0", "r1t1"]


@pytest.mark.req("FLD-01")
@pytest.mark.parametrize("arguments", ["", " \n", "null", None])
def test_missing_arguments_mean_none(arguments: str | None) -> None:
    assert reply(calling(call(arguments))).message.calls[0].arguments == "{}"


@pytest.mark.req("FLD-01")
def test_a_missing_type_and_arguments_given_as_an_object_are_mended_when_sent_back() -> None:
    given = {"id": "c", "function": {"name": "run_command", "arguments": {"command": "ls"}}}
    message = reply(calling(given)).message
    assert message.calls[0].arguments == '{"command": "ls"}'
    again = sent(request(HELLO, message, answered(message)))[2]["tool_calls"][0]
    assert again["type"] == "function"
    assert again["function"]["arguments"] == '{"command": "ls"}'


@pytest.mark.req("FLD-01")
def test_an_id_that_was_used_before_is_replaced_the_same_way_every_time() -> None:
    first = reply(calling(call(call_id="call_0"))).message
    asked = ModelRequest(GPT, "", (HELLO, first, answered(first)), (NOW,), 50, id_prefix="r2t")
    seconds = [reply(calling(call(call_id="call_0")), asked=asked).message for _ in range(2)]
    assert seconds[0].calls[0].id == seconds[1].calls[0].id == "r2t0"
    history = (HELLO, first, answered(first), seconds[0], answered(seconds[0]))
    ids = [m["tool_call_id"] for m in sent(request(*history)) if m["role"] == "tool"]
    assert ids == ["call_0", "r2t0"]


@pytest.mark.req("FLD-01")
def test_a_missing_usage_is_none_and_stop_with_calls_means_calls() -> None:
    told = reply(calling(call()), finish='"stop"')
    assert told.stop == "tools"
    assert told.usage is None
    assert reply(calling(call()), finish="null").stop == "tools"


@pytest.mark.req("FLD-01")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (call('{"command": ', name="run_command"), "not valid JSON"),
        (call('["ls"]', name="run_command"), "must be a JSON object"),
        (call("{}", name="run command"), "There is no tool 'run_command'"),
        (call("{}", name="\u001b[31m" + "r" * 100_000), "There is no tool '__31mrrr"),
        (call("{}", name=""), "names no tool"),
        ({"id": "c"}, "names no tool"),
    ],
)
def test_a_call_that_cannot_run_is_an_error_for_the_model(given: dict[str, Any], says: str) -> None:
    message = reply(calling(given, call(call_id="fine"))).message
    assert says in (message.calls[0].error or "")
    assert message.calls[1].error is None
    for made in sent(request(HELLO, message, answered(message)))[2]["tool_calls"]:
        assert isinstance(json.loads(made["function"]["arguments"]), dict)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", made["function"]["name"])
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", made.name) for made in message.calls)


@pytest.mark.req("FLD-03")
@pytest.mark.parametrize(
    ("arguments", "finish", "output_tokens"),
    [
        ('{"path": "a"}', '"length"', 50),
        ('{"command": "echo', '"length"', 50),
        ('{"command": "echo', '"tool_calls"', 50),
    ],
)
def test_a_cut_reply_runs_none_of_its_calls(arguments: str, finish: str, output_tokens: int) -> None:
    whole = call('{"command": "touch x"}', "c1", "run_command")
    told = reply(calling(whole, call(arguments, "c2", "run_command")), finish, used(output_tokens))
    assert told.stop == "cut"
    assert told.usage == Usage(7, 50)
    assert all("cut off by the output limit of 50" in (made.error or "") for made in told.message.calls)
    assert json.loads(told.message.calls[1].arguments) is not None


def test_broken_arguments_below_the_limit_are_that_calls_own_error() -> None:
    told = reply(calling(call('{"command": "echo', "c", "run_command")), usage=used(49))
    assert told.stop == "tools"
    assert "not valid JSON" in (told.message.calls[0].error or "")


def test_a_whole_message_goes_back_byte_for_byte_to_the_same_family_only() -> None:
    raw = (
        '{"role":"assistant",  "content":null,"reasoning_content":"hm \\u00e9","tool_calls":[ {"type":"function",'
        '"id":"c1","function":{"name":"now","arguments":"{ \\"x\\": 1.0 }"}} ]}'
    )
    message = reply(raw).message
    history = (HELLO, message, answered(message))
    assert raw.encode() in encode_request(request(*history))
    other = encode_request(request(*history, target=Target("openai", "other", "other", "openai", "other")))
    assert b"reasoning_content" not in other
    assert b'"tool_call_id":"c1"' in other


@pytest.mark.parametrize("empty", ["[]", "null"])
def test_an_empty_list_of_calls_and_empty_content_are_not_sent_back(empty: str) -> None:
    message = reply(f'{{"role":"assistant","content":null,"tool_calls":{empty}}}', '"stop"').message
    assert sent(request(HELLO, message, UserMessage("?")))[2] == {"role": "assistant", "content": ""}


def test_refusals_and_filters_stop_the_reply_and_say_so() -> None:
    refusal = reply('{"role":"assistant","content":null,"refusal":"No."}', '"stop"')
    assert (refusal.stop, refusal.message.text) == ("refused", "No.")
    assert reply(calling(call()), '"content_filter"').message.calls[0].error


def test_cached_tokens_are_told_apart() -> None:
    usage = ',"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}'
    assert reply('{"content":"hi"}', '"stop"', usage).usage == Usage(6, 2, cache_read_tokens=4)


def test_a_failed_result_is_marked_for_the_model() -> None:
    message = reply(calling(call())).message
    results = ToolResults((ToolResult("c1", "no such file", is_error=True),))
    assert sent(request(HELLO, message, results))[3]["content"] == "[error] no such file"


def test_content_in_parts_is_read() -> None:
    parts = '{"content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"a"},{"type":"text","text":"b"}]}'
    assert reply(parts, '"stop"').message.text == "ab"


def test_a_conversation_moves_to_the_other_wire_with_ids_that_it_accepts() -> None:
    odd = call('{"command": "ls \\ud83c"}', "functions.run_command:0", "run_command")
    message = reply(calling(odd, content="one")).message
    body = json.loads(encode_request(request(HELLO, message, answered(message), target=SONNET)))
    text, use = body["messages"][1]["content"]
    (result,) = body["messages"][2]["content"]
    assert text == {"type": "text", "text": "one"}
    assert use["input"] == {"command": "ls \ufffd"}
    assert use["id"] == result["tool_use_id"]
    assert use["id"].replace("_", "").isalnum()


@pytest.mark.parametrize(
    "body",
    ["{}", '{"choices":[]}', '{"choices":[{}]}', '{"choices":[{"message":null}]}', "[]", '{"choices":"x"}'],
)
def test_what_is_no_reply_is_said_to_be_none(body: str) -> None:
    with pytest.raises(BadJson):
        decode_reply(request(HELLO), body.encode())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
odd_calls = st.fixed_dictionaries(
    {},
    optional={
        "id": json_values,
        "function": json_values | st.dictionaries(st.sampled_from(["name", "arguments"]), json_values),
    },
)


@given(st.lists(odd_calls | json_values, max_size=4))
@pytest.mark.req("FLD-01")
def test_whatever_a_provider_sends_as_calls_can_be_answered(calls: list[Any]) -> None:
    message = reply(json.dumps({"content": None, "tool_calls": calls})).message
    ids = [made.id for made in message.calls]
    assert len(set(ids)) == len(ids) == len(calls)
    again = sent(request(HELLO, message, answered(message) if calls else UserMessage("?")))
    if calls:
        assert [made["id"] for made in again[2]["tool_calls"]] == ids
    for made in message.calls:
        assert isinstance(json.loads(made.arguments), dict)
