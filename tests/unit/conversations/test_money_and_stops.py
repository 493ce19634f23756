"""A stop that comes while a run's money moves: neither undoes the other."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.inference.errors import ModelOutcomeUnknown, ModelUnavailable
from nodus_core.inference.exchange import ModelRequest
from nodus_core.testing.scripted_model import Step, plays, says
from nodus_core.testing.scripted_sandbox import RUNNING
from nodus_core.testing.world import NAMES, World


@dataclass
class OnceAt:
    """Crash points at which something happens outside, once, instead of a crash."""

    point: str
    then: Callable[[], None] | None = None

    def reach(self, point: str) -> None:
        if point == self.point and self.then is not None:
            then, self.then = self.then, None
            then()


@pytest.mark.req("NOD-045", "NOD-185", "INV-16", "FLD-11")
@pytest.mark.parametrize("end", [("Cancelled", "Cancelled"), ("Failed", "DeadlineExceeded")])
def test_a_stop_is_not_undone_by_a_run_that_gives_its_money_back(end: tuple[str, str]) -> None:
    moment = OnceAt("give-back.before")
    model = plays([says("wait", ("run_command", {"command": "sleep 3600"})), says("done")])
    world = World(model, lambda kind, request: RUNNING, crash=moment)
    world.budget("5.00")
    world.admit(lifetime=1800.0)

    def stop() -> None:
        if end[0] == "Cancelled":
            world.stop()
        else:
            world.clock.advance(1800)
            world.kicks.kick("conv")

    moment.then = stop
    world.settle()
    assert moment.then is None, "the run gave nothing back while its command ran"
    obj, account = world.outside.object(NAMES), world.outside.accounts.account("budget")
    assert obj is not None
    assert account is not None
    assert (obj.status["phase"], obj.status["reason"]) == end
    assert account.held == 0
    assert account.available + account.spent == account.limit


@pytest.mark.req("NOD-045", "NOD-127", "NOD-145")
def test_a_call_that_may_have_been_made_is_booked_when_the_run_is_cancelled_while_it_waits_to_make_it_again() -> (
    None
):
    moment = OnceAt("rest.before")
    world = World(lambda request, number: ModelOutcomeUnknown("the line was cut"), crash=moment)
    world.admit(context=Context("agent", 1, "", ModelChoice("OnDemand", "vendor/model")))
    moment.then = world.stop
    world.settle()
    obj, head = world.outside.object(NAMES), world.outside.conversation("conv")
    assert obj is not None
    assert head is not None
    assert obj.status["phase"] == "Cancelled"
    task = world.outside.tasks("conv-1", ["r1"])["r1"]
    assert (task.claim, task.resent > 0) == (None, True), "the run was to wait without a worker"
    assert head.spent == task.reserved


@pytest.mark.req("FLD-04", "FLD-11")
def test_a_run_that_waits_for_its_provider_locks_no_more_up_than_its_call_may_cost() -> None:
    held: list[bool] = []

    def script(request: ModelRequest, number: int) -> Step:
        account = world.outside.accounts.account("budget")
        task = world.outside.tasks("conv-1", ["r1"])["r1"]
        room = world.outside.sandbox("conv-s1")
        assert account is not None
        assert room is not None
        assert room.meter is not None
        held.append(account.held - room.meter.held == task.reserved)
        return says("done") if len(held) > 1 else ModelUnavailable("busy", 1800, busy=True)

    world = World(script)
    world.budget("50.00")
    world.admit(context=Context("agent", 1, "", ModelChoice("OnDemand", "vendor/model")))
    world.settle()
    assert held == [False, True], "at first a slice covers some calls more"
