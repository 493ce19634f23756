"""One world behind all functions; each test calls them as AWS does."""

from types import ModuleType

import pytest
from nodus_core.bootstrap import Core
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import World

from tests.unit.functions.deployed import Deployed


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """A run is admitted that asks for one command and then answers."""
    world = World(
        plays([says("look", ("run_command", {"command": "ls"})), says("done")]),
        lambda kind, request: exited("a\n"),
    )
    world.admit()

    def replace_core(function: ModuleType, core: Core) -> None:
        monkeypatch.setattr(function, "core", lambda environment: core)
        if hasattr(function, "metrics"):
            monkeypatch.setattr(function.metrics.provider, "namespace", "Nodus")

    return Deployed(world, replace_core)
