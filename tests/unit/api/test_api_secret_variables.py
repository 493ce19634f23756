"""Secrets as variables of commands: pinned by reference, handed to the daemon alone, stored nowhere (NOD-454, NODQ-70)."""

from typing import Any

import pytest
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited

from tests.unit.api.rest import Rest, manifest

VALUE = "plum-9f31-KITE-77aa"
WANTED = [{"name": "deploy", "env": "DEPLOY_KEY", "key": "token"}]


@pytest.fixture
def rest() -> Rest:
    made = Rest(plays([says("one"), says("two")]), lambda kind, request: exited())
    made.post("secrets", manifest("Secret", "deploy", {"data": {"token": VALUE, "other": "x" * 20}}))
    return made


def daemon_of(rest: Rest, sandbox: str) -> dict[str, str]:
    return rest.world.sandboxes.daemons[f"task/{sandbox}"].secrets


def everything(rest: Rest) -> str:
    """All that is stored, but the vault."""
    rows = [rest.store.get([key])[0] for key in rest.store.rows()]
    return repr(rows) + repr(vars(rest.world.payloads))


@pytest.mark.req("NOD-023", "NOD-454", "NOD-455", "NODQ-70", "FLD-14")
def test_an_agents_secrets_reach_the_daemon_of_its_run_and_nothing_else(rest: Rest) -> None:
    assert rest.agent(secrets=WANTED).code in (200, 201)
    assert rest.run("kept", keepAlive=True).code == 201
    rest.world.settle()
    status = rest.get("agentruns/kept").json["status"]
    assert status["phase"] == "Waiting"
    assert daemon_of(rest, status["sandbox"]["name"]) == {"DEPLOY_KEY": VALUE}
    assert VALUE not in everything(rest)
    assert VALUE not in repr(rest.world.executions)


@pytest.mark.req("NOD-454", "NOD-455")
def test_a_sandbox_takes_the_same_block(rest: Rest) -> None:
    made = rest.post("sandboxes", manifest("Sandbox", "mine", {"secrets": WANTED}))
    assert made.code == 201, made.json
    rest.world.pass_time(1)
    status = rest.get("sandboxes/mine").json["status"]
    assert status["phase"] == "Running"
    assert daemon_of(rest, status["machine"]) == {"DEPLOY_KEY": VALUE}
    assert VALUE not in everything(rest)


@pytest.mark.req("NOD-461")
def test_a_run_keeps_the_values_that_its_secrets_had_when_it_was_admitted(rest: Rest) -> None:
    rest.agent(secrets=WANTED)
    rest.run("kept", keepAlive=True)
    changed = {"data": {"token": "another-value-now", "other": "y"}}
    assert rest.apply("secrets/deploy", manifest("Secret", "deploy", changed)).code == 200
    rest.world.settle()
    name = rest.get("agentruns/kept").json["status"]["sandbox"]["name"]
    assert daemon_of(rest, name) == {"DEPLOY_KEY": VALUE}


@pytest.mark.req("NOD-455")
def test_what_is_not_there_is_refused_before_anything_starts(rest: Rest) -> None:
    rest.agent(secrets=[{"name": "gone", "env": "A", "key": "token"}])
    refused = rest.run("r")
    assert (refused.code, refused.json["reason"], refused.fields) == (404, "NotFound", ["spec.agent"])
    wrong = {"secrets": [*WANTED, {"name": "deploy", "env": "B", "key": "nothing"}]}
    refused = rest.post("sandboxes", manifest("Sandbox", "mine", wrong))
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", ["spec.secrets[1].key"])
    both: dict[str, Any] = {"secrets": WANTED, "env": [{"name": "DEPLOY_KEY", "value": "x"}]}
    refused = rest.post("sandboxes", manifest("Sandbox", "mine", both))
    assert (refused.code, refused.fields) == (422, ["spec.secrets"])
    assert rest.get("sandboxes").json["items"] == []
    assert not rest.world.sandboxes.daemons


@pytest.mark.req("NOD-455")
@pytest.mark.parametrize("isolated", [True, False])
def test_a_sandbox_that_cannot_have_them_takes_no_command_and_says_why(rest: Rest, isolated: bool) -> None:
    rest.world.sandboxes.isolated = isolated
    rest.post("sandboxes", manifest("Sandbox", "mine", {"secrets": WANTED}))
    if isolated:
        assert rest.call("DELETE", "secrets/deploy").code == 200
    rest.world.pass_time(60)
    rest.world.settle()
    status = rest.get("sandboxes/mine").json["status"]
    assert (status["phase"], status["reason"]) == ("Paused", "SandboxStartFailed")
    assert ("were removed" if isolated else "without isolation") in status["message"]
    assert [daemon.secrets for daemon in rest.world.sandboxes.daemons.values()] == [{}]
    assert rest.world.sandboxes.effects == []


@pytest.mark.req("NOD-465")
def test_who_may_not_read_secrets_can_give_them_to_no_command(rest: Rest) -> None:
    """To run something beside a value is to read it; so is changing what an agent that has one runs."""
    assert rest.agent(secrets=WANTED).code in (200, 201)
    writer = rest.new_key(permissions=("sandboxes:write", "agents:write", "agentruns:write"))
    own = manifest("Sandbox", "mine", {"secrets": WANTED})
    agent = manifest("Agent", "other", {"system": "x", "secrets": WANTED})
    patched = rest.patch("agents/hello-agent", {"spec": {"setup": "env"}}, key=writer)
    for refused in (
        rest.post("sandboxes", own, key=writer),
        rest.post("agents", agent, key=writer),
        rest.apply("agents/other", agent, key=writer),
        patched,
    ):
        assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
        assert "secrets:read" in refused.json["message"]
    assert rest.post("sandboxes", manifest("Sandbox", "plain", {}), key=writer).code == 201
