"""The whole local cloud goes away in the middle of runs, politely or not, and comes back."""

import json
import os
import signal
import time
from collections.abc import Callable

import pytest

from localstack import daemons
from tests.integration.runs.asked import bodies, requests
from tests.integration.runs.machine import gate, room
from tests.integration.runs.person import FINAL, Person, Run, in_turn, names
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(900, func_only=True)


def stop(person: Person) -> None:
    person.cloud.run("down")


def kill(person: Person) -> None:
    """SIGKILL of the emulated AWS: nothing is saved on the way."""
    pid = person.cloud.cloud.pids["cloud"]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.req("NOD-073", "NOD-088", "NOD-089", "NOD-090", "FLD-05")
@pytest.mark.parametrize("end", [stop, kill])
def test_runs_go_on_or_ask_when_the_cloud_is_back(person: Person, end: Callable[[Person], None]) -> None:
    person.agent("traveller")
    done = person.start("traveller", "Say hello.")
    done.succeeded()
    before = done.cleared(), done.steps(), done.answer()
    commanding = person.start("traveller", in_turn("echo x >> did; " + gate()))
    commanding.reaches("tool.run_command.1")
    own = room(person.cloud, commanding.status()["sandbox"]["name"])
    did = own.says("did")
    thinking = person.start("traveller", "Think.")
    until(lambda: requests(person.cloud, thinking.mark), bool)

    port = daemons.scripted_port(person.cloud.state)
    end(person)
    person.cloud.run("up")
    assert daemons.scripted_port(person.cloud.state) == port  # where calls that are made again will go

    assert (done.status(), done.steps(), done.answer()) == before
    assert did == "x\n"
    settled(commanding)
    thinking.succeeded()
    assert thinking.answer() == "Thought."
    assert names(thinking.steps()) == ["sandbox", "model.1"]
    asked = requests(person.cloud, thinking.mark)
    assert len({entry["body"] for entry in asked}) == 1
    step = thinking.step("model.1")
    # Also counted: tries that reached nobody, or of which nobody knows.
    assert step["attempt"] >= len(asked)
    assert step["resent"] >= len(asked) - 1
    assert thinking.status()["cost"]["totalUSD"] == "0.003"


@pytest.mark.req("NOD-073", "NOD-085", "NOD-158", "FLD-05")
@pytest.mark.parametrize("end", [stop, kill])
def test_a_run_between_commands_goes_on_in_another_sandbox(
    person: Person, end: Callable[[Person], None]
) -> None:
    person.agent("settler", setup="echo ready > ready")
    run = person.start(
        "settler", "Think between, and insist:\n$ echo x >> did\n$ echo y >> did; cat ready did"
    )
    asked = until(lambda: requests(person.cloud, run.mark), lambda seen: len(seen) == 2)
    assert room(person.cloud, run.status()["sandbox"]["name"]).says("did") == "x\n"

    end(person)
    person.cloud.run("up")
    back = time.time()

    again = until(lambda: requests(person.cloud, run.mark), lambda seen: len(seen) > len(asked))
    print(f"taken up {again[len(asked)]['at'] - back:.1f} s after the cloud was back")
    run.succeeded()
    # In the new sandbox, once, and nothing of the old one was done again.
    assert run.answer() == "ready\ny\n[exit code 0]"
    shown = run.steps()
    assert names(shown) == [
        *("sandbox", "setup", "model.1", "tool.run_command.1", "model.2", "tool.run_command.2"),
        *("sandbox.2", "setup.2", "model.3", "tool.run_command.3", "model.4"),
    ]
    assert {step["state"] for step in shown if step["name"] != "turn-1.tool.run_command.2"} == {"Completed"}
    assert run.step("tool.run_command.2")["error"] == "SandboxGone"
    assert {step["attempt"] for step in shown if step["kind"] == "tool"} == {1}
    told = bodies(person.cloud, run.mark)[-1]["messages"]
    assert "A new sandbox takes its place" in json.dumps(told)


def settled(run: Run) -> None:
    """The command's sandbox is gone: its daemon could still say that it was ended, or the run asks. Never again."""
    status = until(run.status, lambda seen: seen["phase"] in (*FINAL, "Waiting"))
    step = run.step("tool.run_command.1")
    if status["phase"] == "Waiting":
        assert status["reason"] == "NeedsResolution"
        assert [entry["step"] for entry in status["unresolved"]] == ["turn-1.tool.run_command.1"]
        assert step["state"] == "Uncertain"
        run.cancel()
        assert run.ended()["phase"] == "Cancelled"
    else:
        assert status["phase"] == "Succeeded"
        # By the daemon's hand, or by the signal that everything in a sandbox gets before it goes.
        assert step["error"] in ("Cancelled", "Killed")
        assert "ended" in run.answer()
    assert step["attempt"] == 1
    assert names(run.steps()).count("tool.run_command.1") == 1
