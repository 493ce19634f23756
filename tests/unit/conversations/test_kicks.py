"""Kicks may be lost, late and doubled: each line has one execution of each generation, and none when it is over."""

import pytest
from nodus_core.conversations.worker import Worker
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.world import World


@pytest.fixture
def world() -> World:
    made = World(plays([says("done")]))
    made.admit()
    made.executions.waiting.clear()
    return made


def bell(world: World) -> int:
    head = world.outside.conversation("conv")
    assert head is not None
    return head.bell


def test_a_line_that_is_held_is_rung_and_not_started(world: World) -> None:
    before = bell(world)
    assert not world.kicks.kick("conv")
    assert (world.executions.waiting, bell(world)) == ([], before + 1)


@pytest.mark.req("NOD-074")
def test_a_lease_that_has_ended_holds_nothing_and_a_second_kick_finds_the_new_one(world: World) -> None:
    world.clock.advance(31)
    assert world.kicks.kick("conv")
    assert not world.kicks.kick("conv")
    assert world.executions.waiting == [("conv", 2)]


def test_of_two_kicks_at_once_one_starts_an_execution(world: World) -> None:
    world.clock.advance(31)
    seen = world.outside.conversation("conv")
    assert seen is not None
    assert world.kicks.kick("conv")
    world.kicks.journal.conversation = lambda conversation: seen  # type: ignore[method-assign] - what it read before
    assert not world.kicks.kick("conv")
    assert world.executions.waiting == [("conv", 2)]


def test_a_start_that_is_lost_leaves_the_line_due(world: World) -> None:
    world.clock.advance(31)
    started = world.executions.start

    def lost(line: str, generation: int) -> None:
        raise StoreUnavailable("throttled")

    world.executions.start = lost  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        world.kicks.kick("conv")
    world.executions.start = started  # type: ignore[method-assign]
    world.settle()
    head = world.outside.conversation("conv")
    assert head is not None
    assert head.closed


def test_the_death_of_an_earlier_execution_is_no_news(world: World) -> None:
    assert not world.kicks.kick("conv", dead_generation=7)
    assert world.kicks.kick("conv", dead_generation=1)
    assert not world.kicks.kick("conv", dead_generation=1)
    assert world.executions.waiting == [("conv", 2)]


def test_a_kick_that_meets_the_end_of_its_line_leaves_nothing_due(world: World) -> None:
    seen = world.outside.conversation("conv")
    assert seen is not None
    Worker(world.ports).advance("conv", 1, lambda: 900.0)
    before = world.store.rows()  # type: ignore[attr-defined] - the in-memory double
    world.clock.advance(31)
    world.kicks.journal.conversation = lambda conversation: seen  # type: ignore[method-assign] - what it read before
    assert not world.kicks.kick("conv")
    assert not world.kicks.kick("conv", dead_generation=1)
    assert world.store.rows() == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("dead", [None, 1])
def test_nothing_is_started_for_a_run_that_is_over_or_never_was(world: World, dead: int | None) -> None:
    Worker(world.ports).advance("conv", 1, lambda: 900.0)
    world.settle()
    world.executions.waiting.clear()
    assert not world.kicks.kick("conv", dead_generation=dead)
    assert not world.kicks.kick("nobody", dead_generation=dead)
    assert world.executions.waiting == []
