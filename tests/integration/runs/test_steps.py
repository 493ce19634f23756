"""What a run did, used and cost, as REST and the installed program show it."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from tests.integration.runs.person import OPEN_MODEL, Person, in_turn, names

pytestmark = pytest.mark.timeout(120, func_only=True)

FIVE = ("echo 1", "echo 2", "echo 3", "exit 4", "cat /etc/hostname")
NODUS = Path(sys.executable).with_name("nodus")


@pytest.mark.req(
    "NOD-057", "NOD-061", "NOD-063", "NOD-071", "NOD-072", "NOD-135", "NOD-145", "NOD-491", "NOD-473"
)
def test_a_turn_of_five_commands_in_order_with_one_model_and_its_cost(person: Person) -> None:
    person.agent("busy", model={"access": "Nodus"}, setup="true")
    run = person.start("busy", in_turn(*FIVE))
    status = run.succeeded()
    steps = run.steps()
    rounds = [f"{kind}.{number}" for number in range(1, 6) for kind in ("model", "tool.run_command")]
    assert names(steps) == ["sandbox", "setup", "route", *rounds, "model.6"]
    assert [step["index"] for step in steps] == list(range(1, len(steps) + 1))
    assert [step.get("exitCode") for step in steps if step["kind"] == "tool"] == [0, 0, 0, 4, 0]
    assert {step["state"] for step in steps} == {"Completed"}

    (turn,) = status["turns"]
    assert {step["model"] for step in steps if step["kind"] == "model"} == {turn["model"]}
    assert (turn["model"], turn["chosenBy"]) == ("scripted/claude-sonnet-5-5", "jev")
    asked = [step for step in steps if step["kind"] in ("route", "model")]
    assert all(step["usage"]["inputTokens"] > 0 and step["usage"]["outputTokens"] > 0 for step in asked)
    for word in ("inputTokens", "outputTokens"):
        assert turn["usage"][word] == sum(step["usage"][word] for step in asked)
    total = sum(Decimal(step["costUSD"]) for step in asked)
    assert total > 0
    assert Decimal(status["cost"]["totalUSD"]) == total == Decimal(turn["costUSD"])
    assert steps == run.steps()

    shown = subprocess.run(
        [str(NODUS), "agentrun", "steps", run.name, "-o", "json"],
        env=person.cloud.environment(),
        capture_output=True,
        check=True,
    )
    assert json.loads(shown.stdout)["items"] == steps


@pytest.mark.req("NOD-064", "NOD-063")
def test_an_on_demand_turn_is_not_routed(person: Person) -> None:
    person.agent("fixed", model=OPEN_MODEL)
    run = person.start("fixed", "Say hello.")
    (turn,) = run.succeeded()["turns"]
    assert names(run.steps()) == ["sandbox", "model.1"]
    assert turn["model"] == "scripted/openai/gpt-oss-20b"
    assert turn["usage"] == {"inputTokens": 10, "outputTokens": 2}
    # 10 tokens at $0.05 and 2 at $0.20 a million
    assert turn["costUSD"] == "0.0000009"
