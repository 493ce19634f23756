"""Model replies with missing, signed and cut parts, through the real wire and the real sandbox."""

import json
import signal
from typing import Any

import pytest

from tests.integration.runs.asked import bodies, requests
from tests.integration.runs.machine import room, send, workers
from tests.integration.runs.person import OPEN_MODEL, Person
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.mark.req("FLD-01")
def test_calls_with_missing_parts_run_once_and_keep_ids(person: Person) -> None:
    person.agent("careless", model=OPEN_MODEL)
    run = person.start("careless", "Look twice, carelessly.")
    run.succeeded()
    assert run.answer().startswith("1\n")  # the one call with its argument ran once
    states = [run.step(f"tool.run_command.{number}") for number in range(1, 5)]
    assert [step["state"] for step in states] == ["Completed", "Failed", "Failed", "Completed"]
    assert [step.get("error") for step in states] == [None, "Refused", "Refused", None]
    second, third = bodies(person.cloud, run.mark)[1:3]
    calls = said_by_assistant(second)[0]["tool_calls"]
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == 3
    assert all(ids)
    assert [json.loads(call["function"]["arguments"]) for call in calls[1:]] == [{}, {}]
    told = [message for message in second["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in told] == ids
    assert all("argument 'command' is missing" in message["content"] for message in told[1:])
    assert [call["id"] for call in said_by_assistant(third)[0]["tool_calls"]] == ids


@pytest.mark.req("FLD-02")
def test_signed_thinking_comes_back_byte_for_byte_also_from_another_worker(person: Person) -> None:
    person.agent("thinker")
    run = person.start("thinker", "Think, then look.")
    run.reaches("tool.run_command.1")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    until((own.workspace / "looked").exists, bool)
    send(workers(person.cloud, "line"), signal.SIGKILL)
    own.open_gate()
    run.succeeded()
    sent = [entry["body"] for entry in requests(person.cloud, run.mark)]
    assert len(sent) == 2
    (said,) = said_by_assistant(json.loads(sent[1]))
    assert said["content"][:3] == [
        {"type": "thinking", "thinking": "", "signature": "sg.A+/9=="},
        {"type": "redacted_thinking", "data": "b64:cGx1bQ=="},
        {"type": "text", "text": "I look."},
    ]
    assert said["content"][3]["type"] == "tool_use"
    assert run.answer() == "I looked."
    assert "sg.A" not in json.dumps([run.status(), run.steps()])


@pytest.mark.req("FLD-03")
@pytest.mark.parametrize(
    "prompt",
    ["Write, cut before a required field.", "Write, cut within the arguments.", "Write, cut and not told."],
)
def test_a_reply_cut_by_the_output_limit_runs_nothing(person: Person, prompt: str) -> None:
    person.agent("short", model={**OPEN_MODEL, "maxTokens": 64})
    run = person.start("short", prompt)
    status = run.ended()
    assert (status["phase"], status["reason"]) == ("Failed", "OutputLimitReached")
    tools = [step for step in run.steps() if step["kind"] == "tool"]
    assert {step["error"] for step in tools} == {"Refused"}
    assert len(tools) == 4
    asked = bodies(person.cloud, run.mark)
    assert len(asked) == 2
    told = [message["content"] for message in asked[1]["messages"] if message["role"] == "tool"]
    assert len(told) == 2
    assert all("output limit" in text for text in told)
    rounds = [step for step in run.steps() if step["kind"] == "model"]
    assert [step["error"] for step in rounds] == ["cut", "cut"]
    assert status["turns"][0]["usage"]["inputTokens"] == 200


def said_by_assistant(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] == "assistant"]
