"""Runs with the user's own key over REST: what is pinned, and what is refused before anything starts."""

import json
from typing import Any

import pytest
from nodus_core.conversations.context import Context
from nodus_core.inference import ModelOutcomeUnknown
from nodus_core.inference.target import OwnKey
from nodus_core.journal.payloads import Scope
from nodus_core.testing.scripted_model import Step, says

from tests.unit.api.rest import Reply, Rest, manifest

KEY = "sk-plum-9f31-KITE-77aa"
OWN = {"access": "BYOK", "name": "claude-sonnet-5-5", "apiKeySecret": "anthropic-key"}


@pytest.fixture
def rest() -> Rest:
    return Rest()


def secret(rest: Rest, **data: str) -> None:
    assert rest.apply("secrets/anthropic-key", manifest("Secret", "anthropic-key", {"data": data})).code < 300


def context_of(rest: Rest, name: str = "hello-run") -> Context:
    uid = rest.get(f"agentruns/{name}").json["metadata"]["uid"]
    head = rest.world.outside.conversation(uid)
    assert head is not None
    return Context.from_json(rest.world.payloads.get(Scope("acme", uid), head.context))


def refused(rest: Rest, **spec: Any) -> Reply:
    """A run that is refused has stored and started nothing."""
    before = rest.commits
    reply = rest.run(**spec)
    assert rest.commits == before
    assert rest.world.executions.names == set()
    return reply


@pytest.mark.req("NOD-109", "NOD-011", "NOD-124", "NEX-43", "NODQ-27", "NODQ-30")
def test_a_run_pins_where_the_key_is_and_never_the_key(rest: Rest) -> None:
    secret(rest, ANTHROPIC_API_KEY=KEY)
    rest.agent(model=OWN)
    assert rest.run().code == 201
    choice = context_of(rest).model
    assert (choice.access, choice.name, choice.wire) == ("BYOK", "claude-sonnet-5-5", "anthropic")
    assert choice.own_key == OwnKey("anthropic-key")
    own = {
        "access": "BYOK",
        "name": "gpt-4.1-mini",
        "protocol": "OpenAI",
        "apiKeySecret": "anthropic-key",
        "apiKeyField": "ANTHROPIC_API_KEY",
        "baseURL": "https://api.example.com/v1",
    }
    assert rest.run("other", model=own).code == 201
    choice = context_of(rest, "other").model
    assert (choice.wire, choice.name) == ("openai", "gpt-4.1-mini")
    assert choice.own_key == OwnKey("anthropic-key", "ANTHROPIC_API_KEY", "https://api.example.com/v1")
    assert KEY not in repr(rest.store.commits)
    assert rest.world.models.requests == []


@pytest.mark.req("NOD-114")
def test_a_secret_that_does_not_exist_is_named_and_nothing_starts(rest: Rest) -> None:
    rest.agent(model=OWN)
    reply = refused(rest)
    assert (reply.code, reply.json["reason"], reply.fields) == (404, "NotFound", ["spec.agent"])
    assert reply.json["details"]["kind"] == "Secret"
    assert "'anthropic-key'" in reply.json["message"]
    rest.agent()
    assert refused(rest, model=OWN).fields == ["spec.model.apiKeySecret"]


@pytest.mark.req("NOD-111", "NOD-112", "NOD-113")
@pytest.mark.parametrize(
    ("fields", "more", "words"),
    [
        (["foo"], {}, None),
        (["A", "ANTHROPIC_API_KEY"], {}, None),
        (["A", "OPENAI_API_KEY"], {"protocol": "OpenAI"}, None),
        (["A", "B"], {"apiKeyField": "B"}, None),
        (["A", "B"], {}, "no ANTHROPIC_API_KEY"),
        (["A", "ANTHROPIC_API_KEY"], {"protocol": "OpenAI"}, "no OPENAI_API_KEY"),
        (["A"], {"apiKeyField": "B"}, "no field 'B'"),
    ],
)
def test_the_field_of_the_key_is_found_or_asked_for(
    rest: Rest, fields: list[str], more: dict[str, str], words: str | None
) -> None:
    secret(rest, **dict.fromkeys(fields, KEY))
    rest.agent()
    model = {**OWN, **more}
    if words is None:
        assert rest.run(model=model).code == 201
        return
    reply = refused(rest, model=model)
    assert (reply.code, reply.json["reason"]) == (422, "Invalid")
    assert words in reply.json["message"]
    assert KEY not in reply.text


@pytest.mark.req("NOD-004")
def test_a_secret_of_another_project_is_no_key_here(rest: Rest) -> None:
    body = manifest("Secret", "anthropic-key", {"data": {"ANTHROPIC_API_KEY": KEY}})
    assert rest.apply("secrets/anthropic-key", body, project="lab").code == 201
    rest.agent(model=OWN)
    assert refused(rest).code == 404


@pytest.mark.req("NOD-109", "NOD-119", "NOD-028", "FLD-14")
def test_the_whole_run_shows_the_key_nowhere(rest: Rest) -> None:
    secret(rest, ANTHROPIC_API_KEY=KEY)
    rest.agent(model=OWN)
    rest.run()
    rest.world.settle()
    run = rest.get("agentruns/hello-run")
    assert (run.json["status"]["phase"], run.json["status"]["cost"]["totalUSD"]) == ("Succeeded", "0")
    assert rest.world.models.keys == [KEY]
    steps = rest.get("agentruns/hello-run/steps")
    assert [step["guarantee"] for step in steps.json["items"] if step["kind"] == "model"] == ["AtMostOnce"]
    shown = [run, steps, rest.get("agents"), rest.get("agentruns"), rest.get("secrets")]
    assert KEY not in json.dumps([reply.text for reply in shown])
    assert KEY not in repr(rest.store.commits) + repr(rest.world.payloads.objects)


def parked(*more: Step) -> Rest:
    """A run whose first model call may have been made."""
    steps = iter([ModelOutcomeUnknown("cut off"), *more])
    rest = Rest(lambda request, number: next(steps))
    secret(rest, ANTHROPIC_API_KEY=KEY)
    rest.agent(model=OWN)
    rest.run()
    rest.world.settle()
    status = rest.get("agentruns/hello-run").json["status"]
    assert (status["phase"], status["reason"]) == ("Waiting", "NeedsResolution")
    return rest


def resolve(rest: Rest, **said: Any) -> None:
    stated = {"step": "turn-1.model.1", "requestKey": "one", **said}
    reply = rest.post("agentruns/hello-run/resolution", stated)
    assert reply.code == 202, reply.text
    rest.world.settle()


@pytest.mark.req("NODQ-55", "NOD-123")
def test_a_call_that_did_not_happen_is_made_as_a_further_attempt() -> None:
    rest = parked(says("done after all"))
    resolve(rest, outcome="DidNotHappen")
    assert rest.get("agentruns/hello-run").json["status"]["phase"] == "Succeeded"
    assert rest.get("agentruns/hello-run/answer").text == "done after all"
    assert len(rest.world.models.requests) == 2
    (step,) = [
        item for item in rest.get("agentruns/hello-run/steps").json["items"] if item["kind"] == "model"
    ]
    assert (step["state"], step["attempt"]) == ("Completed", 2)


@pytest.mark.req("NODQ-55", "NOD-123")
@pytest.mark.parametrize("more", [{}, {"result": {}}, {"result": {"text": " "}}])
def test_a_call_that_happened_needs_its_reply(more: dict[str, Any]) -> None:
    rest = parked()
    stated = {"step": "turn-1.model.1", "requestKey": "one", "outcome": "Happened", **more}
    refused = rest.post("agentruns/hello-run/resolution", stated)
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    (cause,) = refused.json["details"]["causes"]
    assert cause["field"] == "result.text"
    assert "the model's reply" in cause["message"]
    assert rest.get("agentruns/hello-run").json["status"]["reason"] == "NeedsResolution"
    resolve(
        rest, outcome="Happened", result={"text": "It said hello."}
    )  # nothing was kept of the refused one


@pytest.mark.req("NODQ-55", "NOD-123")
def test_a_call_that_happened_has_the_reply_that_the_person_gives() -> None:
    rest = parked()
    resolve(rest, outcome="Happened", result={"text": "It said hello."})
    assert rest.get("agentruns/hello-run").json["status"]["phase"] == "Succeeded"
    assert "It said hello." in rest.get("agentruns/hello-run/answer").text
    assert len(rest.world.models.requests) == 1
