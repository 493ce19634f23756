"""Runs over REST: admission, what it pins, what it refuses, apply and patch of a run."""

from typing import Any

import pytest
from nodus_core.conversations.context import Context
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.testing.scripted_model import plays, says

from tests.unit.api.rest import Rest, manifest

RUN = {"agent": "hello-agent", "input": "Print the Python version."}


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent(system="Be careful.", perRunMaxCostUSD="0.50")
    return made


def context_of(rest: Rest, name: str = "hello-run") -> Context:
    uid = rest.get(f"agentruns/{name}").json["metadata"]["uid"]
    head = rest.world.journal.conversation(uid)
    assert head is not None
    scope = next((scope for scope, _ in rest.world.payloads.objects if scope.id == uid), None)
    return Context.from_json(rest.world.payloads.get(scope, head.context))  # type: ignore[arg-type]


@pytest.mark.req("NOD-031", "NOD-014", "NOD-135", "NODQ-02", "NODQ-88", "NEX-07", "NEX-09")
def test_a_run_is_admitted_queued_and_started(rest: Rest) -> None:
    created = rest.run("hello-run")
    assert created.code == 201
    assert created.json["kind"] == "AgentRun"
    assert created.json["spec"] == RUN
    assert created.json["status"] == {
        "phase": "Queued",
        "agentGeneration": 1,
        "attempts": 0,
        "turns": [],
        "cost": {"totalUSD": "0", "limitUSD": "0.5", "computeUSD": "0"},
    }
    assert rest.get("agentruns/hello-run").json == created.json
    uid = created.json["metadata"]["uid"]
    assert rest.world.executions.waiting == [(uid, 1)]


@pytest.mark.req("NOD-031", "NOD-032", "NEX-08", "NEX-10")
def test_a_run_goes_from_the_wire_to_its_answer(rest: Rest) -> None:
    rest.run("hello-run", model={"access": "Nodus"})
    rest.world.settle()
    run = rest.get("agentruns/hello-run").json
    assert run["status"]["phase"] == "Succeeded"
    assert run["spec"] == {**RUN, "model": {"access": "Nodus"}}
    answer = rest.get("agentruns/hello-run/answer")
    assert (answer.code, answer.text) == (200, "done")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert {step["state"] for step in rest.get("agentruns/hello-run/steps").json["items"]} == {"Completed"}


@pytest.mark.req("NOD-025", "NOD-036", "NOD-131")
def test_what_a_run_needs_is_pinned_when_it_is_admitted(rest: Rest) -> None:
    spec: dict[str, Any] = {
        "system": "S",
        "workingDir": "/work/x",
        "setup": "true",
        "env": [{"name": "A", "value": "1"}],
        "maxToolCalls": 7,
        "maxParallelAgents": 3,
        "continuity": {"mode": "Snapshotted", "stateDir": "/work/x"},
        "model": {"access": "Nodus", "families": ["haiku"], "maxTokens": 99},
        "perRunMaxCostUSD": "0.25",
    }
    rest.agent(**spec)
    rest.run("r1", parallelism=2)
    rest.agent(system="later", perRunMaxCostUSD="9")
    pinned = context_of(rest, "r1")
    assert (pinned.agent, pinned.agent_generation, pinned.system) == ("hello-agent", 2, "S")
    assert (pinned.working_dir, pinned.setup, pinned.env) == ("/work/x", "true", {"A": "1"})
    assert (pinned.max_tool_calls, pinned.max_parallel_agents, pinned.parallelism) == (7, 3, 2)
    assert (pinned.state_dir, pinned.egress, pinned.image) == ("/work/x", "Deny", "nodus/agent-tools")
    assert (pinned.model.access, pinned.model.families, pinned.model.max_tokens) == ("Nodus", ("haiku",), 99)
    assert rest.get("agentruns/r1").json["status"]["cost"]["limitUSD"] == "0.25"
    rest.run("r2")
    status = rest.get("agentruns/r2").json["status"]
    assert (status["agentGeneration"], status["cost"]["limitUSD"]) == (3, "9")


@pytest.mark.req("NOD-014", "NOD-015", "NOD-021", "NOD-022")
def test_defaults_are_applied_at_admission_and_never_written_into_the_agent(rest: Rest) -> None:
    agent = rest.agent("plain").json
    rest.run("r", agent="plain")
    pinned = context_of(rest, "r")
    assert pinned.model == Context("", 1, "", pinned.model).model
    assert (pinned.model.access, pinned.model.max_tokens, pinned.max_tool_calls) == ("Nodus", 4096, 50)
    assert rest.get("agentruns/r").json["status"]["cost"]["limitUSD"] == "1"
    assert rest.get("agents/plain").json == agent


@pytest.mark.req("NOD-035", "NODQ-30", "NOD-103")
def test_a_runs_own_model_replaces_the_agents_as_a_whole(rest: Rest) -> None:
    rest.agent(model={"access": "Nodus", "families": ["haiku"], "maxTokens": 99})
    before = rest.get("agents/hello-agent").text
    rest.run("r", model={"access": "OnDemand", "name": "openai/gpt-oss-20b"})
    model = context_of(rest, "r").model
    assert (model.access, model.name, model.families) == ("OnDemand", "openai/gpt-oss-20b", ())
    assert model.max_tokens == 4096
    assert rest.get("agents/hello-agent").text == before


@pytest.mark.req("NOD-037", "NOD-024", "NOD-038", "NEX-44")
def test_an_agent_that_is_missing_or_stopped_takes_no_run(rest: Rest) -> None:
    stored = rest.commits
    missing = rest.run(agent="nope")
    assert (missing.code, missing.json["reason"]) == (404, "NotFound")
    assert "nope" in missing.json["message"]
    assert missing.json["details"]["name"] == "nope"
    assert rest.commits == stored
    rest.patch("agents/hello-agent", {"spec": {"state": "Stopped"}})
    stored = rest.commits
    stopped = rest.run()
    assert (stopped.code, stopped.json["reason"]) == (409, "AgentStopped")
    assert rest.commits == stored
    assert rest.world.executions.names == set()
    rest.patch("agents/hello-agent", {"spec": {"state": None}})
    assert rest.run().code == 201


@pytest.mark.req("NOD-030", "NODQ-22", "NEX-12")
def test_a_template_is_used_where_the_project_has_no_agent_of_that_name(rest: Rest) -> None:
    rest.directory.create_organization("nodus")
    rest.directory.create_project("nodus", "nodus")
    owner = rest.new_key("nodus")
    body = manifest("Agent", "claude-assistant", {"system": "template"})
    rest.apply("agents/claude-assistant", body, project="nodus", key=owner)
    assert rest.run("r1", agent="claude-assistant").code == 201
    assert context_of(rest, "r1").system == "template"
    assert rest.get("agentruns/r1").json["metadata"]["namespace"] == "web"
    rest.agent("claude-assistant", system="own")
    rest.run("r2", agent="claude-assistant")
    assert context_of(rest, "r2").system == "own"


NOT_YET_IN_A_RUN: list[tuple[dict[str, Any], str]] = [
    ({"group": "g", "taskKey": "a", "dependsOn": ["b"]}, "spec.group"),
    ({"model": {"access": "OnDemand", "name": "endpoint/my-ep"}}, "spec.model"),
]
NOT_YET_IN_AN_AGENT: list[tuple[dict[str, Any], str]] = [
    (
        {
            "source": {"git": {"repo": "o/r"}},
            "continuity": {"mode": "Snapshotted", "stateDir": "/workspace/data"},
        },
        "spec.continuity.stateDir",
    ),
    ({"image": "public.ecr.aws/docker/library/python:3.12"}, "spec.image"),
]


@pytest.mark.parametrize(("spec", "field"), NOT_YET_IN_A_RUN)
def test_a_run_that_needs_what_is_not_there_yet_is_refused_by_name(
    rest: Rest, spec: dict[str, Any], field: str
) -> None:
    stored = rest.commits
    refused = rest.run(**spec)
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "NotAvailable", [field])
    assert rest.commits == stored
    assert rest.world.payloads.objects == {}


@pytest.mark.parametrize(("spec", "word"), NOT_YET_IN_AN_AGENT)
def test_an_agent_may_hold_what_its_runs_cannot_have_yet(rest: Rest, spec: dict[str, Any], word: str) -> None:
    assert rest.agent(**spec).code == 200
    stored = rest.commits
    refused = rest.run()
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "NotAvailable", ["spec.agent"])
    assert word in refused.json["message"]
    assert rest.commits == stored


@pytest.mark.req("NOD-022", "NOD-036", "NOD-457", "NOD-461")
def test_a_run_pins_its_agents_egress(rest: Rest) -> None:
    rest.agent(
        network={"egress": {"policy": "AllowList", "allow": ["a.example.com", "*.b.example.com:8443"]}}
    )
    rest.run("listed")
    rest.agent(network={"egress": {"policy": "Open"}})
    rest.run("open")
    rest.agent(network=None)
    rest.run("default")
    pinned = [context_of(rest, name) for name in ("listed", "open", "default")]
    assert [(each.egress, each.allow) for each in pinned] == [
        ("AllowList", ("a.example.com", "*.b.example.com:8443")),
        ("Open", ()),
        ("Deny", ()),
    ]


def test_what_changes_nothing_may_be_said(rest: Rest) -> None:
    rest.agent(network={"egress": {"policy": "Deny"}}, secrets=[], image="nodus/agent-tools")
    assert rest.run(keepAlive=False, parallelism=6, deadline=None).code == 201


@pytest.mark.req("FLD-17", "NODQ-21")
def test_a_deadline_in_the_past_is_refused_as_such(rest: Rest) -> None:
    for late in ("2029-12-31T23:59:59Z", "2030-01-01T05:44:59+05:45", "0s"):
        refused = rest.run(deadline=late)
        assert (refused.code, refused.json["reason"]) == (422, "Invalid"), late
        assert "future" in refused.json["message"]


@pytest.mark.req("NOD-052")
def test_applying_an_unchanged_run_starts_nothing(rest: Rest) -> None:
    body = manifest("AgentRun", "r", RUN)
    created = rest.apply("agentruns/r", body)
    assert created.code == 201
    rest.world.settle()
    done = rest.get("agentruns/r").json
    stored = rest.commits
    again = rest.apply("agentruns/r", body)
    assert (again.code, again.json) == (200, done)
    assert rest.apply("agentruns/r", created.json).code == 200
    assert rest.commits == stored
    assert len(done["status"]["turns"]) == 1


@pytest.mark.req("NOD-051")
def test_an_admitted_runs_spec_cannot_change(rest: Rest) -> None:
    rest.run("r")
    stored = rest.commits
    for refused in (
        rest.patch("agentruns/r", {"spec": {"input": "x"}}),
        rest.apply("agentruns/r", manifest("AgentRun", "r", {**RUN, "input": "x"})),
    ):
        assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", ["spec.input"])
        assert "immutable" in refused.json["message"]
    both = rest.patch("agentruns/r", {"spec": {"agent": "b", "parallelism": 2}})
    assert both.fields == ["spec.agent", "spec.parallelism"]
    assert rest.commits == stored
    labelled = rest.patch("agentruns/r", {"metadata": {"labels": {"a": "b"}}}).json
    assert (labelled["metadata"]["labels"], labelled["spec"]) == ({"a": "b"}, RUN)


def test_a_name_that_is_taken_is_refused(rest: Rest) -> None:
    rest.run("r")
    stored = rest.commits
    refused = rest.run("r")
    assert (refused.code, refused.json["reason"]) == (409, "AlreadyExists")
    assert "delete it first" in refused.json["message"]
    assert "apply" not in refused.json["message"]
    assert rest.commits == stored


@pytest.mark.req("NOD-003")
def test_runs_of_one_name_in_two_projects_are_two_runs(rest: Rest) -> None:
    rest.apply("agents/hello-agent", manifest("Agent", "hello-agent", {}), project="lab")
    body = manifest("AgentRun", "r", RUN)
    one = rest.post("agentruns", body).json["metadata"]
    other = rest.post("agentruns", body, project="lab").json["metadata"]
    assert (one["namespace"], other["namespace"]) == ("web", "lab")
    assert one["uid"] != other["uid"]


def test_a_start_that_is_lost_does_not_fail_the_request() -> None:
    rest = Rest(plays([says("done")]))
    rest.agent()

    class Down:
        def start(self, line: str, generation: int) -> None:
            raise StoreUnavailable("Step Functions does not answer")

    object.__setattr__(rest.gate.service.admission, "executions", Down())
    assert rest.run("r").code == 201
    rest.world.settle()  # the sweeper alone finds it
    assert rest.get("agentruns/r").json["status"]["phase"] == "Succeeded"


@pytest.mark.req("NOD-039", "NOD-589", "NODQ-76", "FLD-06")
def test_inputs_are_bounded_in_exact_bytes(rest: Rest) -> None:
    letters = "é" * 131_072
    assert len(letters.encode()) == 262_144
    assert rest.run("fits", input=letters).code == 201
    assert rest.get("agentruns/fits").json["spec"]["input"] == letters
    stored, kept = rest.commits, len(rest.world.payloads.objects)
    refused = rest.run("too-large", input=letters + "x")
    assert (refused.code, refused.json["reason"], refused.fields) == (413, "PayloadTooLarge", ["spec.input"])
    assert "262145" in refused.json["message"]
    assert "262144" in refused.json["message"]
    assert (rest.commits, len(rest.world.payloads.objects)) == (stored, kept)
    assert rest.agent(system=letters).code == 200
    assert rest.agent(system=letters + "x").code == 413


@pytest.mark.req("NOD-010", "NOD-049")
def test_long_texts_reach_the_model_whole() -> None:
    rest = Rest(plays([says("done")]))
    system, prompt = "s" * 100_000, "p" * 200_000
    rest.agent(system=system)
    rest.run("r", input=prompt)
    rest.world.settle()
    request = rest.world.models.requests[0]
    assert request.system.startswith(system)
    assert prompt in str(request.messages[0])
    assert rest.get("agentruns/r").json["spec"]["input"] == prompt
