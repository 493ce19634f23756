"""AWS refuses, breaks and loses answers between the functions and DynamoDB, S3 and Step Functions: every run ends right.

A cloud of its own, with the plug of `localstack/faults`.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from localstack.faults import control
from localstack.faults.plug import LOG, SWITCH
from localstack.testing import SETTINGS, TestCloud, discard, new_cloud
from tests.crash.campaign.effects import Effects, effect
from tests.crash.campaign.report import by_itself
from tests.integration.runs.asked import requests
from tests.integration.runs.person import OPEN_MODEL, Person, Run, at_once, in_turn
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(600, func_only=True)

SEED = int(os.environ.get("SEED", "1"))
RATES = {"dynamodb": 0.08, "s3": 0.5, "states": 0.3}
LONG = "y" * 6000
"""A text that does not fit into a row: it is an object."""


@pytest.fixture(scope="module")
def refusing() -> Iterator[TestCloud]:
    cloud = new_cloud({**SETTINGS, SWITCH: "1"})
    try:
        cloud.run("up")
        yield cloud
    finally:
        discard(cloud)


@pytest.fixture
def person(refusing: TestCloud) -> Iterator[Person]:
    made = Person(refusing)
    yield made
    control.tell(refusing.state, do="weather", seed=0, rates={})
    made.leave()


@pytest.mark.req("NOD-073", "NOD-074", "NOD-075", "NOD-088", "INV-10", "INV-49", "FLD-05")
def test_runs_end_right_and_nothing_happens_twice_while_aws_refuses(person: Person) -> None:
    cloud = person.cloud
    person.agent("refused", model=OPEN_MODEL, system=f"You are careful. {LONG}")
    person.agent("routed", model={"access": "Nodus"})
    with Effects(cloud.state, cloud.state.folder / "effects") as effects:
        # Starts are refused from the first on: a run that goes well needs no later one.
        control.tell(cloud.state, do="weather", seed=SEED, rates={"states": 0.7})
        runs = [started(person, agent, number) for number, agent in enumerate(("refused", "routed") * 3)]
        control.tell(cloud.state, do="weather", seed=SEED, rates=RATES)
        ends = {run.name: until_ended(run) for run, _ in runs}
        control.tell(cloud.state, do="weather", seed=0, rates={})
        for run, tokens in runs:
            assert ends[run.name] == "Succeeded", (SEED, run.status(), run.steps())
            assert tokens[-1] in run.answer()
            # What a command printed is there once, and what it did was done once.
            assert [effects.outside().count(token) for token in tokens] == [1] * len(tokens), SEED
            charged_once(run)
    happened = by_itself(cloud.state.logs / LOG)
    print(f"SEED={SEED}", dict(happened))
    kinds = {name.partition(".")[0] for name in happened}
    assert kinds == {"dynamodb", "s3", "states"}
    assert {"dynamodb.conflict", "dynamodb.cut", "dynamodb.throttle"} <= set(happened)


@pytest.mark.req("NOD-073", "INV-12", "FLD-05")
@pytest.mark.parametrize("service", ["dynamodb", "s3", "states"])
def test_a_service_that_is_away_for_longer_than_anybody_is_patient_costs_time_only(
    person: Person, service: str
) -> None:
    cloud = person.cloud
    person.agent("patient", model=OPEN_MODEL, system=f"You are careful. {LONG}")
    with Effects(cloud.state, cloud.state.folder / f"effects-{service}") as effects:
        run, tokens = started(person, "patient", 0)
        until(lambda: effects.outside().count(tokens[0]), bool)
        control.tell(cloud.state, do="storm", name=service, seconds=25)
        assert until_ended(run) == "Succeeded", run.steps()
        assert [effects.outside().count(token) for token in tokens] == [1] * len(tokens)
        charged_once(run)


def started(person: Person, agent: str, number: int) -> tuple[Run, list[str]]:
    """A run whose commands leave a token each."""
    tokens = [f"{agent}.{os.urandom(3).hex()}.{index}" for index in (1, 2)]
    commands = [
        f"{effect(token, 1.0)}; printf '%6000s' x" if number == 0 else effect(token, 1.0) for token in tokens
    ]
    return person.start(agent, (at_once if number % 3 == 2 else in_turn)(*commands)), tokens


def until_ended(run: Run) -> str:
    """The phase in the end; the API may answer 5xx meanwhile, as it says it may."""

    def look() -> str:
        answer = run.person.call("GET", run.path)
        assert answer.status_code in (200, 500, 503), answer.text
        return str(answer.json()["status"]["phase"]) if answer.status_code == 200 else "?"

    return until(look, lambda phase: phase in ("Succeeded", "Failed", "Cancelled"))


def charged_once(run: Run) -> None:
    """Each step is there once; calls that were made again are counted, and no other was made twice."""
    steps = run.steps()
    assert max(Counter(step["name"] for step in steps).values()) == 1
    asked = Counter(entry["body"] for entry in requests(run.person.cloud, run.mark))
    assert sum(asked.values()) - len(asked) <= sum(step.get("resent", 0) for step in steps)
