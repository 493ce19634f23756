"""The end of a run's texts: 30 days after its end, whole, whatever dies meanwhile; the record of it stays."""

from datetime import timedelta
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.reading import Reading
from nodus_core.conversations.removal import purge
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.stepping import Stepping
from nodus_core.conversations.sweeper import Sweeper
from nodus_core.journal.journal import Journal
from nodus_core.journal.keeping import KEPT
from nodus_core.journal.ports import CrashPoints, NoCrash
from nodus_core.kernel.errors import Refusal
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

PLACE = Place(NAMES.org, NAMES.project, "alice")
CANARY = "canary-7f3a"
LONG = CANARY + "x" * 9000
CONTEXT = Context("agent", 1, CANARY, ModelChoice("Nodus"))


def ended_run() -> World:
    """A run whose prompt, commands, outputs and answer, short and long, all hold the canary."""
    script = plays(
        [
            says(CANARY, ("run_command", {"command": CANARY}), ("run_command", {"command": LONG})),
            says("Again.", ("read_file", {"path": CANARY})),
            says(LONG),
        ]
    )
    outputs = {CANARY: CANARY, LONG: LONG}
    world = World(
        script,
        lambda kind, request: (
            exited(outputs[request["command"]]) if kind == "exec" else {"state": "exited", "content": LONG}
        ),
    )
    world.admit(CANARY, context=CONTEXT)
    world.settle()
    return world


def texts_left(world: World) -> int:
    """Places of the journal and the payload store, as they are now, that hold the canary."""
    store = world.store
    assert isinstance(store, MemoryStore)
    keys = {operation.key for commit in store.commits for operation in commit.operations}
    rows = [repr(store.get([key])[0]) for key in keys]
    return sum(CANARY in text for text in (*rows, *world.payloads.objects.values()))


def sweep(world: World, crash: CrashPoints | None = None, *, seconds: float = 20.0) -> None:
    journal = Journal(world.store, world.ids, crash or NoCrash())
    values = Reclaim(world.outside, world.vault, world.clock)
    expiry = Expiry(journal, world.payloads, world.clock)
    sweeper = Sweeper(world.kicks, world.task_sweep, world.pool, values, expiry, world.batches, world.builds)
    sweeper.sweep(lambda: seconds)


def shelf(world: World) -> Shelf:
    return Shelf(world.outside, world.payloads, world.clock)


def steps(world: World) -> list[dict[str, Any]]:
    return Stepping(shelf(world)).page(PLACE, NAMES.name, 100, None).items


def shown(world: World) -> dict[str, Any]:
    return Reading(shelf(world)).object(PLACE, "AgentRun", NAMES.name)


def later(world: World, by: timedelta = KEPT) -> World:
    world.clock.advance(by.total_seconds() + 60)
    return world


@pytest.mark.req("NOD-077", "NOD-594", "NODQ-56")
def test_texts_are_gone_after_30_days_and_the_record_stays() -> None:
    world = ended_run()
    assert timedelta(days=30) == KEPT
    before, record = shown(world), steps(world)
    later(world, timedelta(days=29))
    sweep(world)
    assert (shown(world), steps(world)) == (before, record)
    later(world, timedelta(days=1))
    sweep(world)
    assert texts_left(world) == 0
    told = [
        {name: value for name, value in step.items() if name not in ("input", "preview")} for step in record
    ]
    assert steps(world) == told
    after = shown(world)["status"]
    kept = ("phase", "cost", "startedAt", "finishedAt", "attempts")
    assert {name: after[name] for name in kept} == {name: before["status"][name] for name in kept}
    assert "answer" not in after
    assert "30 days" in after["message"]
    with pytest.raises(Refusal, match="30 days") as refused:
        Reading(shelf(world)).answer(PLACE, NAMES.name)
    assert refused.value.reason == "PayloadExpired"


def points() -> list[tuple[str, int]]:
    """Every passing of every crash point of an expiry."""
    seen = CrashOnce()
    sweep(later(ended_run()), seen)
    return seen.passings()


PLACES = points()


def test_every_commit_of_an_expiry_is_among_them() -> None:
    commits = {point.rpartition(".")[0] for point, _ in PLACES}
    assert commits == {"replace-object", "strip-texts", "purge", "keeping-over"}


@pytest.mark.req("NOD-077", "INV-12")
@pytest.mark.parametrize(("point", "passing"), PLACES)
def test_an_expiry_that_is_killed_is_finished_by_the_next_sweep(point: str, passing: int) -> None:
    world = later(ended_run())
    with pytest.raises(Crash):
        sweep(world, CrashOnce(point, passing))
    if shown(world)["status"].get("message"):
        with pytest.raises(Refusal, match="30 days"):
            Reading(shelf(world)).answer(PLACE, NAMES.name)
        assert all("preview" not in step for step in steps(world))
    sweep(world)
    assert texts_left(world) == 0
    undisturbed = later(ended_run())
    sweep(undisturbed)
    assert steps(world) == steps(undisturbed)


def test_an_expiry_without_time_stops_and_goes_on_later() -> None:
    world = later(ended_run())
    assert not Expiry(world.outside, world.payloads, world.clock).expire("conv", lambda: 0.0)
    assert texts_left(world) > 0
    sweep(world)
    assert texts_left(world) == 0


@pytest.mark.parametrize("expired", [False, True])
def test_a_run_is_deleted_whole_before_and_after_its_texts_expire(expired: bool) -> None:
    world = ended_run()
    if expired:
        sweep(later(world))
    obj = world.outside.object(NAMES)
    assert obj is not None
    purge(world.outside, world.payloads, world.clock, obj)
    assert world.outside.object(NAMES) is None
    assert texts_left(world) == 0
    sweep(later(world))  # finds nothing that is due, and no row comes back
    assert world.outside.conversation("conv") is None
    assert list(world.outside.all_tasks("conv-1")) == []
