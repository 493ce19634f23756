"""A stop that comes while a run's money moves: neither undoes the other."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from nodus_core.testing.scripted_model import plays, says
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
