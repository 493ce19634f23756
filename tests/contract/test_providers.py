"""The model port over real HTTP: both wire formats, against the scripted server and against prepared bytes."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from model_servers import REPOSITORY, Prepared, Scripted, prepared_server, scripted_server
from nodus_core.inference import (
    AssistantMessage,
    Message,
    ModelOutcomeUnknown,
    ModelRefusedRequest,
    ModelReply,
    ModelRequest,
    ModelUnavailable,
    Target,
    ToolResult,
    ToolResults,
    ToolSpec,
    Usage,
    UserMessage,
    Wire,
    message_from_record,
)
from nodus_core.inference.catalogue import packaged_catalogue
from nodus_core.inference.errors import LONGEST_RETRY_AFTER_S
from nodus_core.inference.routing import Choice, routed, routing_request
from nodus_core.inference.wires import encode_request
from nodus_core.providers import Credential, Credentials, HttpModels, Timeouts
from nodus_core.resources.families import FAMILIES

RUN = ToolSpec("run_command", "Runs a command.", {"type": "object", "required": ["command"]})
PYTHON = "Use the shell to print the Python version, then tell me which one it is."
WIRES: tuple[Wire, ...] = ("anthropic", "openai")


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("scripted"), REPOSITORY / "examples" / "scripts") as server:
        yield server


@pytest.fixture(scope="module")
def models(scripted: Scripted) -> Iterator[HttpModels]:
    port = HttpModels(credentials(scripted.url, scripted.key))
    yield port
    port.close()


@pytest.fixture
def prepared() -> Iterator[Prepared]:
    with prepared_server() as server:
        yield server


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


def credentials(url: str, key: str = "test-key") -> Credentials:
    return Credentials({name: Credential(key, url, scripted=True) for name in WIRES})


def ask(wire: Wire, *messages: Message, family: str = "sonnet", max_tokens: int = 1024) -> ModelRequest:
    target = Target(wire, f"{family}-1", family, wire, f"{family}-1", scripted=True)
    return ModelRequest(target, "You are careful.", messages, (RUN,), max_tokens, id_prefix="r1t")


def answered(reply: ModelReply, *texts: str) -> ToolResults:
    return ToolResults(
        tuple(ToolResult(call.id, text) for call, text in zip(reply.message.calls, texts, strict=True))
    )


@pytest.mark.req("NOD-010", "NOD-013")
def test_the_first_run_of_the_documentation(scripted: Scripted, models: HttpModels, wire: Wire) -> None:
    scripted.play("scripts: []")
    first = models.call(ask(wire, UserMessage(PYTHON)))
    assert first.stop == "tools"
    assert json.loads(first.message.calls[0].arguments) == {"command": "python3 --version"}
    history = (UserMessage(PYTHON), first.message, answered(first, "Python 3.99.1\n"))
    second = models.call(ask(wire, *history))
    assert second.stop == "end"
    assert second.message.text == "The Python version is 3.99.1."
    assert second.usage is not None
    assert second.usage.input_tokens > 0
    assert second.usage.output_tokens > 0
    body = scripted.bodies()[-1]
    assert first.message.raw in body
    assert "You are careful." in body
    assert '"max_tokens":1024' in body


def test_a_prompt_without_a_script_gets_an_honest_answer(
    scripted: Scripted, models: HttpModels, wire: Wire
) -> None:
    text = models.call(ask(wire, UserMessage("Compose a symphony"))).message.text
    assert "scripted model" in text
    assert str(scripted.scripts) in text
    assert ("ANTHROPIC_API_KEY" if wire == "anthropic" else "OPENAI_API_KEY") in text


@pytest.mark.req("NOD-056")
def test_the_default_router_and_a_script_s_route(scripted: Scripted, models: HttpModels) -> None:
    scripted.play("{match: weather, route: fable, replies: [{text: sunny}]}")
    router = packaged_catalogue({"anthropic"}).router()

    def route(prompt: str) -> Choice:
        return routed(models.call(routing_request(prompt, FAMILIES, router, "t1r")), FAMILIES)

    assert route("How is the weather?") == Choice("fable", "jev")
    assert route("Say something") == Choice("haiku", "jev")
    assert route("Research and design a database, and prove it right. " + "x" * 5000) == Choice(
        "fable", "jev"
    )


def test_parallel_calls_and_their_results_keep_their_order(
    scripted: Scripted, models: HttpModels, wire: Wire
) -> None:
    scripted.play("""
        match: ^both
        replies:
          - text: Both at once.
            calls: [{name: run_command, arguments: {command: a}}, {name: run_command, arguments: {command: b}}]
          - text: "{{ results[0].text }} then {{ results[1].text | trim }} of {{ results[1].name }}"
    """)
    first = models.call(ask(wire, UserMessage("both")))
    ids = [call.id for call in first.message.calls]
    assert len(set(ids)) == 2
    swapped = ToolResults((ToolResult(ids[1], " two "), ToolResult(ids[0], "one")))
    second = models.call(ask(wire, UserMessage("both"), first.message, swapped))
    assert second.message.text == "one then two of run_command"


def test_the_same_request_gets_the_same_reply(models: HttpModels, wire: Wire) -> None:
    request = ask(wire, UserMessage(PYTHON))
    assert models.call(request) == models.call(request)


def test_many_threads_call_at_once(scripted: Scripted, models: HttpModels, wire: Wire) -> None:
    scripted.play('{match: "^n([0-9]+)$", replies: [{text: "{{ match[1] }}", fault: {delay_s: 0.2}}]}')
    with ThreadPoolExecutor(8) as pool:
        replies = pool.map(lambda n: models.call(ask(wire, UserMessage(f"n{n}"))), range(8))
    assert [reply.message.text for reply in replies] == [str(n) for n in range(8)]
    assert scripted.get("/_counters")["mostOpen"] > 1


def failing(scripted: Scripted, fault: str, key: str | None = None, **timeouts: float) -> HttpModels:
    scripted.play(f"{{match: fail, replies: [{{text: 'a reply of some length', fault: {fault}}}]}}")
    return HttpModels(credentials(scripted.url, key or scripted.key), Timeouts(**timeouts))


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        ("{status: 429, retry_after: 7}", 7, 7),
        ("{status: 429, retry_after: 0.5}", 0.5, 0.5),
        ("{status: 503, retry_after: date+9}", 7.9, 9.1),
        ("{status: 529, retry_after: -3}", 0, 0),
        ("{status: 429, retry_after: 1e99}", LONGEST_RETRY_AFTER_S, LONGEST_RETRY_AFTER_S),
    ],
)
def test_a_busy_provider_is_unavailable_for_the_time_it_names(
    scripted: Scripted, wire: Wire, fault: str, least: float, most: float
) -> None:
    port = failing(scripted, fault)
    with pytest.raises(ModelUnavailable) as raised:
        port.call(ask(wire, UserMessage("fail")))
    port.close()
    assert raised.value.retry_after is not None
    assert least <= raised.value.retry_after <= most
    assert scripted.get("/_counters")["requests"] == 1


@pytest.mark.parametrize("fault", ["{status: 429}", "{status: 500}", "{status: 529, retry_after: soon}"])
def test_a_busy_provider_may_name_no_time(scripted: Scripted, wire: Wire, fault: str) -> None:
    port = failing(scripted, fault)
    with pytest.raises(ModelUnavailable) as raised:
        port.call(ask(wire, UserMessage("fail")))
    port.close()
    assert raised.value.retry_after is None


@pytest.mark.parametrize("status", [400, 402, 403, 404, 413, 422])
def test_a_refusal_is_told_once_with_the_provider_s_reason(
    scripted: Scripted, wire: Wire, status: int
) -> None:
    port = failing(scripted, f"{{status: {status}}}")
    with pytest.raises(ModelRefusedRequest, match=f"scripted fault: HTTP {status}") as raised:
        port.call(ask(wire, UserMessage("fail")))
    port.close()
    assert raised.value.status == status
    assert scripted.get("/_counters")["requests"] == 1


def test_a_used_up_quota_is_a_refusal(scripted: Scripted) -> None:
    body = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    port = failing(scripted, f"{{status: 429, body: {json.dumps(body)}}}")
    with pytest.raises(ModelRefusedRequest, match="quota"):
        port.call(ask("openai", UserMessage("fail")))
    port.close()


def test_a_redirect_is_not_followed(scripted: Scripted, wire: Wire) -> None:
    port = failing(scripted, "{location: 'http://127.0.0.1:9/elsewhere'}")
    with pytest.raises(ModelRefusedRequest, match="redirects are not followed") as raised:
        port.call(ask(wire, UserMessage("fail")))
    port.close()
    assert raised.value.status == 302


def test_a_wrong_key_is_refused_and_shown_nowhere(scripted: Scripted, wire: Wire) -> None:
    port = failing(scripted, "{status: 200}", key="sk-very-secret-key")
    with pytest.raises(ModelRefusedRequest) as raised:
        port.call(ask(wire, UserMessage("fail")))
    port.close()
    assert raised.value.status == 401
    assert "secret-key" not in str(raised.value)


@pytest.mark.parametrize(
    "fault", ["{drop: true}", "{cut_after_bytes: 0}", "{cut_after_bytes: 40}", "{status: 504}"]
)
def test_a_call_that_was_sent_and_lost_has_an_unknown_outcome(
    scripted: Scripted, wire: Wire, fault: str
) -> None:
    port = failing(scripted, fault)
    with pytest.raises(ModelOutcomeUnknown):
        port.call(ask(wire, UserMessage("fail")))
    port.close()
    assert scripted.get("/_counters")["requests"] == 1


@pytest.mark.parametrize("fault", ["{hang: true}", "{bytes_per_s: 10}"])
def test_a_reply_that_does_not_come_in_time_has_an_unknown_outcome(
    scripted: Scripted, wire: Wire, fault: str
) -> None:
    port = failing(scripted, fault, reply=0.6)
    with pytest.raises(ModelOutcomeUnknown):
        port.call(ask(wire, UserMessage("fail")))
    port.close()


def test_slow_bytes_in_time_are_a_reply(scripted: Scripted, wire: Wire) -> None:
    port = failing(scripted, "{bytes_per_s: 4000}")
    assert port.call(ask(wire, UserMessage("fail"))).message.text == "a reply of some length"
    port.close()


def test_a_fault_that_happens_twice_is_over_at_the_third_try(scripted: Scripted, wire: Wire) -> None:
    port = failing(scripted, "[{status: 429, times: 1}, {status: 503, times: 1}]")
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            port.call(ask(wire, UserMessage("fail")))
    assert port.call(ask(wire, UserMessage("fail"))).stop == "end"
    port.close()


def test_a_provider_that_cannot_be_reached_is_unavailable(wire: Wire) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    port = HttpModels(credentials(url))
    with pytest.raises(ModelUnavailable, match="could not be reached"):
        port.call(ask(wire, UserMessage("x")))
    port.close()


def test_an_endpoint_without_a_key_is_refused() -> None:
    with pytest.raises(ModelRefusedRequest, match="no key for endpoint 'anthropic'"):
        HttpModels(Credentials({})).call(ask("anthropic", UserMessage("x")))


def test_a_proxy_in_the_environment_is_not_asked_for_loopback(
    scripted: Scripted, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    port = HttpModels(credentials(scripted.url, scripted.key))
    assert port.call(ask(wire, UserMessage("Say hi"))).message.text == "Hi!"
    port.close()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<html>Welcome</html>", ModelRefusedRequest),
        (b'{"choices": [{"mess', ModelOutcomeUnknown),
        (b'{"error": {"code": 429, "message": "busy"}}', ModelUnavailable),
        (b'{"error": {"message": "no such model"}}', ModelRefusedRequest),
    ],
)
def test_a_success_that_is_no_reply_is_judged_by_what_it_says(
    prepared: Prepared, wire: Wire, body: bytes, error: type[Exception]
) -> None:
    prepared.replies = [body]
    port = HttpModels(credentials(prepared.url))
    with pytest.raises(error):
        port.call(ask(wire, UserMessage("x")))
    port.close()


@pytest.mark.req("FLD-01")
def test_calls_with_missing_parts_run_once_each_and_go_back_whole(prepared: Prepared) -> None:
    calls = [{"id": "", "function": {"name": "now", "arguments": text}} for text in ("", "  ")]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    prepared.replies = [
        json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode(),
        b'{"choices":[{"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}',
    ]
    port = HttpModels(credentials(prepared.url))
    now = ToolSpec("now", "Tells the time.", {"type": "object"})
    target = Target("openai", "m", "m", "openai", "m")
    first = port.call(ModelRequest(target, "", (UserMessage("x"),), (now,), id_prefix="r1t"))
    assert first.stop == "tools"
    assert [call.error for call in first.message.calls] == [None, None]
    replayed = message_from_record(json.loads(json.dumps(first.message.to_record())))
    history = (UserMessage("x"), replayed, answered(first, "1", "2"))
    assert port.call(ModelRequest(target, "", history, (now,), id_prefix="r2t")).message.text == "done"
    port.close()
    _, assistant, *results = json.loads(prepared.requests[1])["messages"]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(ids)
    assert [result["tool_call_id"] for result in results] == ids
    assert [call["function"]["arguments"] for call in assistant["tool_calls"]] == ["{}", "{}"]


@pytest.mark.req("FLD-02")
def test_signed_thinking_comes_back_to_the_provider_byte_for_byte(prepared: Prepared) -> None:
    content = (
        r'[ {"type":"thinking","thinking":"","signature":"sg.A+\/9=="},{"type":"redacted_thinking",'
        r' "data":"b64:cGx1bQ=="}, {"type":"text","text":"caf\u00e9"},'
        r'{"type":"tool_use","id":"toolu_1","name":"run_command","input":{"command":"ls", "n":1.50}}]'
    )
    prepared.replies = [
        f'{{"content": {content},"stop_reason":"tool_use","usage":{{"input_tokens":1,"output_tokens":2}}}}'.encode(),
        b'{"content":[{"type":"text","text":"done"}],"stop_reason":"end_turn"}',
    ]
    before, after = HttpModels(credentials(prepared.url)), HttpModels(credentials(prepared.url))
    first = before.call(ask("anthropic", UserMessage("x")))
    before.close()
    stored = json.dumps(first.message.to_record())  # all that a new worker has
    message = message_from_record(json.loads(stored))
    second = after.call(ask("anthropic", UserMessage("x"), message, answered(first, "file")))
    after.close()
    assert second.message.text == "done"
    assert content.encode() in prepared.requests[1]
    assert "sg.A" not in first.message.text
    assert first.usage == Usage(1, 2)
    other = encode_request(
        ask("anthropic", UserMessage("x"), message, answered(first, "file"), family="opus")
    )
    assert b"sg.A" not in other
    assert b"b64:" not in other


@pytest.mark.req("FLD-03")
@pytest.mark.parametrize(
    ("arguments", "finish"),
    [('{"path": "b"}', "length"), ('{"command": "echo', "length"), ('{"command": "echo', "tool_calls")],
)
def test_a_reply_cut_by_the_output_limit_runs_nothing(
    scripted: Scripted, models: HttpModels, arguments: str, finish: str
) -> None:
    whole = '{name: run_command, arguments: {command: "touch x"}}'
    scripted.play(f"""
        match: ^write
        replies:
          - calls: [{whole}, {{name: run_command, arguments: {json.dumps(arguments)}}}]
            stop: {finish}
            usage: {{input: 5, output: 1024}}
          - text: shorter now
    """)
    first = models.call(ask("openai", UserMessage("write")))
    assert first.stop == "cut"
    assert first.usage == Usage(5, 1024)
    told = [call.error or "" for call in first.message.calls]
    assert len(told) == 2
    assert all("output limit" in text for text in told)
    second = models.call(ask("openai", UserMessage("write"), first.message, answered(first, *told)))
    assert second.message.text == "shorter now"
    for call in json.loads(scripted.bodies()[-1])["messages"][2]["tool_calls"]:
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_a_conversation_moves_from_one_wire_to_the_other(models: HttpModels) -> None:
    for start, end in (WIRES, WIRES[::-1]):
        first = models.call(ask(start, UserMessage(PYTHON)))
        history = (UserMessage(PYTHON), first.message, answered(first, "Python 3.5.0"))
        assert "3.5.0" in models.call(ask(end, *history)).message.text


def test_large_replies_and_results_pass_whole(prepared: Prepared, wire: Wire) -> None:
    answer = "🍸" * (4 * 1024 * 1024)  # 16 MiB
    text = json.dumps(answer, ensure_ascii=False)
    reply = f'{{"content":[{{"type":"text","text":{text}}}],"choices":[{{"message":{{"content":{text}}}}}]}}'
    prepared.replies = [reply.encode()]
    port = HttpModels(credentials(prepared.url))
    result = "é" * (1024 * 1024)
    assert port.call(ask(wire, UserMessage(result))).message.text == answer
    port.close()
    assert result.encode() in prepared.requests[0]


def test_importing_the_providers_imports_no_sdk() -> None:
    code = "import sys, nodus_core.providers; print({'anthropic', 'openai', 'httpx2'} & set(sys.modules))"
    path = REPOSITORY / "layers" / "core" / "python"
    ran = subprocess.run([sys.executable, "-c", code], cwd=path, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_the_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    with scripted_server(tmp_path) as first:
        key = first.key
    assert len(key) > 40
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    with scripted_server(tmp_path) as second:
        assert second.key == key


def test_assistant_messages_name_who_made_them(models: HttpModels, wire: Wire) -> None:
    message = models.call(ask(wire, UserMessage("Say hi"))).message
    assert isinstance(message, AssistantMessage)
    assert (message.wire, message.family, message.provider) == (wire, "sonnet", f"scripted/{wire}")
