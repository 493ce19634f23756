"""A provider's waiting time holds for every call with the same endpoint and key, whichever run makes it (FLD-04)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.cooling import MOST_SPREAD_S, spread
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.worker import Worker
from nodus_core.inference.errors import ModelUnavailable
from nodus_core.inference.exchange import ModelRequest
from nodus_core.journal.store import Key, Row, Transaction
from nodus_core.kernel.objects import Cooling
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.times import stamp
from nodus_core.providers.verdicts import retry_after
from nodus_core.testing.clock import FakeClock
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import Step, plays, says, target
from nodus_core.testing.world import NAMES, World

CONTEXT = Context("agent", 1, "You are careful.", ModelChoice("OnDemand", "vendor/model"))
GATE = target("sonnet").endpoint
BUSY = ModelUnavailable("come later", 600.0, busy=True)


class OwnRows(MemoryStore):
    """The rows of one run; what all runs share stands in `common`."""

    def __init__(self, common: MemoryStore) -> None:
        super().__init__()
        self._common = common

    def commit(self, transaction: Transaction, token: str) -> None:
        shared = transaction.operations[0].key.pk.startswith("cool#")
        (self._common.commit if shared else super().commit)(transaction, token)

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        return self._common.get(keys) if keys[0].pk.startswith("cool#") else super().get(keys)


def status(world: World) -> dict[str, Any]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


def step(world: World, generation: int = 1) -> Directive:
    return Worker(world.ports).advance("conv", generation, lambda: 900.0)


def cool(world: World, seconds: float, gate: str = GATE) -> None:
    """Another run's provider asks for so much patience."""
    until = world.clock.now() + timedelta(seconds=seconds)
    world.outside.coolings.cool(Cooling(gate, until), world.clock.now())


@pytest.mark.req("FLD-04")
def test_six_runs_with_one_key_ask_once_and_wait_together() -> None:
    common, made = MemoryStore(), list[Any]()
    worlds = [World(plays([says("hi")]), store=OwnRows(common)) for _ in range(6)]
    for world in worlds:
        world.models.script = _noting(made, world, says("hi"))
        world.admit(context=CONTEXT)
    worlds[0].models.script = _noting(made, worlds[0], BUSY)
    start = worlds[0].clock.now()
    directives = [step(world) for world in worlds]
    assert [directive.next for directive in directives] == ["soon"] * 6
    assert len(made) == 1  # five were never made
    worlds[0].models.script = _noting(made, worlds[0], says("hi"))
    for world in worlds:
        world.settle()
        assert status(world)["phase"] == "Succeeded"
    assert len(made) == 7
    assert all(moment >= start + timedelta(seconds=600) for moment in made[1:])


def _noting(made: list[Any], world: World, answer: Step) -> Any:
    def script(request: ModelRequest, number: int) -> Step:
        made.append(world.clock.now())
        return answer

    return script


@pytest.mark.req("FLD-04")
def test_the_wait_and_its_end_are_shown() -> None:
    world = World(plays([says("hi")]))
    cool(world, 600)
    world.admit(context=CONTEXT)
    directive = step(world)
    shown = status(world)
    assert directive.at is not None
    assert (shown["phase"], shown["reason"]) == ("Running", "ModelUnavailable")
    assert directive.at.strftime("%Y-%m-%dT%H:%M:%S") in shown["message"]
    assert world.models.requests == []
    world.clock.sleep(world_seconds(world, directive))
    assert step(world).next == "done"
    after = status(world)
    assert after["phase"] == "Succeeded"
    assert {"reason", "message"} & after.keys() == set()
    assert len(world.models.requests) == 1


def world_seconds(world: World, directive: Directive) -> float:
    assert directive.at is not None
    return (directive.at - world.clock.now()).total_seconds()


@pytest.mark.req("FLD-04")
def test_a_worker_that_comes_too_early_makes_no_call_and_uses_up_no_attempt() -> None:
    world = World(plays([says("hi")]))
    world.admit(context=CONTEXT)
    for _ in range(20):
        cool(world, 120)
        while world.executions.waiting:
            step(world, world.executions.waiting.pop(0)[1])
        world.clock.advance(60)
        world.kicks.kick("conv")
    assert world.models.requests == []
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert world.outside.tasks("conv-1", ["r1"])["r1"].attempt == 2


@pytest.mark.req("FLD-04", "INV-16")
def test_a_message_during_the_wait_for_a_provider_uses_up_no_try() -> None:
    world = World(plays([ModelUnavailable("come later", 600.0)]))
    world.admit(context=CONTEXT, keep_alive=True)
    assert step(world).next == "soon"
    before = world.clock.now()
    while world.executions.waiting:
        world.executions.waiting.pop()
    for number in range(12):
        world.say(f"and {number}", key=f"key-{number}")
        while world.executions.waiting:
            directive = step(world, world.executions.waiting.pop(0)[1])
            assert directive.next == "soon"
            assert directive.at is not None
            assert directive.at >= before + timedelta(seconds=600)
        world.clock.advance(10)
    assert len(world.models.requests) == 1
    assert status(world)["reason"] == "ModelUnavailable"
    assert world.outside.tasks("conv-1", ["r1"])["r1"].attempt == 1
    world.models.script = lambda request, number: says("hi")
    world.clock.advance(600)
    world.kicks.kick("conv")
    step(world, world.executions.waiting.pop(0)[1])
    assert world.outside.tasks("conv-1", ["r1"])["r1"].attempt == 2
    assert status(world)["turns"][0]["phase"] == "Succeeded"


@pytest.mark.req("FLD-04", "INV-16")
def test_a_call_that_others_keep_waiting_is_given_up_after_an_hour() -> None:
    world = World(plays([]))
    world.admit(context=CONTEXT)
    for _ in range(40):
        cool(world, 300)
        while world.executions.waiting:
            step(world, world.executions.waiting.pop(0)[1])
        world.clock.advance(150)
        world.kicks.kick("conv")
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "ModelUnavailable")
    assert world.models.requests == []
    assert status(world)["cost"]["totalUSD"] == "0"


@pytest.mark.req("FLD-04")
def test_one_strange_waiting_time_holds_the_others_back_for_minutes_and_fails_none() -> None:
    """A provider that names days, once, to one run; another run with the same key comes meanwhile."""
    seconds = retry_after({"retry-after": "9" * 20}, FakeClock().now)
    assert seconds is not None
    world = World(plays([says("done")]))
    world.admit(context=CONTEXT)
    cool(world, seconds)
    for _ in range(60):
        while world.executions.waiting:
            step(world, world.executions.waiting.pop(0)[1])
        world.clock.advance(60)
        world.kicks.kick("conv")
    assert status(world)["phase"] == "Succeeded"
    assert len(world.models.requests) == 1


@pytest.mark.req("FLD-04", "NOD-045")
def test_a_cancel_takes_effect_during_the_wait() -> None:
    world = World(plays([]))
    cool(world, 1800)
    world.admit(context=CONTEXT)
    latest = world.clock.now() + timedelta(seconds=300)
    assert step(world).next == "soon"
    world.stop()
    world.settle()
    assert status(world)["phase"] == "Cancelled"
    assert status(world)["finishedAt"] < stamp(latest)


@pytest.mark.req("FLD-04", "NOD-059")
def test_a_router_that_is_to_be_left_alone_is_not_asked() -> None:
    world = World(plays([says("hi")]))
    cool(world, 5)
    world.admit(context=replace(CONTEXT, model=ModelChoice("Nodus")))
    world.settle()
    assert world.models.routings == []
    assert status(world)["turns"][0]["chosenBy"] == "fallback"
    assert status(world)["phase"] == "Succeeded"


@pytest.mark.req("FLD-04")
def test_another_key_waits_for_nobody() -> None:
    world = World(plays([says("hi")]))
    cool(world, 600, gate="another")
    world.admit(context=CONTEXT)
    assert step(world).next == "done"


def test_only_what_holds_for_all_calls_is_shared() -> None:
    world = World(plays([]))
    world.models.script = lambda request, number: ModelUnavailable("one poisoned prompt", 600.0)
    world.admit(context=CONTEXT)
    step(world)
    assert world.outside.cooling(GATE) is None
    assert world.outside.tasks("conv-1", ["r1"])["r1"].state is TaskState.RUNNING


def test_the_latest_of_all_times_stands_in_whatever_order_they_are_told() -> None:
    clock = FakeClock()
    for order in ([10, 500, 30], [500, 10, 30], [30, 10, 500]):
        world = World(plays([]))
        for seconds in order:
            cool(world, seconds)
        assert world.outside.cooling(GATE) == Cooling(GATE, clock.now() + timedelta(seconds=500))


def test_calls_that_waited_together_have_moments_of_their_own() -> None:
    world = World(plays([says("hi")]))
    world.admit(context=CONTEXT)
    world.settle()
    task = world.outside.tasks("conv-1", ["r1"])["r1"]
    shares = [spread(replace(task, run=f"run-{number}"), 600) for number in range(100)]
    assert len(set(shares)) == 100
    assert all(0 <= share <= MOST_SPREAD_S for share in shares)
    assert max(shares) - min(shares) > MOST_SPREAD_S / 2
    assert spread(task, 600) == spread(task, 600)
