"""A stop that comes while a model call is made takes effect at once; what the call costs is booked as unknown."""

import threading
from decimal import Decimal

import pytest
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.testing.scripted_model import ScriptedModels, says
from nodus_core.testing.world import NAMES, World


class SlowModels(ScriptedModels):
    """The router's calls, or the others, are not answered before they are let go; the run is stopped once one is made."""

    def __init__(self, world: World, *, router: bool) -> None:
        super().__init__(lambda request, number: says("done"))
        self.let_go, self.answered = threading.Event(), threading.Event()
        self._world = world
        self._router = router

    def call(self, request: ModelRequest) -> ModelReply:
        if (request.target.family == "router") is not self._router:
            return super().call(request)
        self._world.stop()
        assert self.let_go.wait(30), "nobody let the call go"
        self.answered.set()
        return super().call(request)


@pytest.mark.req("NOD-045", "NOD-127", "NOD-128")
@pytest.mark.parametrize(("router", "key"), [(True, "route"), (False, "r1")])
def test_a_stop_does_not_wait_for_the_model(router: bool, key: str) -> None:
    world = World(lambda request, number: says("done"))
    world.models = models = SlowModels(world, router=router)
    world.admit()
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
    assert (obj.status["phase"], obj.status["reason"]) == ("Cancelled", "Cancelled")
    task = world.outside.tasks("conv-1", [key])[key]
    assert (task.state.value, task.cost) == ("canceled", None)
    assert head.spent >= (task.reserved or Decimal(0)) > 0
    assert run.available + run.spent == head.cap
    # Its reply comes after all, and nobody hears it.
    commits = len(world.store.commits)  # type: ignore[attr-defined] - the in-memory double counts them
    models.let_go.set()
    assert models.answered.wait(30)
    assert len(world.store.commits) == commits  # type: ignore[attr-defined]
