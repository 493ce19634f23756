"""What a round asks the journal for: one look, which brings all that the next model call depends on."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.worker import Worker
from nodus_core.journal.store import Key, Row
from nodus_core.kernel.objects import Cooling
from nodus_core.kernel.times import moment
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import plays, says, target
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

CONTEXT = Context("agent", 1, "You are careful.", ModelChoice("OnDemand", "vendor/model"))
WORK = says("Work.", ("run_command", {"command": "true"}))
GATE = target("sonnet").endpoint


class Counted(MemoryStore):
    """Keeps which keys each read asked for while a worker is at work (daemons read through it, too)."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[Sequence[Key]] = []

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        self.reads.append(keys)
        return super().get(keys)


def status(world: World) -> dict[str, Any]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


def of_money_or_gate(keys: Sequence[Key]) -> bool:
    return any(key.pk.startswith(("cool#", "acct#")) or key.sk.startswith("budgets#") for key in keys)


def test_what_the_next_call_depends_on_is_read_with_the_look_at_a_quick_command() -> None:
    rounds, store = 6, Counted()
    world = World(plays([*[WORK] * rounds, says("done")]), store=store)
    world.admit(context=CONTEXT)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    asked = [keys for keys in store.reads if of_money_or_gate(keys)]
    alone = [keys for keys in asked if not any(key.sk.startswith("cmd#") for key in keys)]
    assert len(asked) >= rounds
    # The sandbox's payers; and of the first call, which follows no command, the payers and the gate.
    assert len(alone) == 3


@pytest.mark.parametrize("seconds", [0, 3], ids=["quick", "slow"])
def test_a_budget_that_is_made_while_a_command_runs_holds_for_the_next_call(seconds: int) -> None:
    made: list[str] = []

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        world.clock.advance(seconds)
        if not made:
            made.append(kind)
            world.budget("0")
        return exited()

    world = World(plays([WORK, says("done")]), behaviour)
    world.admit(context=CONTEXT)
    world.settle()
    assert len(world.models.requests) == 1
    assert (status(world)["phase"], status(world)["reason"]) == ("Waiting", "BudgetBlocked")
    world.budget("10")
    world.settle()
    assert status(world)["phase"] == "Succeeded"


@pytest.mark.req("FLD-04")
@pytest.mark.parametrize("seconds", [0, 3], ids=["quick", "slow"])
def test_a_waiting_time_that_others_are_told_while_a_command_runs_holds_for_the_next_call(
    seconds: int,
) -> None:
    until: list[Any] = []

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        world.clock.advance(seconds)
        now = world.clock.now()
        until.append(now + timedelta(seconds=600))
        world.outside.coolings.cool(Cooling(GATE, until[0]), now)
        return exited()

    world = World(plays([WORK, says("done")]), behaviour)
    world.admit(context=CONTEXT)
    directive = Worker(world.ports).advance("conv", 1, lambda: 900.0)
    assert directive.next == "soon"
    assert len(world.models.requests) == 1
    assert status(world)["reason"] == "ModelUnavailable"
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert moment(status(world)["finishedAt"]) >= until[0]


def test_the_model_that_was_chosen_shows_as_soon_as_it_is() -> None:
    shown: list[dict[str, Any]] = []

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        shown.append(status(world)["turns"][0])
        return exited()

    world = World(plays([WORK, says("done")]), behaviour)
    world.admit()
    world.settle()
    assert shown[0]["phase"] == "Running"
    final = status(world)["turns"][0]
    assert (shown[0]["model"], shown[0]["chosenBy"]) == (final["model"], final["chosenBy"])
