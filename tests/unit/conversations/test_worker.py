"""A line advances from admission to its end: what the journal and the person see."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.inference.errors import ModelRefusedRequest, ModelUnavailable
from nodus_core.inference.exchange import ToolResults, Usage
from nodus_core.journal.ports import TaskRequest
from nodus_core.kernel.errors import RetryableError
from nodus_core.kernel.states import SandboxState, TaskState
from nodus_core.kernel.times import stamp
from nodus_core.testing.clock import FakeClock
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited
from nodus_core.testing.world import NAMES, World

CONTEXT = Context("agent", 1, "You are careful.", ModelChoice("Nodus"))
LATE = FakeClock().now() + timedelta(seconds=5)
"""After the first questions whether the sandbox's task has ended."""

PYTHON = says("Let me look.", ("run_command", {"command": "python3 --version"}))


def python(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    return exited("Python 3.11.7\n")


def status(world: World) -> dict[str, Any]:
    obj = world.journal.object(NAMES)
    assert obj is not None
    return obj.status


@pytest.mark.req("NOD-031", "NOD-032", "NOD-055", "NOD-056", "NOD-071")
def test_a_run_thinks_runs_a_command_and_answers() -> None:
    world = World(plays([PYTHON, says("It is Python 3.11.7.")]), python)
    world.admit("Print the Python version.")
    world.settle()
    shown = status(world)
    assert shown["phase"] == "Succeeded"
    assert shown["answer"] == {"preview": "It is Python 3.11.7.", "turn": 1}
    assert shown["sandbox"]["phase"] == "Deleted"
    (turn,) = shown["turns"]
    assert (turn["model"], turn["chosenBy"]) == ("claude-haiku", "jev")
    # Three calls of 100 tokens in and 10 out, at one and two dollars per million.
    assert turn["costUSD"] == shown["cost"]["totalUSD"] == "0.00036"
    log = [entry.task for entry in world.journal.observations("conv-1")]
    assert log == ["sandbox", "route", "r1", "r1t0", "r2"]
    assert world.sandboxes.effects == [("conv-s1", "conv-1.r1t0")]


@pytest.mark.req("NOD-020", "NOD-158")
def test_setup_runs_once_before_the_model() -> None:
    world = World(plays([PYTHON, says("done")]), python)
    world.admit(context=replace(CONTEXT, setup="printf ready > ready.txt"))
    world.settle()
    log = [entry.task for entry in world.journal.observations("conv-1")]
    assert log == ["sandbox", "setup", "route", "r1", "r1t0", "r2"]
    assert [command for _, command in world.sandboxes.effects] == ["conv-1.setup", "conv-1.r1t0"]


@pytest.mark.req("NOD-163", "NOD-033")
def test_a_failed_setup_stops_the_run_before_any_model_call() -> None:
    world = World(plays([]), lambda kind, request: exited("no\n", 3))
    world.admit(context=replace(CONTEXT, setup="exit 3"))
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "SetupFailed")
    assert world.models.requests == world.models.routings == []
    assert status(world)["cost"]["totalUSD"] == "0"


@pytest.mark.req("NOD-015", "NOD-595", "NODQ-47")
def test_calls_beyond_the_turns_limit_are_refused_and_the_model_is_told() -> None:
    many = says("all", *[("run_command", {"command": f"echo {n}"}) for n in range(60)])
    world = World(plays([many, says("done")]))
    world.admit()
    world.settle()
    assert len(world.sandboxes.effects) == 50
    results = world.models.requests[1].messages[-1]
    assert isinstance(results, ToolResults)
    assert [result.is_error for result in results.results] == [False] * 50 + [True] * 10
    assert "tool limit" in results.results[-1].text


@pytest.mark.req("FLD-05")
def test_parallel_calls_are_told_in_the_order_of_their_declaration() -> None:
    calls = [("run_command", {"command": name}) for name in "abcdefgh"]
    world = World(plays([says("go", *calls), says("done")]), lambda kind, request: exited(request["command"]))
    world.admit()
    world.settle()
    results = world.models.requests[1].messages[-1]
    assert isinstance(results, ToolResults)
    assert [result.text[0] for result in results.results] == list("abcdefgh")


@pytest.mark.req("FLD-01")
def test_a_call_that_cannot_run_is_an_error_for_the_model_and_not_for_the_run() -> None:
    bad = says(
        "x",
        ("run_command", {}),
        ("run_command", {"command": 5}),
        ("no_such_tool", {}),
        ("run_command", {"command": "true", "cwdd": "/"}),
    )
    world = World(plays([bad, says("sorry")]))
    world.admit()
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert world.sandboxes.effects == []
    results = world.models.requests[1].messages[-1]
    assert isinstance(results, ToolResults)
    texts = [result.text for result in results.results]
    assert ["'command' is missing" in texts[0], "must be a string" in texts[1]] == [True, True]
    assert ["no tool 'no_such_tool'" in texts[2], "'cwdd'" in texts[3]] == [True, True]


@pytest.mark.req("FLD-03")
def test_a_cut_reply_runs_nothing_and_two_in_a_row_end_the_turn() -> None:
    cut = says("so", ("write_file", {"path": "a", "content": "b"}), stop="cut")
    world = World(plays([cut, cut]))
    world.admit()
    world.settle()
    assert world.sandboxes.effects == []
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "OutputLimitReached")
    assert "maxTokens" in status(world)["message"]
    assert status(world)["cost"]["totalUSD"] == "0.00036"


@pytest.mark.req("FLD-03")
def test_after_one_cut_reply_the_model_may_go_on() -> None:
    world = World(plays([says("so", ("run_command", {"command": "x"}), stop="cut"), PYTHON, says("ok")]))
    world.admit()
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert len(world.sandboxes.effects) == 1


@pytest.mark.req("NOD-128", "NOD-129", "NOD-130")
def test_a_call_that_does_not_fit_under_the_cap_is_not_made() -> None:
    world = World(plays([]))
    world.admit(cap="0.000001")
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Waiting", "MaxCostReached")
    assert world.models.requests == world.models.routings == []


@pytest.mark.req("NOD-059")
def test_without_a_router_sonnet_answers() -> None:
    world = World(plays([says("hi")]))
    original = world.models.call
    world.models.call = lambda request, key=None: (  # type: ignore[method-assign]
        (_ for _ in ()).throw(ModelUnavailable("down"))
        if request.target.family == "router"
        else original(request, key)
    )
    world.admit()
    world.settle()
    turn = status(world)["turns"][0]
    assert (turn["model"], turn["chosenBy"]) == ("claude-sonnet", "fallback")


def test_a_provider_that_is_busy_is_asked_again_and_one_that_refuses_is_not() -> None:
    answers = iter([ModelUnavailable("busy", 2.0), ModelUnavailable("busy", 45.0), says("hi")])
    world = World(lambda request, number: next(answers))
    world.admit()
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert world.journal.tasks("conv-1", ["r1"])["r1"].resent == 0

    world = World(plays([ModelRefusedRequest("no credit", 402)]))
    world.admit()
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "ModelRequestRefused")
    assert len(world.models.requests) == 1


@pytest.mark.req("NOD-085", "NOD-090", "NOD-034", "NOD-091")
def test_a_command_whose_sandbox_is_lost_parks_the_run_and_cancelling_works() -> None:
    world = World(plays([PYTHON]))

    def dies(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = False
        return exited()

    world.sandboxes._behaviour = dies
    world.admit()
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Waiting", "NeedsResolution")
    (open_point,) = shown["unresolved"]
    assert open_point["step"] == "turn-1.tool.run_command.1"
    assert "python3 --version" in open_point["input"]
    assert len(world.sandboxes.effects) == 1
    stop(world)
    assert status(world)["phase"] == "Cancelled"
    assert len(world.sandboxes.effects) == 1


@pytest.mark.req("NOD-045", "NOD-044")
def test_a_cancel_stops_further_steps_and_removes_the_sandbox() -> None:
    world = World(plays([PYTHON, says("never")]))

    def canceled(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        world.stop()
        return exited("late")

    world.sandboxes._behaviour = canceled
    world.admit()
    world.settle()
    assert status(world)["phase"] == "Cancelled"
    assert len(world.models.requests) == 1
    sandbox = world.journal.sandbox("conv-s1")
    assert sandbox is not None
    assert sandbox.state is SandboxState.GONE
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())
    assert world.journal.tasks("conv-1", ["r1t0"])["r1t0"].state in (
        TaskState.COMPLETED,
        TaskState.CANCELED,
    )


@pytest.mark.req("NOD-045")
@pytest.mark.parametrize("setup", [None, "sleep 600"])
def test_a_cancel_ends_a_command_that_would_run_on(setup: str | None) -> None:
    world = World(plays([PYTHON]), lambda kind, request: RUNNING)
    world.admit(context=replace(CONTEXT, setup=setup))
    waits = world.clock.sleep

    def until_it_runs(seconds: float) -> None:
        waits(seconds)
        if world.sandboxes.effects:
            world.stop()

    world.clock.sleep = until_it_runs  # type: ignore[method-assign]
    started = world.clock.now()
    world.settle()
    finished = status(world)["finishedAt"]
    assert status(world)["phase"] == "Cancelled"
    assert finished < stamp(started + timedelta(seconds=10))
    assert len(world.sandboxes.effects) == 1


@pytest.mark.req("NOD-054", "NOD-048")
def test_a_sandbox_that_does_not_start_is_tried_again() -> None:
    world = World(plays([says("hi")]))
    started = world.sandboxes.run

    def once(request: TaskRequest) -> str:
        task = started(request)
        if request.sandbox == "conv-s1":
            world.sandboxes.daemons[task].alive = False
        return task

    world.sandboxes.run = once  # type: ignore[method-assign]
    world.admit()
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["attempts"]) == ("Succeeded", 2)
    assert [entry.task for entry in world.journal.observations("conv-1")].count("sandbox") == 1


def test_a_daemon_that_connects_after_the_ring_is_rung_again() -> None:
    world = World(plays([PYTHON, says("hi")]), python)
    rung: list[str] = []
    world.sandboxes.ring = lambda connection: bool(rung.append(connection)) or True  # type: ignore[method-assign]
    waits = world.clock.sleep

    def connects_late(seconds: float) -> None:
        sandbox = world.outside.sandbox("conv-s1")
        waiting = sandbox is not None and (sandbox.state, sandbox.connection) == (SandboxState.RUNNING, None)
        if waiting and world.models.requests:
            world.outside.sandboxes.attach("conv-s1", "late", world.clock.now())
        waits(seconds)

    world.clock.sleep = connects_late  # type: ignore[method-assign]
    turn = world.sandboxes.turn
    world.clock._whenever = lambda: turn() if rung or not world.models.requests else None
    world.admit()
    world.settle()
    assert rung[0] == "late"
    assert status(world)["phase"] == "Succeeded"


def stop(world: World) -> None:
    """Cancels and lets the line finish."""
    world.stop()
    world.kicks.kick("conv")
    world.settle()


@pytest.mark.req("FLD-11")
def test_usage_that_no_call_can_have_taken_is_unknown_and_the_reserve_is_booked() -> None:
    world = World(plays([says("hi", usage=Usage(10**30, 10**30))]))
    world.admit()
    world.settle()
    task = world.outside.tasks("conv-1", ["r1"])["r1"]
    assert (task.cost, task.usage) == (None, None)
    head = world.outside.conversation("conv")
    assert head is not None
    assert task.reserved is not None
    assert task.reserved < head.spent < head.cap


def test_a_provider_that_asks_for_a_day_is_not_waited_for() -> None:
    world = World(plays([ModelUnavailable("come back tomorrow", 86_400.0)]))
    world.admit()
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "ModelUnavailable")
    assert "come back tomorrow" in status(world)["message"]


def test_a_provider_that_cannot_be_asked_for_a_task_costs_no_worker() -> None:
    world = World(plays([says("hi")]))
    find, turn, refused = world.sandboxes.find, world.sandboxes.turn, []

    def throttled(sandbox: str) -> str | None:
        # The first question comes before the task is started; those after it ask whether it has ended.
        if world.sandboxes.daemons and world.clock.now() < LATE:
            refused.append(sandbox)
            raise RetryableError("throttled")
        return find(sandbox)

    world.sandboxes.find = throttled  # type: ignore[method-assign]
    world.journal.sandboxes.note_task = lambda *_: None  # type: ignore[method-assign]
    world.clock._whenever = lambda: turn() if world.clock.now() > LATE else None
    world.admit()
    world.settle()
    assert refused
    assert status(world)["phase"] == "Succeeded"
