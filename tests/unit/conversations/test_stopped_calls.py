"""A stop or a deadline that comes while a model call is made takes effect at once; what the call costs is booked as unknown."""

import threading
from collections.abc import Callable
from decimal import Decimal

import pytest
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.testing.scripted_model import ScriptedModels, says
from nodus_core.testing.world import NAMES, World


class SlowModels(ScriptedModels):
    """The router's calls, or the others, are not answered before they are let go; `then` happens once one is made."""

    def __init__(self, then: Callable[[], None], *, router: bool) -> None:
        super().__init__(lambda request, number: says("done"))
        self.let_go, self.answered = threading.Event(), threading.Event()
        self._then = then
        self._router = router

    def call(self, request: ModelRequest, key: str | None = None) -> ModelReply:
        if (request.target.family == "router") is not self._router:
            return super().call(request, key)
        self._then()
        assert self.let_go.wait(30), "nobody let the call go"
        self.answered.set()
        return super().call(request, key)


@pytest.mark.req("NOD-045", "NOD-127", "NOD-128", "NOD-177")
@pytest.mark.parametrize(("router", "key"), [(True, "route"), (False, "r1")])
@pytest.mark.parametrize(
    "end", [("Cancelled", "Cancelled"), ("Failed", "DeadlineExceeded")], ids=["cancel", "deadline"]
)
def test_a_stop_does_not_wait_for_the_model(router: bool, key: str, end: tuple[str, str]) -> None:
    world = World(lambda request, number: says("done"))
    # Nobody kicks the line at its deadline: the worker that made the call sees it.
    then = world.stop if end[0] == "Cancelled" else lambda: world.clock.advance(1000)
    world.models = models = SlowModels(then, router=router)
    world.admit(lifetime=1000.0)
    world.settle()
    assert not models.let_go.is_set()
    obj, head, run = (
        world.outside.object(NAMES),
        world.outside.conversation("conv"),
        world.outside.run("conv-1"),
    )
    assert obj is not None
    assert head is not None
    assert run is not None
    assert (obj.status["phase"], obj.status["reason"]) == end
    task = world.outside.tasks("conv-1", [key])[key]
    assert (task.state.value, task.cost) == ("canceled", None)
    assert head.spent >= (task.reserved or Decimal(0)) > 0
    assert run.available + run.spent == head.cap
    # Its reply comes after all, and nobody hears it.
    commits = len(world.store.commits)  # type: ignore[attr-defined] - the in-memory double counts them
    models.let_go.set()
    assert models.answered.wait(30)
    assert len(world.store.commits) == commits  # type: ignore[attr-defined]


@pytest.mark.req("NOD-045", "NOD-185")
def test_a_cancel_just_before_the_deadline_does_not_wait_for_the_model_either() -> None:
    world = World(lambda request, number: says("done"))

    def both() -> None:
        world.stop()
        world.clock.advance(1000)

    world.models = models = SlowModels(both, router=False)
    world.admit(lifetime=1000.0)
    world.settle()
    assert not models.let_go.is_set()
    obj = world.outside.object(NAMES)
    assert obj is not None
    assert (obj.status["phase"], obj.status["reason"]) == ("Cancelled", "Cancelled")
    models.let_go.set()
