"""The linear run that crash tests disturb, and what must be the same however it was disturbed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.journal.ports import CrashPoints
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

SETUP = replace(
    Context("agent", 1, "You are careful.", ModelChoice("Nodus")), setup="printf ready > ready.txt"
)
LOOK = says("look", ("run_command", {"command": "python3 --version"}))
PAIR = says("two", ("run_command", {"command": "a"}), ("write_file", {"path": "b", "content": "c"}))

Disturbance = Callable[[World], None]


def linear_world(crash: CrashPoints | None = None) -> World:
    """Setup, routing, a command, two parallel calls, an answer; admitted, not begun."""
    world = World(
        plays([LOOK, PAIR, says("It is Python 3.11.7.")]), lambda kind, request: exited("out\n"), crash=crash
    )
    world.admit("Print the Python version.", context=SETUP)
    return world


def linear(crash: CrashPoints | None = None) -> World:
    """The same, run to its end."""
    world = linear_world(crash)
    world.settle()
    return world


def outcome(world: World) -> dict[str, Any]:
    """What must be the same, however often workers died, slept or were doubled."""
    obj = world.journal.object(NAMES)
    run = world.journal.run("conv-1")
    assert obj is not None
    assert run is not None
    log = world.journal.observations("conv-1")
    tasks = world.journal.tasks("conv-1", [entry.task for entry in log])
    return {
        "phase": obj.status["phase"],
        "answer": obj.status["answer"],
        "cost": obj.status["cost"],
        "log": [(entry.seq, entry.task, entry.state) for entry in log],
        "results": {key: task.result for key, task in tasks.items()},
        "open": run.open,
        "money": (run.available, run.spent),
        "effects": sorted(world.sandboxes.effects),
        "sandboxes": sorted(world.sandboxes.daemons),
        "alive": [daemon.sandbox for daemon in world.sandboxes.daemons.values() if daemon.alive],
    }


def passings() -> list[tuple[str, int]]:
    """Every crash point that the undisturbed run passes, each time it passes it."""
    points = CrashOnce()
    linear(points)
    seen: dict[str, int] = {}
    found: list[tuple[str, int]] = []
    for point in points.passed:
        seen[point] = seen.get(point, 0) + 1
        found.append((point, seen[point]))
    return found
