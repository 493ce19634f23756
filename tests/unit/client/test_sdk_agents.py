"""Agents from Python, against the fake server."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import nodus
import pytest
from nodus import errors

from tests.unit.client.fake_runs import Outcome
from tests.unit.client.fake_server import FakeServer, Fault


def model_of(server: FakeServer, name: str) -> dict[str, Any]:
    return server.object("agents", name)["spec"]["model"]


@pytest.mark.req("NOD-508", "NOD-511", "NOD-502")
def test_nex_01_on_demand_agent(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = "Use two parallel subagents to compare the approaches, then combine the findings."
    server.outcomes[prompt] = Outcome(answer="Both are fine.")
    agent = nodus.ModelAgent("researcher", model="openai/gpt-oss-20b", max_parallel_agents=8)
    print(agent.remote(prompt))
    assert capsys.readouterr().out == "Both are fine.\n"
    spec = server.object("agents", "researcher")["spec"]
    assert spec["model"] == {"access": "OnDemand", "name": "openai/gpt-oss-20b"}
    assert spec["maxParallelAgents"] == 8


@pytest.mark.req("NOD-509", "NOD-028")
def test_nex_02_own_key_openai_protocol(server: FakeServer) -> None:
    agent = nodus.ModelAgent(
        "researcher",
        protocol="OpenAI",
        model="gpt-4.1-mini",
        api_key_secret="model-key",
    )
    assert server.seen == []
    agent.submit("hi")
    assert model_of(server, "researcher") == {
        "access": "BYOK",
        "name": "gpt-4.1-mini",
        "protocol": "OpenAI",
        "apiKeySecret": "model-key",
    }


@pytest.mark.req("NOD-509")
def test_nex_03_compatible_provider(server: FakeServer) -> None:
    agent = nodus.ModelAgent(
        "researcher",
        protocol="OpenAI",
        model="gpt-4.1-mini",
        api_key_secret="model-key",
        base_url="https://api.example.com/v1",
    )
    agent.submit("hi")
    assert model_of(server, "researcher")["baseURL"] == "https://api.example.com/v1"


@pytest.mark.req("NOD-503", "NOD-511", "NOD-512")
def test_nex_11_claude_agent(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.outcomes["Use the shell to print the Python version"] = Outcome(answer="Python 3.11.7")
    agent = nodus.ClaudeAgent("helper", system="You are careful.", families=["haiku", "sonnet"])
    assert server.seen == []
    print(agent.remote("Use the shell to print the Python version"))
    assert capsys.readouterr().out == "Python 3.11.7\n"
    assert model_of(server, "helper") == {"access": "Nodus", "families": ["haiku", "sonnet"]}
    assert server.object("agents", "helper")["spec"]["system"] == "You are careful."

    run = agent.submit("Summarize the logs", keep_alive=True)
    assert server.object("agentruns", run.name)["spec"] == {
        "agent": "helper",
        "input": "Summarize the logs",
        "keepAlive": True,
    }
    assert not server.runs["default", run.name].over
    run.send("message", "Now the staging logs")
    assert server.runs["default", run.name].messages == {"message": "Now the staging logs"}
    assert len(server.asked("PATCH .*/agents/helper")) == 1


@pytest.mark.req("NOD-506", "NOD-507", "NOD-125", "NODQ-22", "NODQ-28")
def test_nex_12_own_key_and_template(server: FakeServer) -> None:
    own_key = nodus.ClaudeAgent("helper", api_key_secret="anthropic-key")
    template = nodus.ClaudeAgent.from_name("claude-assistant", project="nodus")
    own_key.submit("hi")
    assert model_of(server, "helper") == {
        "access": "BYOK",
        "name": "claude-sonnet-5-5",
        "apiKeySecret": "anthropic-key",
    }
    server.outcomes["Say hi"] = Outcome(answer="hi")
    assert template.remote("Say hi") == "hi"
    assert [key for key in server.objects if key[1] == "agents"] == [("default", "agents", "helper")]


@pytest.mark.req("NOD-188", "NODQ-16", "NODQ-17")
def test_a_message_that_cannot_be_delivered_raises(server: FakeServer) -> None:
    run = nodus.ClaudeAgent("helper").submit("hi", keep_alive=True)
    run.send("k", "one")
    with pytest.raises(nodus.errors.MessageKeyConflictError, match="'k'"):
        run.send("k", "two")
    run.cancel()
    with pytest.raises(nodus.errors.AgentRunFinishedError):
        run.send("l", "late")
    assert server.runs["default", run.name].messages == {"k": "one"}


def test_from_name_of_another_project_runs_there(server: FakeServer, client: nodus.Client) -> None:
    client.in_project("team-b").agents.apply({"metadata": {"name": "theirs"}, "spec": {}})
    run = nodus.ClaudeAgent.from_name("theirs", project="team-b").submit("hi")
    assert (run.project, ("team-b", "agentruns", run.name) in server.objects) == ("team-b", True)


@pytest.mark.req("NOD-505", "NOD-516", "NOD-517", "NOD-174", "NOD-523", "NOD-513", "NOD-188")
def test_nex_14_repository(server: FakeServer) -> None:
    agent = nodus.ClaudeAgent(
        "repo-helper",
        model="YOUR_TOOL_CAPABLE_MODEL_ID",  # served through Nodus inference
        working_dir="/workspace",
        state_dir="/workspace",
        source={"git": {"repo": "your-org/your-repo", "ref": "main"}},
        setup="npm ci",
        network=nodus.Egress.open(),
    )
    run = agent.submit("Inspect the project and suggest one improvement", keep_alive=True)
    assert server.object("agents", "repo-helper")["spec"] == {
        "workingDir": "/workspace",
        "continuity": {"mode": "Snapshotted", "stateDir": "/workspace"},
        "source": {"git": {"repo": "your-org/your-repo", "ref": "main"}},
        "setup": "npm ci",
        "network": {"egress": {"policy": "Open"}},
        "model": {"access": "OnDemand", "name": "YOUR_TOOL_CAPABLE_MODEL_ID"},
    }
    for _ in range(2):
        sent = run.send("next-step", "Implement the suggested improvement and check it")
        assert (sent.message_key, sent.turn) == ("next-step", 2)
    status = run.cancel()
    assert (status.phase, status.sandbox.phase) == ("Cancelled", "Deleted")


@pytest.mark.req("NOD-504")
def test_nex_21_unlimited(server: FakeServer) -> None:
    nodus.ClaudeAgent("helper").submit("hi")
    assert "maxParallelAgents" not in server.object("agents", "helper")["spec"]
    nodus.ClaudeAgent("helper", max_parallel_agents=0).submit("hi")
    assert server.object("agents", "helper")["spec"]["maxParallelAgents"] == 0


@pytest.mark.req("NOD-512")
def test_nex_23_run_maximum(server: FakeServer) -> None:
    run = nodus.ClaudeAgent("helper").submit("TASK", parallelism=6)
    assert server.object("agentruns", run.name)["spec"]["parallelism"] == 6


@pytest.mark.req("NOD-510", "NODQ-92")
@pytest.mark.parametrize(("given", "stored"), [("0.50", "0.50"), (Decimal("0.1"), "0.1"), (2, "2")])
def test_money_keeps_its_decimals(given: str | Decimal | int, stored: str) -> None:
    agent = nodus.ModelAgent("m", model="x", per_run_max_cost=given)
    assert agent.manifest["spec"]["perRunMaxCostUSD"] == stored


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"per_run_max_cost": 0.1}, TypeError, "'0.1'"),
        ({"per_run_max_cost": "1e3"}, ValueError, "0.50"),
        ({"per_run_max_cost": "0"}, ValueError, "above 0"),
        ({"per_run_max_cost": Decimal("0.00")}, ValueError, "above 0"),
        ({"families": ["haiku"], "model": "x"}, ValueError, "families"),
        ({"families": "haiku"}, TypeError, r"\['haiku'\]"),
        ({"api_key_field": "B"}, ValueError, "api_key_secret"),
        ({"systm": "x"}, TypeError, "systm"),
    ],
)
def test_wrong_arguments_teach(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        nodus.ClaudeAgent("helper", **arguments)


@pytest.mark.parametrize("hosts", [[], "github.com"])
def test_an_allow_list_names_hosts(hosts: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"Egress"):
        nodus.Egress.allow(hosts)


def test_an_allow_list_in_the_spec() -> None:
    network = nodus.Egress.allow(["github.com", "api.github.com"])
    agent = nodus.ClaudeAgent("a", network=network, max_tokens=1024, image="nodus/agent-tools")
    assert agent.manifest["spec"] == {
        "model": {"access": "Nodus", "maxTokens": 1024},
        "network": {"egress": {"policy": "AllowList", "allow": ["github.com", "api.github.com"]}},
        "image": "nodus/agent-tools",
    }


@pytest.mark.req("NOD-511")
def test_a_failed_run_raises_with_its_reason(server: FakeServer) -> None:
    server.outcomes["x"] = Outcome("Failed", None, "SetupFailed", "npm ci ended with 1")
    with pytest.raises(nodus.RunFailedError, match="npm ci") as caught:
        nodus.ClaudeAgent("helper").remote("x")
    assert (caught.value.reason, caught.value.status.phase) == ("SetupFailed", "Failed")
    assert caught.value.run.status.phase == "Failed"


@pytest.mark.req("NOD-511", "NOD-034")
@pytest.mark.parametrize("reason", ["MaxCostReached", "NeedsResolution"])
def test_remote_does_not_wait_for_a_person(server: FakeServer, reason: str) -> None:
    server.outcomes["x"] = Outcome("Waiting", None, reason)
    with pytest.raises(nodus.RunBlockedError, match="cancel") as caught:
        nodus.ClaudeAgent("helper").remote("x")
    assert caught.value.reason == reason


def test_a_refused_agent_is_applied_again_by_the_next_use(server: FakeServer) -> None:
    agent = nodus.ClaudeAgent("helper")
    server.faults.append(Fault("PATCH", status=403, reason="Forbidden"))
    with pytest.raises(errors.ForbiddenError):
        agent.submit("x")
    assert agent.submit("x").status.phase
