"""line.asl.json takes every arm as its case table says."""

import graphlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from nodus_core.conversations.worker import MOST_ROUNDS

from tests.asl.arms import arms, taken
from tests.asl.interpreter import FUNCTION, Answer, Raises, Returns, run, waits

__all__ = ["waits"]

FOLDER = Path(__file__).parents[2] / "statemachines"
TEXT = (FOLDER / "line.asl.json").read_text().replace("${LineFunctionArn}", FUNCTION)
DEFINITION = json.loads(TEXT)
CASES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "cases" / "line.yaml").read_text())
ORDER = {"line": "conv", "generation": 1}


def answers(case: dict[str, Any]) -> list[Answer]:
    return [
        Raises(item["raises"]) if "raises" in item else Returns(item["returns"])
        for item in case["answers"]
        for _ in range(item.get("times", 1))
    ]


@pytest.mark.req("NOD-074")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_line_machine_does_what_its_case_says(case: dict[str, Any], waits: list[float]) -> None:
    history = run(TEXT, "Advance", answers(case), ORDER, waits)
    path = [name for name, _ in history.entered]
    assert path == case["path"]
    assert history.waits == case.get("waits", [])
    assert (history.status, history.error) == (case["ends"], case.get("error"))
    assert history.cause == case["cause"] if "cause" in case else True
    assert history.unplayed == 0
    assert taken(DEFINITION, path, history.failures, len(history.waits)) == case["arms"]
    assert {json.dumps(json.loads(call)) for call in history.calls} == {json.dumps(ORDER)}


def test_every_arm_has_a_case() -> None:
    shown = {arm for case in CASES for arm in case["arms"]}
    assert [arm for arm in arms(DEFINITION) if arm not in shown] == []
    assert shown <= set(arms(DEFINITION))
    assert len({case["name"] for case in CASES}) == len(CASES)


def test_states_carry_ids_only_however_long_the_line_goes_on(waits: list[float]) -> None:
    again: list[Answer] = [Returns({"next": "again"})] * 40
    history = run(TEXT, "Advance", [*again, Returns({"next": "done"})], ORDER, waits)
    sizes = {len(data) for name, data in history.entered if name == "Advance"}
    assert len(history.entered) == 2 * 41 + 1
    assert len(sizes) == 2  # the first input has no outcome yet; all others are alike
    assert history.events <= 7 * 41 + 10


def test_no_execution_reaches_the_events_that_it_may_have(waits: list[float]) -> None:
    """However each of its rounds went: with every retry of both kinds, and a wait behind it."""
    tried: list[Answer] = [Raises("Lambda.TooManyRequestsException")] * 6 + [Raises("Lambda.Unknown")] * 3
    worst: list[Answer] = [*tried, Returns({"next": "soon", "at": "2020-01-01T00:00:00.000Z"})]
    one, two = (
        run(TEXT, "Advance", [*worst * rounds, Returns({"next": "rest"})], ORDER, waits) for rounds in (1, 2)
    )
    assert (one.status, two.status) == ("SUCCEEDED", "SUCCEEDED")
    round_trip = two.events - one.events
    assert round_trip == 36
    assert one.events + round_trip * MOST_ROUNDS < 0.9 * 25_000


def test_no_cycle_avoids_the_function() -> None:
    """One that did not lead through the task would turn for ever without looking at the journal."""
    graph = {name: _followers(state) for name, state in DEFINITION["States"].items() if name != "Advance"}
    assert list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def _followers(state: dict[str, Any]) -> list[str]:
    rules = [*state.get("Choices", []), *state.get("Catch", [])]
    following = [
        *(rule["Next"] for rule in rules),
        *(state[key] for key in ("Next", "Default") if key in state),
    ]
    return [name for name in following if name != "Advance"]
