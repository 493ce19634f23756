"""Commands that print too much, print rubbish, leave children behind, or are ended."""

import json
from pathlib import Path

import pytest

from tests.integration.runs.asked import requests
from tests.integration.runs.machine import room
from tests.integration.runs.person import FINAL, Person, in_turn, names
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.mark.req("FLD-08")
def test_any_output_is_survived_counted_and_shown_as_text(person: Person) -> None:
    person.agent("loud")
    run = person.start("loud", "Endless output.")
    run.succeeded()
    endless, zeros, rubbish = (run.step(f"tool.run_command.{number}") for number in (1, 2, 3))
    assert (endless["state"], endless["error"]) == ("Failed", "TimedOut")
    assert endless["preview"].startswith("owl\nowl\n")
    assert (zeros["state"], zeros["exitCode"]) == ("Completed", 0)
    assert zeros["preview"].startswith("\\x00")
    assert rubbish["preview"] == "a\ufffdb\\x00\\x1b[31mred\n[exit code 0]"
    told = json.loads(requests(person.cloud, run.mark)[-1]["body"])["messages"][-1]["content"]
    texts = [part["content"] for part in told]
    assert all("bytes left out" in str(text) for text in texts[:2])
    assert (zeros["rawBytes"], rubbish["rawBytes"]) == (20 * 1024 * 1024, 13)
    assert 0 < zeros["droppedBytes"] < zeros["rawBytes"]
    assert len(str(texts)) < 600_000
    assert run.answer() == rubbish["preview"]


@pytest.mark.req("FLD-08")
def test_surrogates_of_arguments_become_one_character_or_are_replaced(person: Person) -> None:
    person.agent("loud")
    run = person.start("loud", "Surrogates.")
    run.succeeded()
    assert run.answer().startswith("\U0001f378\ufffd\n")


@pytest.mark.req("FLD-09")
def test_a_time_out_ends_the_whole_family_and_nobody_else(person: Person) -> None:
    person.agent("parent")
    run = person.start("parent", "Raise a family.")
    run.succeeded()
    assert (run.step("tool.run_command.1")["state"], run.step("tool.run_command.1")["error"]) == (
        "Failed",
        "TimedOut",
    )
    assert run.step("tool.run_command.2")["preview"].startswith("neighbour\n")
    lines = run.answer().splitlines()
    assert lines[0] == "0"  # none of the four is alive
    assert "begun" in lines
    assert "late.txt" not in lines


@pytest.mark.req("FLD-09", "NOD-045", "NOD-044", "NOD-495")
def test_cancelling_ends_the_command_the_run_and_its_sandbox(person: Person) -> None:
    person.agent("canceled")
    family = "(sleep 7051; echo late > late) & setsid sleep 7052 & echo x >> did; sleep 7053"
    run = person.start("canceled", "Ten times:\n$ " + family)
    run.reaches("tool.run_command.1")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    assert own.says("did") == "x\n"
    run.cancel()
    at_cancel = names(run.steps())
    status = run.ended()
    assert status["phase"] == "Cancelled"
    assert names(run.steps()) == at_cancel == ["sandbox", "model.1", "tool.run_command.1"]
    assert len(requests(person.cloud, run.mark)) == 1
    assert status["sandbox"]["phase"] == "Deleted"
    until(own.is_gone, bool)
    assert not alive("sleep\x00705")


@pytest.mark.req("NOD-044")
def test_deleting_a_run_at_work_removes_its_sandbox_and_the_run(person: Person) -> None:
    person.agent("deleted")
    run = person.start("deleted", in_turn("echo x >> did; sleep 7061"))
    run.reaches("tool.run_command.1")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    own.says("did")
    deleted = person.call("DELETE", run.path)
    assert (deleted.status_code, deleted.json()["status"]["phase"] in FINAL) == (202, False)
    until(lambda: person.call("GET", run.path).status_code, lambda code: code == 404)
    until(own.is_gone, bool)
    assert not alive("sleep\x007061")


def alive(words: str) -> bool:
    """Whether a process of this command line runs anywhere on the machine."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words.encode() in entry.read_bytes():
                return True
        except OSError:  # it has ended
            continue
    return False
