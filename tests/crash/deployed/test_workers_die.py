"""Function workers that are killed, stopped and woken, and executions that are stopped, under a run at work."""

import signal

import boto3
import pytest

from tests.integration.runs.asked import requests
from tests.integration.runs.machine import gate, room, send, workers
from tests.integration.runs.person import Person, Run, in_turn, names
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(400, func_only=True)

BY_STEP_FUNCTIONS_S, BY_THE_SWEEP_S = 10.0, 70.0
"""Within these a dead worker's line is taken over: its execution sees the death, or only its lease ends."""

ROOM = 3
"""How much slower a busy machine may be."""

THINK = "Think between:\n$ echo x >> did\n$ cat did"
DONE = ["sandbox", "model.1", "tool.run_command.1", "model.2", "tool.run_command.2", "model.3"]


def thinking(person: Person, agent: str) -> tuple[Run, float]:
    """A run whose second model call is being made, and when that began (seconds)."""
    person.agent(agent)
    run = person.start(agent, THINK)
    asked = until(lambda: requests(person.cloud, run.mark), lambda seen: len(seen) == 2)
    return run, asked[1]["at"]


def made_again(person: Person, run: Run, since: float, bound_s: float, how: str) -> None:
    """Waits until the call is made again; prints and judges how long that took."""
    asked = until(lambda: requests(person.cloud, run.mark), lambda seen: len(seen) >= 3)
    seconds = asked[2]["at"] - since
    print(f"taken over by {how}: {seconds:.1f} s after the call that died")
    assert seconds < bound_s * ROOM
    assert asked[2]["body"] == asked[1]["body"]


def undisturbed(run: Run) -> None:
    """Every step once, each but the call that died at its first attempt, and the command's effect once."""
    run.succeeded()
    assert names(run.steps()) == DONE
    assert run.answer() == "x\n[exit code 0]"
    assert [step["attempt"] for step in run.steps()] == [1, 1, 1, 2, 1, 1]
    assert run.step("model.2")["resent"] == 1


@pytest.mark.req("NOD-073", "NOD-088", "FLD-05", "INV-08")
def test_a_worker_that_sleeps_longer_than_its_lease_writes_nothing_when_it_wakes(person: Person) -> None:
    # Without idle workers: the one that is there then is the run's.
    send(workers(person.cloud, "line"), signal.SIGKILL)
    run, since = thinking(person, "sleeper")
    (sleeper,) = workers(person.cloud, "line")
    send([sleeper], signal.SIGSTOP)
    try:
        made_again(person, run, since, BY_THE_SWEEP_S, "the sweep")
        undisturbed(run)
        before = run.status(), run.steps()
        log = person.cloud.state.logs / "functions.log"
        seen = log.stat().st_size
    finally:
        send([sleeper], signal.SIGCONT)
    late = f'"line":"{run.uid}","generation":1,"next":"done"'
    until(lambda: log.read_bytes()[seen:].decode(errors="replace"), lambda text: late in text)
    assert (run.status(), run.steps()) == before


@pytest.mark.req("NOD-073", "NOD-088", "FLD-05")
def test_a_stopped_execution_is_taken_up_by_the_next(person: Person) -> None:
    run, since = thinking(person, "aborted")
    cloud = person.cloud.cloud
    states = boto3.client("stepfunctions", **cloud.client_arguments())
    running = states.list_executions(stateMachineArn=cloud.output("LineMachineArn"), statusFilter="RUNNING")
    (arn,) = [each["executionArn"] for each in running["executions"] if run.uid in each["name"]]
    states.stop_execution(executionArn=arn, cause="an operator's mistake")
    made_again(person, run, since, BY_THE_SWEEP_S, "an event or the sweep")
    undisturbed(run)


@pytest.mark.req("NOD-073", "NOD-075", "FLD-05")
def test_a_command_outlives_the_workers_that_wait_for_it(person: Person) -> None:
    person.agent("patient")
    run = person.start("patient", in_turn("echo x >> did; " + gate(), "cat did"))
    run.reaches("tool.run_command.1")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    assert own.says("did") == "x\n"
    for function in ("line", "link", "line", "reactor", "link"):
        dead = workers(person.cloud, function)
        send(dead, signal.SIGKILL)
        until(
            lambda dead=dead, function=function: set(workers(person.cloud, function)) & set(dead),
            lambda left: not left,
        )
    # The line rests, or its worker waits; whoever hears of the command's end wakes it.
    own.open_gate()
    run.succeeded()
    assert run.answer() == "x\n[exit code 0]"
    assert names(run.steps()) == [
        "sandbox",
        "model.1",
        "tool.run_command.1",
        "model.2",
        "tool.run_command.2",
        "model.3",
    ]
    assert {step["attempt"] for step in run.steps()} == {1}
    assert len(requests(person.cloud, run.mark)) == 3


@pytest.mark.req("NOD-073", "FLD-05")
def test_a_line_at_rest_is_woken_although_the_reactor_died(person: Person) -> None:
    person.agent("resting")
    run = person.start("resting", in_turn("echo x >> did; " + gate(), "cat did"))
    run.reaches("tool.run_command.1")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    own.says("did")
    at_rest(person, run)
    send(workers(person.cloud, "reactor"), signal.SIGKILL)
    own.open_gate()
    run.succeeded()
    assert run.answer() == "x\n[exit code 0]"
    assert len(requests(person.cloud, run.mark)) == 3


def at_rest(person: Person, run: Run) -> None:
    """Waits until no worker holds the run's line."""
    cloud = person.cloud.cloud
    table = boto3.resource("dynamodb", **cloud.client_arguments()).Table(cloud.output("TableName"))

    def held() -> bool:
        row = table.get_item(Key={"pk": f"conv#{run.uid}", "sk": "head"}, ConsistentRead=True)["Item"]
        return row["line"].get("claimant") is not None  # type: ignore[union-attr,index] - a map

    until(held, lambda still: not still)
