"""The Inference tool of a sandbox: rates of the live catalogue and texts, and never a key (NOD-419 … NOD-424)."""

import ast

import pytest
from nodus_core.inference.catalogue import packaged_catalogue
from nodus_core.inference.offered_texts import texts
from nodus_core.testing.scripted_sandbox import RUNNING

from tests.unit.api.rest import Rest, manifest


@pytest.fixture
def rest() -> Rest:
    made = Rest(behaviour=lambda kind, request: RUNNING)
    assert made.post("sandboxes", manifest("Sandbox", "mine", {})).code == 201
    return made


@pytest.mark.req("NOD-419")
def test_it_shows_the_rates_of_each_model_that_can_call_tools(rest: Rest) -> None:
    offers = packaged_catalogue().offers()
    first = rest.get("sandboxes/mine/inference").json
    assert first["model"]["id"] == offers[0].id
    assert first["models"] == [offer.id for offer in offers]
    for offer in offers:
        for word in (offer.id, *offer.aliases):
            shown = rest.get("sandboxes/mine/inference", query={"model": word}).json["model"]
            assert (shown["id"], shown["name"]) == (offer.id, offer.name)
            assert shown["tokenRates"]["input"] == f"{offer.prices.input:f}"
            assert shown["tokenRates"]["output"] == f"{offer.prices.output:f}"


@pytest.mark.req("NOD-420", "NOD-423")
def test_its_texts_name_the_model_and_the_host_and_hold_no_key(rest: Rest) -> None:
    told = rest.get("sandboxes/mine/inference").json
    model = told["model"]["id"]
    assert told["host"] == "api.test"
    assert model in told["setupPrompt"]
    assert "NODUS_TOKEN" in told["setupPrompt"]
    calls = {
        node.func.attr
        for node in ast.walk(ast.parse(told["python"]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert calls == {"ModelAgent", "remote"}
    assert f'model="{model}"' in told["python"]
    assert rest.key not in str(told)


@pytest.mark.req("NOD-410", "NOD-423")
def test_to_look_at_it_starts_nothing_and_gives_the_sandbox_nothing(rest: Rest) -> None:
    rest.world.pass_time(1)
    rest.post("sandboxes/mine/stop")
    rest.world.settle()
    started = dict(rest.world.sandboxes.images)
    stored = rest.commits
    assert rest.get("sandboxes/mine/inference").code == 200
    rest.world.settle()
    assert (dict(rest.world.sandboxes.images), rest.commits) == (started, stored)


def test_a_model_or_a_sandbox_that_is_not_there_is_refused_by_name(rest: Rest) -> None:
    unknown = rest.get("sandboxes/mine/inference", query={"model": "no/such"})
    assert (unknown.code, unknown.json["reason"]) == (400, "BadRequest")
    assert "no/such" in unknown.json["message"]
    guard = rest.get("sandboxes/mine/inference", query={"model": "meta-llama/llama-guard-4-12b"})
    assert guard.code == 400
    assert rest.get("sandboxes/other/inference").code == 404
    assert rest.get("sandboxes/mine/inference", project="lab").code == 404


@pytest.mark.req("NOD-420", "NOD-423")
def test_what_the_prompt_tells_people_to_do_is_accepted(rest: Rest) -> None:
    prompt = rest.get("sandboxes/mine/inference").json["setupPrompt"]
    assert "allows api.test under spec.network.egress" in prompt
    assert rest.post("secrets", manifest("Secret", "key", {"data": {"token": "nodus-key"}})).code == 201
    spec = {
        "network": {"egress": {"policy": "AllowList", "allow": ["api.test"]}},
        "env": [{"name": "NODUS_SERVER", "value": "https://api.test"}],
        "secrets": [{"name": "key", "env": "NODUS_TOKEN", "key": "token"}],
    }
    made = rest.post("sandboxes", manifest("Sandbox", "coding", spec))
    assert made.code == 201, made.json


@pytest.mark.parametrize("host", ["127.0.0.1:4566", "[::1]:4566", "localhost:4566"])
def test_a_server_that_no_sandbox_reaches_is_not_said_to_be_allowed(host: str) -> None:
    prompt = texts("mine", None, host)["setupPrompt"]
    assert "no sandbox reaches" in prompt
    assert "allows" not in prompt
