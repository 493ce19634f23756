"""A run keeps what it was admitted with, whatever becomes of its agent; and its own choice changes nobody else."""

import pytest

from tests.integration.runs.asked import bodies
from tests.integration.runs.machine import gate, room
from tests.integration.runs.person import OPEN_MODEL, Person, in_turn

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.mark.req("NOD-025", "NOD-026", "NOD-036", "NOD-021", "NOD-022", "NOD-450")
def test_a_changed_agent_changes_later_runs_only(person: Person) -> None:
    before = person.agent(
        "pinned", system="You are the first.", perRunMaxCostUSD="0.50", env=[{"name": "WHO", "value": "one"}]
    )
    early = person.start("pinned", in_turn(gate(), "echo $WHO"))
    early.reaches("tool.run_command.1")
    changed = person.agent(
        "pinned",
        system="You are the second.",
        perRunMaxCostUSD="0.25",
        env=[{"name": "WHO", "value": "two"}],
        model=OPEN_MODEL,
    )
    first = before["metadata"]["generation"]
    assert changed["metadata"]["generation"] == first + 1
    late = person.start("pinned", in_turn("true", "echo $WHO"))
    late.succeeded()
    room(person.cloud, early.status()["sandbox"]["name"]).open_gate()
    early.succeeded()

    for run, generation, limit, word in (
        (early, first, "0.5", "one"),
        (late, first + 1, "0.25", "two"),
    ):
        status = run.status()
        assert status["agentGeneration"] == generation
        assert status["cost"]["limitUSD"] == limit
        assert status["sandbox"]["image"] == "nodus/agent-tools"
        assert status["sandbox"]["egress"] == "Deny"
        assert run.answer().splitlines()[0] == word
    systems = [str(body["system"]) for body in bodies(person.cloud, early.mark)]
    assert len(systems) == 3
    assert all("You are the first." in system for system in systems)
    assert {body["model"] for body in bodies(person.cloud, early.mark)} == {"claude-sonnet-5-5"}
    assert all("You are the second." in str(body) for body in bodies(person.cloud, late.mark))
    assert {body["model"] for body in bodies(person.cloud, late.mark)} == {"openai/gpt-oss-20b"}


@pytest.mark.req("NOD-035", "NOD-103", "NOD-064")
def test_a_runs_own_model_leaves_its_agent_as_it_was(person: Person) -> None:
    person.agent("managed", model={"access": "Nodus"})
    before = person.call("GET", "agents/managed").content
    run = person.start("managed", "Say hello.", model=OPEN_MODEL)
    (turn,) = run.succeeded()["turns"]
    assert turn["model"] == "scripted/openai/gpt-oss-20b"
    assert turn["chosenBy"] == "configured"
    assert [step["kind"] for step in run.steps()] == ["sandbox", "model"]
    assert person.call("GET", "agents/managed").content == before
