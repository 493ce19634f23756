"""Every run comes to an end or says what it waits for, whatever its workers, its daemon and its model do."""

from dataclasses import replace
from typing import Any

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.worker import MOST_FAILURES, Worker
from nodus_core.inference.errors import ModelNotOffered
from nodus_core.inference.exchange import ModelRequest, ToolResults
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import DUE_SHARDS, conversation_key, sandbox_key
from nodus_core.journal.ports import TaskRequest
from nodus_core.journal.store import Present, Transaction, Update
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.states import SandboxState, TaskState
from nodus_core.testing.crash import Crash
from nodus_core.testing.scripted_model import Step, plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, Daemon, exited
from nodus_core.testing.world import NAMES, World

CONTEXT = Context("agent", 1, "You are careful.", ModelChoice("Nodus"))
ON_DEMAND = replace(CONTEXT, model=ModelChoice("OnDemand", "vendor/model"))
LOOK = says("look", ("run_command", {"command": "ls"}))


def status(world: World) -> dict[str, Any]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


def failures(world: World) -> int:
    head = world.outside.conversation("conv")
    assert head is not None
    return head.line.failures


# --- lines that wait, and lines that die ---


@pytest.mark.req("NOD-074", "INV-16")
def test_a_long_command_is_waited_for_and_never_taken_for_a_death() -> None:
    long = says("look", ("run_command", {"command": "make", "timeout": 7200}))
    world = World(plays([long, says("done")]), lambda kind, request: RUNNING)
    world.admit()
    takings = 0
    for _ in range(30):
        while world.executions.waiting:
            Worker(world.ports).advance(*world.executions.waiting.pop(0), lambda: 900.0)
            takings += 1
            assert failures(world) == 0
        world.clock.advance(61)
        world.kicks.kick("conv")
    for daemon in world.sandboxes.daemons.values():
        daemon.known = {name: exited("built\n") for name in daemon.known}
    world.settle()
    assert takings == 30
    assert status(world)["phase"] == "Succeeded"
    assert len(world.sandboxes.effects) == 1


@pytest.mark.req("INV-16")
def test_a_line_whose_workers_die_is_tried_ever_more_rarely_and_then_goes_on() -> None:
    world = World(lambda request, number: says("done"))
    world.admit()
    tried: list[float] = []

    def dies(request: ModelRequest, number: int) -> Step:
        tried.append(world.clock.now().timestamp())
        raise Crash("the worker ran out of memory")

    world.models.script = dies
    for _ in range(60):
        while world.executions.waiting and len(tried) < MOST_FAILURES + 3:
            try:
                Worker(world.ports).advance(*world.executions.waiting.pop(0), lambda: 900.0)
            except Crash:
                continue
        world.clock.advance(31)
        world.kicks.kick("conv")
    assert len(tried) == MOST_FAILURES + 3
    assert failures(world) >= MOST_FAILURES
    world.models.script = lambda request, number: says("done")
    world.settle()
    assert status(world)["phase"] == "Succeeded"


@pytest.mark.req("INV-16")
def test_a_line_that_got_stuck_before_its_sandbox_came_up_is_shown_as_stuck_and_then_goes_on() -> None:
    world = World(plays([LOOK, says("done")]))
    world.admit()
    run, deaths = world.sandboxes.run, 0

    def dies(request: TaskRequest) -> str:
        raise Crash("whatever it was")

    world.sandboxes.run = dies  # type: ignore[method-assign]
    while status(world).get("reason") != "InternalError":
        while world.executions.waiting:
            try:
                Worker(world.ports).advance(*world.executions.waiting.pop(0), lambda: 900.0)
            except Crash:
                deaths += 1
        world.clock.advance(31)
        world.kicks.kick("conv")
    assert (status(world)["phase"], deaths) == ("Waiting", MOST_FAILURES)
    world.sandboxes.run = run  # type: ignore[method-assign]
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert "message" not in status(world)


@pytest.mark.req("INV-16")
def test_a_call_that_kills_every_worker_is_made_eight_times_and_fails_the_turn() -> None:
    world = World(lambda request, number: Crash("the reply is too much for every worker"))
    world.admit()
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "ModelUnavailable")
    assert len(world.models.requests) == 8
    task = world.outside.tasks("conv-1", ["r1"])["r1"]
    assert (task.state, task.attempt, task.resent) == (TaskState.FAILED, 8, 7)


def test_a_line_that_cannot_be_read_is_tried_rarely_and_can_still_be_stopped() -> None:
    world = World(plays([says("done")]))
    world.admit()
    lost = Update(
        conversation_key("conv"),
        Present(),
        assign={"context": {"sha256": "0" * 64, "size": 9000, "head": "{"}},
    )
    world.store.commit(Transaction("lose", (lost,)), "lose")
    deaths = 0
    for _ in range(40):
        while world.executions.waiting:
            try:
                Worker(world.ports).advance(*world.executions.waiting.pop(0), lambda: 900.0)
            except Exception:  # noqa: BLE001 - whatever it dies of
                deaths += 1
        world.clock.advance(61)
        for shard in DUE_SHARDS:
            for _, line in world.outside.due(shard, world.clock.now()):
                world.kicks.kick(line)
    assert 3 < deaths < 15  # in 40 minutes, of which every one would have had its death
    world.stop()
    world.settle()
    assert status(world)["phase"] == "Cancelled"


# --- models that are not offered ---


@pytest.mark.req("INV-16", "NODQ-91")
@pytest.mark.parametrize("context", [CONTEXT, ON_DEMAND], ids=["managed", "on demand"])
def test_a_run_whose_model_is_not_served_fails_without_a_call(context: Context) -> None:
    world = World(plays([]))

    def refuses(*asked: Any) -> Any:
        raise ModelNotOffered("the catalogue has no such model")

    world.models.families = refuses  # type: ignore[method-assign]
    world.models.target = refuses  # type: ignore[method-assign]
    world.admit(context=context)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "ModelNotOffered")
    assert status(world)["message"] == "the catalogue has no such model"
    assert world.models.requests == world.models.routings == []
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())


# --- cancel at any moment ---


def stopped_while(world: World, what: str, *, setup: str | None = None) -> None:
    """Cancels when the named step has just begun, twice, and lets everything finish."""
    world.admit(context=replace(CONTEXT, setup=setup))
    original, done = world.journal.steps.record, list[str]()

    def then_stops(*arguments: Any, **more: Any) -> Any:
        after = original(*arguments, **more)
        if what in after.open and not done:
            done.append(what)
            world.stop()
            world.stop()
        return after

    world.journal.steps.record = then_stops  # type: ignore[method-assign]
    world.settle()
    assert done == [what]


@pytest.mark.req("NOD-045", "NOD-044", "NOD-091", "INV-16")
@pytest.mark.parametrize("what", ["sandbox", "setup", "route", "r1", "r1t0", "r2"])
def test_a_cancel_at_any_step_ends_the_run_and_its_sandbox(what: str) -> None:
    endless = {"setup": "sleep 1", "r1t0": "ls"}.get(what)
    world = World(
        plays([LOOK, says("done")]),
        lambda kind, request: RUNNING if request["command"] == endless else exited(),
    )
    stopped_while(world, what, setup="sleep 1")
    assert (status(world)["phase"], status(world)["reason"]) == ("Cancelled", "Cancelled")
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())
    run = world.outside.run("conv-1")
    assert run is not None
    assert run.open == frozenset()
    assert world.outside.tasks("conv-1", [what])[what].state in (TaskState.CANCELED, TaskState.COMPLETED)


@pytest.mark.req("NOD-045", "INV-12")
def test_a_cancel_between_turns_needs_no_kick() -> None:
    world = World(plays([says("first")]))
    world.admit(keep_alive=True)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Waiting", "MessageWait")
    world.stop()
    world.settle()  # nobody kicked it: the stop is due by itself
    assert status(world)["phase"] == "Cancelled"
    assert status(world)["answer"]["preview"] == "first"


@pytest.mark.req("NOD-045", "INV-16")
def test_a_daemon_that_ends_no_command_holds_no_cancelled_run_for_ever() -> None:
    world = World(plays([LOOK]), lambda kind, request: RUNNING)
    turn = world.sandboxes._turn

    def forgets(daemon: Daemon) -> None:
        """It starts what it is given and hears of no cancellation."""
        if daemon.sandbox not in {sandbox for sandbox, _ in world.sandboxes.effects}:
            turn(daemon)

    world.sandboxes._turn = forgets  # type: ignore[method-assign]
    stopped_while(world, "r1t0")
    assert status(world)["phase"] == "Cancelled"
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())


@pytest.mark.req("NOD-091", "NOD-090")
def test_a_run_that_is_held_with_other_work_open_can_be_cancelled() -> None:
    pair = says("two", ("run_command", {"command": "a"}), ("run_command", {"command": "b"}))
    world = World(plays([pair]))

    def dies(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = False
        return exited()

    world.sandboxes._behaviour = dies
    world.admit()
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Waiting", "NeedsResolution")
    states = {task.key: task.state for task in world.outside.all_tasks("conv-1")}
    assert TaskState.UNCERTAIN in (states["r1t0"], states["r1t1"])
    world.stop()
    world.settle()
    assert status(world)["phase"] == "Cancelled"
    after = {task.key: task.state for task in world.outside.all_tasks("conv-1")}
    assert after == states  # what is not known stays so, also after the end


# --- many calls, further turns, unnoted tasks ---


@pytest.mark.req("NODQ-47", "FLD-05", "INV-43")
def test_a_hundred_calls_of_one_message_are_placed_in_batches_and_told_in_order() -> None:
    many = says("all", *[("run_command", {"command": str(number)}) for number in range(100)])
    world = World(plays([many, says("done")]), lambda kind, request: exited(request["command"]))
    world.admit(context=replace(CONTEXT, max_tool_calls=1000))
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert len(world.sandboxes.effects) == len(set(world.sandboxes.effects)) == 100
    results = world.models.requests[1].messages[-1]
    assert isinstance(results, ToolResults)
    assert [result.text.splitlines()[0] for result in results.results] == [
        str(number) for number in range(100)
    ]
    sizes = [len(commit.operations) for commit in world.store.commits]  # type: ignore[attr-defined] - the double's
    assert max(sizes) <= 100


@pytest.mark.req("INV-16")
def test_a_later_turn_hears_of_a_call_that_its_lost_sandbox_never_ran() -> None:
    """The model hears of the lost call in the same worker, as in the first turn."""
    world = World(plays([LOOK, says("sorry")]))
    world.admit(keep_alive=True)
    world.settle()
    for daemon in world.sandboxes.daemons.values():
        daemon.alive = False
    world.say("Again.")
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Waiting", "MessageWait")
    results = world.models.requests[-1].messages[-1]
    assert isinstance(results, ToolResults)
    assert [result.is_error for result in results.results] == [True]
    assert failures(world) == 0
    assert len(world.sandboxes.effects) == 1


@pytest.mark.req("FLD-12")
def test_a_failed_turn_ends_its_conversation_also_with_an_input_unread() -> None:
    world = World(plays([]), lambda kind, request: exited("no\n", 3))
    world.admit(context=replace(CONTEXT, setup="exit 3"))
    world.say("And?", "more")
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "SetupFailed")
    assert status(world)["undelivered"] == [{"messageKey": "more", "reason": "SetupFailed"}]


@pytest.mark.req("FLD-10", "NOD-085")
def test_the_death_of_a_sandbox_whose_task_was_never_noted_is_found() -> None:
    world = World(plays([LOOK, says("never")]))

    def dies(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        unnoted = Update(sandbox_key("conv-s1"), Present(), remove=("task",))
        world.store.commit(Transaction("unnote", (unnoted,)), "unnote")
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = False
        return exited()

    world.sandboxes._behaviour = dies
    world.admit()
    world.settle()
    assert status(world)["reason"] == "NeedsResolution"
    sandbox = world.outside.sandbox("conv-s1")
    assert sandbox is not None
    assert sandbox.state is SandboxState.GONE


@pytest.mark.req("INV-12")
def test_an_execution_that_comes_after_the_end_takes_nothing_up() -> None:
    """Doubled or late: a line that it took and left would be due for ever, and no kick would ever reach it."""
    world = World(plays([says("done")]))
    world.admit()
    world.settle()
    before = world.store.rows()  # type: ignore[attr-defined] - the in-memory double
    head = world.outside.conversation("conv")
    assert head is not None
    for generation in range(1, head.line.generation + 1):
        assert Worker(world.ports).advance("conv", generation, lambda: 900.0).next == "done"
    fence = Fence("conv", head.line.generation, "late")
    with pytest.raises(ConditionFailed):
        world.journal.lines.take(head, None, fence, world.clock.now())
    assert world.store.rows() == before  # type: ignore[attr-defined]
