"""Follow-ups of a run as the documentation shows them, on the deployed local cloud."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Named, Place
from tests.unit.client.manifests import NEX_04, NEX_07

EXAMPLE = Path(__file__).parents[2] / "examples/follow-up/run.yaml"

pytestmark = [
    pytest.mark.timeout(180, func_only=True),
    pytest.mark.integration,
    pytest.mark.parametrize("place", ["cloud"], indirect=True),
]


def status(place: Place, run: str) -> dict[str, Any]:
    return json.loads(place.nodus("get", f"agentrun/{run}", "-o", "json"))["status"]


def wait(place: Place, run: str, path: str, value: str) -> None:
    place.nodus("wait", f"agentrun/{run}", f"--for=jsonpath={{{path}}}={value}", "--timeout=2m")


@pytest.mark.req("NOD-175", "NOD-179", "NOD-180", "NOD-182", "NOD-185", "NOD-069")
def test_nex_15_and_16_apply_send_and_cancel(place: Place, named: Named) -> None:
    (place.folder / "agent.yaml").write_text(NEX_04)
    (place.folder / "run.yaml").write_text(NEX_07.replace("spec:\n", "spec:\n  keepAlive: true\n"))
    run = named("hello-agent-run")
    place.nodus("apply", "-f", "agent.yaml")
    place.nodus("apply", "-f", "run.yaml")
    wait(place, run, ".status.reason", "MessageWait")
    first = status(place, run)

    words = ("agentrun", "send", run, "Now do the same for the staging logs", "--key", "staging-1")
    for _ in range(2):
        assert place.nodus(*words) == f"agentrun/{run} message staging-1 accepted as turn 2\n"
    wait(place, run, ".status.reason", "MessageWait")
    second = status(place, run)
    assert [turn["prompt"] for turn in second["turns"]][1:] == ["Now do the same for the staging logs"]
    assert second["sandbox"] == first["sandbox"]
    assert place.nodus("agentrun", "answer", run) == "There are 0 staging logs."
    steps = json.loads(place.nodus("agentrun", "steps", run, "-o", "json"))["items"]
    assert [step["name"] for step in steps].count("setup") == 1
    assert {step["name"].partition(".")[0] for step in steps} == {"sandbox", "setup", "turn-1", "turn-2"}

    place.nodus("cancel", f"agentrun/{run}")
    wait(place, run, ".status.phase", "Cancelled")
    assert status(place, run)["sandbox"]["phase"] == "Deleted"
    refused = place.nodus("agentrun", "send", run, "more", "--key", "late", code=1)
    assert "Error (AgentRunFinished): " in refused


@pytest.mark.req("NOD-188", "NOD-513", "NOD-138")
def test_nex_11_send_from_python(place: Place) -> None:
    printed = place.python(
        """
import nodus

agent = nodus.ClaudeAgent("e2e-follower", system="You are careful.", families=["haiku", "sonnet"])
run = agent.submit("Summarize the logs", keep_alive=True)
print(run.send("message", "Now the staging logs").turn, run.send("message", "Now the staging logs").turn)
status = run.wait(timeout=120)
print(status.reason, len(status.turns), run.answer())
print(run.cancel().phase)
with nodus.Client() as client:
    client.agentruns.delete(run.name)
    client.agents.delete("e2e-follower")
"""
    )
    assert printed == "2 2\nMessageWait 2 There are 0 staging logs.\nCancelled\n"


def test_the_example_of_the_repository(place: Place, named: Named) -> None:
    place.nodus("apply", "-f", "-", stdin=NEX_04)
    run = named("log-watch")
    place.nodus("apply", "-f", str(EXAMPLE))
    assert "accepted as turn 2" in place.nodus(
        "agentrun", "send", run, "-f", "-", stdin="Now the staging logs"
    )
    wait(place, run, ".status.reason", "MessageWait")
    assert place.nodus("agentrun", "answer", run) == "There are 0 staging logs."
