"""A run that does not know what became of a command, and a person who says so from the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localstack.testing import TestCloud
from tests.e2e.conftest import Place
from tests.integration.runs.machine import gate, room
from tests.integration.runs.person import Person, Run
from tests.integration.waiting import until

pytestmark = [pytest.mark.timeout(240, func_only=True), pytest.mark.integration]

STEP = "turn-1.tool.run_command.1"
EFFECT = "echo paid >> did; touch begun; " + gate()


@pytest.fixture
def person(local_cloud: TestCloud) -> Iterator[Person]:
    made = Person(local_cloud)
    yield made
    made.leave()


def parked(person: Person, terminal: Place) -> Run:
    """A run whose sandbox was killed in the middle of its first command."""
    person.agent("unsure")
    run = person.start("unsure", f"Think between, and insist:\n$ {EFFECT}\n$ ls; echo after")
    run.reaches("tool.run_command.1")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    until((own.workspace / "begun").exists, bool)
    own.kill()
    wait(terminal, run, "{.status.reason}=NeedsResolution")
    shown = terminal.nodus("get", f"agentrun/{run.name}", "-o", "jsonpath={.status.unresolved}")
    (entry,) = json.loads(shown)
    assert entry["step"] == STEP
    assert EFFECT in entry["input"]
    return run


def wait(terminal: Place, run: Run, state: str) -> None:
    terminal.nodus("wait", f"agentrun/{run.name}", f"--for=jsonpath={state}", "--timeout=2m")


def ended(terminal: Place, run: Run) -> list[dict[str, Any]]:
    """The steps of the run, which goes on in another sandbox and in which nothing was done again."""
    wait(terminal, run, "{.status.phase}=Succeeded")
    assert terminal.nodus("agentrun", "answer", run.name) == "after\n[exit code 0]"
    steps = json.loads(terminal.nodus("agentrun", "steps", run.name, "-o", "json"))["items"]
    assert [step["name"] for step in steps if step["kind"] == "sandbox"] == ["sandbox", "sandbox.2"]
    assert {step["attempt"] for step in steps if step["kind"] == "tool"} == {1}
    return steps


@pytest.mark.req("NODQ-55", "NOD-085", "NOD-090", "NOD-092", "INV-09", "INV-10")
def test_what_happened_is_said_with_its_output_and_who_comes_second_is_refused(
    person: Person, terminal: Place
) -> None:
    run = parked(person, terminal)
    (terminal.folder / "out.txt").write_text("paid 5\n")
    words = ("agentrun", "resolve", run.name, STEP)
    happened = (*words, "--happened", "--result", "out.txt", "--exit-code", "0", "--key", "mine")
    for _ in range(2):  # the second is the first again
        assert terminal.nodus(*happened) == f"agentrun/{run.name} {STEP} resolved\n"
    refused = terminal.nodus(*words, "--did-not-happen", code=1)
    assert "Error (Conflict): " in refused
    first = next(step for step in ended(terminal, run) if step["name"] == STEP)
    assert (first["state"], first["exitCode"]) == ("Completed", 0)
    assert first["resolution"]["outcome"] == "Happened"
    assert first["preview"].startswith("paid 5\n")


@pytest.mark.req("NODQ-55", "NOD-085", "NOD-092", "INV-10")
def test_what_did_not_happen_is_not_done_in_another_sandbox_unasked(person: Person, terminal: Place) -> None:
    run = parked(person, terminal)
    said = terminal.nodus("agentrun", "resolve", run.name, STEP, "--did-not-happen")
    assert said == f"agentrun/{run.name} {STEP} resolved\n"
    first = next(step for step in ended(terminal, run) if step["name"] == STEP)
    assert (first["state"], first["error"]) == ("Failed", "SandboxGone")
    assert first["resolution"]["outcome"] == "DidNotHappen"
