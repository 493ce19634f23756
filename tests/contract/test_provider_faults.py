"""Whatever a provider sends, a run comes to an end or goes on by a rule: both wire formats, over real HTTP.

The runs are those of the real worker over a journal in memory; only their model calls leave the process.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest
from model_servers import Scripted, dripping_server, scripted_server
from nodus_core.conversations.backoff import MOST_ATTEMPTS
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.inference import ModelOutcomeUnknown, ModelReply, ModelRequest, Target, UserMessage, Wire
from nodus_core.inference.target import Prices
from nodus_core.inference.wires import BadJson, decode_reply, encode_request
from nodus_core.kernel.tasks import Task
from nodus_core.providers import Credential, Credentials, HttpModels, Timeouts
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

WIRES: tuple[Wire, ...] = ("anthropic", "openai")
ON_DEMAND = Context("agent", 1, "You are careful.", ModelChoice("OnDemand", "vendor/model", max_tokens=1024))
PRICES = Prices(input=Decimal(1), output=Decimal(2))


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("faults")) as server:
        yield server


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


@dataclass
class Run:
    """A run that has come to rest."""

    world: World
    requests: int

    @property
    def status(self) -> dict[str, Any]:
        obj = self.world.outside.object(NAMES)
        assert obj is not None
        return obj.status

    @property
    def outcome(self) -> tuple[str, str | None]:
        return self.status["phase"], self.status.get("reason")

    def task(self, key: str) -> Task:
        return self.world.outside.tasks("conv-1", [key])[key]

    @property
    def spent(self) -> Decimal:
        head = self.world.outside.conversation("conv")
        assert head is not None
        return head.spent


@pytest.fixture
def play(scripted: Scripted, wire: Wire) -> Iterator[Callable[..., Run]]:
    """Plays a run whose every model call gets the replies of a script (YAML), in their order."""
    opened: list[HttpModels] = []

    def playing(*replies: dict[str, Any], timeouts: Timeouts | None = None, window: int | None = None) -> Run:
        scripted.play(json.dumps({"match": "Do it", "replies": list(replies)}))
        credential = Credential(scripted.key, scripted.url, scripted=True)
        port = HttpModels(Credentials({wire: credential}), timeouts)
        opened.append(port)
        world = World(lambda request, number: AssertionError("no call is made in memory"), _echo)
        target = Target(wire, "m-1", "m", wire, "vendor/model", PRICES, context_window=window)
        world.models.target = lambda choice, family: target  # type: ignore[method-assign]
        world.models.call = port.call  # type: ignore[method-assign]
        world.admit(context=ON_DEMAND)
        world.settle()
        return Run(world, scripted.get("/_counters")["requests"])

    yield playing
    for port in opened:
        port.close()


def _echo(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    return exited(f"{request.get('command')}\n")


def body(wire: Wire, *, content: str | None = None, calls: str | None = None, **more: Any) -> dict[str, Any]:
    """A reply whose whole body is given: the content or the calls as JSON text, `usage` and `stop` as such too."""
    usage = more.get("usage", '{"input_tokens":9,"prompt_tokens":9,"output_tokens":9,"completion_tokens":9}')
    stop = more.get("stop", '"end_turn"' if wire == "anthropic" else '"stop"')
    if wire == "anthropic":
        text = f'{{"content":{calls or content},"stop_reason":{stop},"usage":{usage}}}'
    else:
        message = f'{{"content":{content}}}' if calls is None else f'{{"content":null,"tool_calls":{calls}}}'
        text = f'{{"choices":[{{"message":{message},"finish_reason":{stop}}}],"usage":{usage}}}'
    return {"body": text}


def call(wire: Wire, **fields: Any) -> dict[str, Any]:
    """A tool call of this wire; `arguments` is a value, or with `text` the text of it."""
    arguments = fields.get("arguments", {"command": "ls"})
    given: dict[str, Any] = {"id": fields.get("id", "c1"), "name": fields.get("name", "run_command")}
    if wire == "anthropic":
        return {"type": "tool_use", **given, "input": arguments}
    text = fields.get("text", json.dumps(arguments))
    function = {"name": given.pop("name"), "arguments": text}
    return {**given, "type": "function", "function": function}


DONE = {"text": "done"}

# --- the provider says come later, or no ---


@pytest.mark.req("FLD-04")
@pytest.mark.parametrize("status", [429, 500, 503, 529])
@pytest.mark.parametrize("retry_after", [None, "7", "date+5", "-3", "nan", "soon", "1e-9"])
def test_a_busy_provider_is_asked_again_and_the_run_succeeds(
    play: Callable[..., Run], status: int, retry_after: str | None
) -> None:
    fault = {"status": status, "times": 2} | ({"retry_after": retry_after} if retry_after else {})
    run = play({"text": "done", "fault": fault})
    assert run.outcome == ("Succeeded", None)
    assert run.requests == 3
    assert run.task("r1").resent == 0


@pytest.mark.req("FLD-04")
def test_a_waiting_time_in_milliseconds_is_obeyed(play: Callable[..., Run]) -> None:
    fault = {"status": 429, "headers": {"retry-after-ms": "9000"}, "times": 1}
    run = play({"text": "done", "fault": fault})
    assert run.outcome == ("Succeeded", None)
    task = run.task("r1")
    assert task.finished_at is not None
    assert (task.finished_at - task.started_at).total_seconds() >= 9


@pytest.mark.req("FLD-04", "INV-16")
@pytest.mark.parametrize(
    ("fault", "requests"),
    [
        ({"status": 429, "retry_after": "1e9"}, 4),  # every 15 minutes of an hour
        ({"status": 503}, MOST_ATTEMPTS),
        ({"drop": True}, MOST_ATTEMPTS),
    ],
)
def test_a_provider_that_never_answers_ends_the_turn(
    play: Callable[..., Run], fault: dict[str, Any], requests: int
) -> None:
    run = play({"text": "never", "fault": fault})
    assert run.outcome == ("Failed", "ModelUnavailable")
    assert run.requests == requests


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        *((status, "ModelRequestRefused") for status in (400, 401, 402, 403, 404, 422)),
        (413, "ContextWindowExceeded"),
    ],
)
def test_a_refusal_ends_the_turn_at_once_and_costs_nothing(
    play: Callable[..., Run], status: int, reason: str
) -> None:
    run = play({"text": "never", "fault": {"status": status}})
    assert run.outcome == ("Failed", reason)
    assert (run.requests, run.spent) == (1, 0)
    assert str(status) in run.status["message"]


# --- no whole answer, or none of a model ---


@pytest.mark.parametrize(
    "fault",
    [
        {"drop": True},
        {"cut_after_bytes": 0},
        {"cut_after_bytes": 30},
        {"status": 504},
        {"headers": {"Content-Encoding": "gzip"}},
    ],
)
def test_an_answer_that_was_lost_is_asked_for_again_and_counted_as_resent(
    play: Callable[..., Run], fault: dict[str, Any]
) -> None:
    run = play({"text": "done", "fault": {**fault, "times": 2}})
    assert run.outcome == ("Succeeded", None)
    assert (run.requests, run.task("r1").resent) == (3, 2)


@pytest.mark.parametrize(
    "text", ["", "  \n", '{"content": [', '{"choices": [{"mess', "{}", '{"a": ' + "[" * 99_999]
)
def test_a_body_that_is_no_whole_reply_is_asked_for_at_most_eight_times(
    play: Callable[..., Run], text: str
) -> None:
    run = play({"body": text})
    assert run.outcome == ("Failed", "ModelUnavailable")
    assert run.requests == MOST_ATTEMPTS
    assert run.spent > 0  # it may have run, so its reserve is booked


@pytest.mark.parametrize("text", ["<html>Welcome</html>", "[1]", "null", '"x"', "data: {}\n\n"])
def test_what_is_no_reply_of_a_model_is_refused_at_once(play: Callable[..., Run], text: str) -> None:
    run = play({"body": text})
    assert run.outcome == ("Failed", "ModelRequestRefused")
    assert run.requests == 1
    assert "check the base address" in run.status["message"]


def test_an_error_that_comes_as_a_success_is_waited_for(play: Callable[..., Run]) -> None:
    error = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    run = play({"body": error})
    assert run.outcome == ("Failed", "ModelUnavailable")
    assert run.requests == MOST_ATTEMPTS
    assert run.spent == 0  # the provider itself says that it did not run
    assert "busy" in run.status["message"]


def test_another_content_type_and_a_mark_of_byte_order_change_nothing(
    play: Callable[..., Run], wire: Wire
) -> None:
    reply = body(wire, content='"done"')
    fault = {"headers": {"Content-Type": "text/html; charset=utf-16"}}
    run = play({"body": "\ufeff" + reply["body"], "fault": fault})
    assert run.outcome == ("Succeeded", None)
    assert run.status["answer"]["preview"] == "done"


@pytest.mark.parametrize(
    ("head", "drip"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Slow: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b""),
        (b"", b""),
    ],
    ids=["headers", "body", "silence after headers", "silence"],
)
def test_a_provider_that_drips_holds_a_caller_no_longer_than_its_time(
    wire: Wire, head: bytes, drip: bytes
) -> None:
    with dripping_server(head, drip, 0.05) as url:
        port = HttpModels(Credentials({wire: Credential("k", url)}), Timeouts(connect=0.1, reply=0.5))
        target = Target(wire, "m", "m", wire, "m")
        with pytest.raises(ModelOutcomeUnknown):
            port.call(ModelRequest(target, "", (UserMessage("x"),)))
        port.close()


# --- replies with odd parts ---


@pytest.mark.req("FLD-01")
def test_calls_with_the_same_or_no_id_run_once_each_in_every_message(
    play: Callable[..., Run], wire: Wire, scripted: Scripted
) -> None:
    calls = [
        call(wire, id=name, arguments={"command": str(n)}) for n, name in enumerate(["", "c1", "c1", "  "])
    ]
    calls.append({key: value for key, value in call(wire).items() if key != "id"})
    run = play(body(wire, calls=json.dumps(calls)), body(wire, calls=json.dumps(calls)), DONE)
    assert run.outcome == ("Succeeded", None)
    assert len(set(run.world.sandboxes.effects)) == 10
    names = ids_of(scripted.bodies()[-1], wire)
    assert len(names) == len(set(names)) == 10
    assert all(name.strip() for name in names)


def ids_of(request: str, wire: Wire) -> list[str]:
    """Ids of the calls in a request; each has exactly one result, in the same order."""
    messages = json.loads(request)["messages"]
    if wire == "openai":
        made = [one["id"] for message in messages for one in message.get("tool_calls", ())]
        told = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    else:
        blocks = [block for message in messages for block in message["content"] if isinstance(block, dict)]
        made = [block["id"] for block in blocks if block["type"] == "tool_use"]
        told = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert made == told
    return made


@pytest.mark.req("FLD-01")
@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": None},
        {"name": 5},
        {"name": "no such tool " * 99},
        {"arguments": [1]},
        {"arguments": "ls"},
        {"arguments": 5},
        {"arguments": {"command": "a\x00b"}},
        {"arguments": {"command": ["ls"]}},
        {"text": '{"command": "ls"'},
        {"text": '{"command": NaN}'},
        {"text": '{"command": ' + "[" * 5000 + "]" * 5000 + "}"},
    ],
)
def test_a_call_that_cannot_run_is_told_to_the_model_and_runs_nothing(
    play: Callable[..., Run], wire: Wire, scripted: Scripted, fields: dict[str, Any]
) -> None:
    if wire == "anthropic" and "text" in fields:
        fields = {"arguments": fields["text"]}  # a text in place of an object
    run = play(body(wire, calls=json.dumps([call(wire, **fields)])), DONE)
    assert run.outcome == ("Succeeded", None)
    assert run.world.sandboxes.effects == []
    assert run.task("r1t0").result is not None
    assert run.task("r1t0").result.is_error  # type: ignore[union-attr]
    assert len(ids_of(scripted.bodies()[-1], wire)) == 1


@pytest.mark.parametrize(
    "usage",
    [
        "null",
        "5",
        "{}",
        '{"input_tokens":NaN,"output_tokens":1,"prompt_tokens":NaN,"completion_tokens":1}',
        '{"input_tokens":Infinity,"output_tokens":1,"prompt_tokens":Infinity,"completion_tokens":1}',
        '{"input_tokens":-5,"output_tokens":1,"prompt_tokens":-5,"completion_tokens":1}',
        '{"input_tokens":1e400,"output_tokens":1,"prompt_tokens":1e400,"completion_tokens":1}',
        '{"input_tokens":N,"output_tokens":1,"prompt_tokens":N,"completion_tokens":1}'.replace("N", "9" * 60),
        '{"input_tokens":N,"output_tokens":1,"prompt_tokens":N,"completion_tokens":1}'.replace(
            "N", "9" * 6000
        ),
        '{"input_tokens":1,"output_tokens":N,"prompt_tokens":1,"completion_tokens":N}'.replace("N", "9" * 60),
    ],
)
def test_a_usage_that_cannot_be_books_the_reserve(play: Callable[..., Run], wire: Wire, usage: str) -> None:
    run = play(body(wire, content='"done"', usage=usage))
    assert run.outcome == ("Succeeded", None)
    assert run.requests == 1
    task = run.task("r1")
    assert (task.usage, task.cost) == (None, None)
    assert run.spent == task.reserved


@pytest.mark.parametrize("stop", ["null", '"pause_turn"', '"whatever"', "5", '["x"]'])
def test_an_unknown_stop_reason_is_the_end_of_a_reply_or_its_calls(
    play: Callable[..., Run], wire: Wire, stop: str
) -> None:
    calls = json.dumps([call(wire)])
    run = play(body(wire, calls=calls, stop=stop), body(wire, content='"done"', stop=stop))
    assert run.outcome == ("Succeeded", None)
    assert run.status["answer"]["preview"] == "done"
    assert len(run.world.sandboxes.effects) == 1


@pytest.mark.parametrize("content", ["null", '""', '"  "', "[]", '[{"type":"weird","data":[1]}]'])
def test_a_reply_that_says_nothing_is_an_empty_answer(
    play: Callable[..., Run], wire: Wire, content: str
) -> None:
    run = play(body(wire, content=content))
    assert run.outcome == ("Succeeded", None)
    assert run.status["answer"]["preview"].strip() == ""


@pytest.mark.parametrize("blocks", ['{"type":"weird","data":{"n":1.50}}', '{"type":["odd"],"text":"x"}'])
def test_blocks_that_nobody_knows_go_back_as_they_came(
    play: Callable[..., Run], wire: Wire, scripted: Scripted, blocks: str
) -> None:
    if wire == "openai":
        reply = {
            "body": f'{{"choices":[{{"message":{{"content":[{blocks}],"tool_calls":[{json.dumps(call(wire))}]}}}}]}}'
        }
    else:
        reply = body(wire, calls=f"[{blocks},{json.dumps(call(wire))}]")
    run = play(reply, DONE)
    assert run.outcome == ("Succeeded", None)
    assert blocks in scripted.bodies()[-1]


@pytest.mark.req("FLD-08")
def test_nul_and_halves_of_characters_in_texts_become_harmless(
    play: Callable[..., Run], wire: Wire, scripted: Scripted
) -> None:
    odd = r'"a\u0000b\ud83cc\ud83c\udf78"'
    calls = json.dumps([call(wire)])
    if wire == "anthropic":
        first = body(wire, calls=f'[{{"type":"text","text":{odd}}},{calls[1:]}')
    else:
        first = {"body": f'{{"choices":[{{"message":{{"content":{odd},"tool_calls":{calls}}}}}]}}'}
    run = play(first, body(wire, content=odd))
    assert run.outcome == ("Succeeded", None)
    assert run.status["answer"]["preview"] == "a\x00b\ufffdc\U0001f378"
    json.loads(scripted.bodies()[-1].encode())  # valid UTF-8 and JSON


def test_a_reply_of_megabytes_is_kept_whole(play: Callable[..., Run]) -> None:
    run = play({"text": "é" * (2 * 1024 * 1024)})
    assert run.outcome == ("Succeeded", None)
    stored = run.task("r1").result
    assert stored is not None
    assert stored.text is not None
    assert stored.text.size == 4 * 1024 * 1024  # type: ignore[union-attr]


# --- what would be unreadable later is refused when it comes ---


@pytest.mark.parametrize("depth", [50, 120, 129, 500, 900])
def test_a_nested_reply_is_readable_always_or_never(wire: Wire, depth: int) -> None:
    """However deep the stack is on which it is read again, and put into the next request."""
    nested = "[" * depth + "]" * depth
    text = f'{{"content":[{{"type":"x","y":{nested}}}],"choices":[{{"message":{{"content":"a","y":{nested}}}}}]}}'
    request = ModelRequest(Target(wire, "m", "m", wire, "m"), "", (UserMessage("x"),))

    def read() -> ModelReply | None:
        try:
            return decode_reply(request, text.encode())
        except BadJson:
            return None

    def deep(levels: int) -> ModelReply | None:
        return read() if levels == 0 else deep(levels - 1)

    shallow, below = read(), deep(600)
    assert shallow == below
    if shallow is not None:
        again = replace(request, messages=(UserMessage("x"), shallow.message, UserMessage("y")))
        assert nested.encode() in encode_request(again)
