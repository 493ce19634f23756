"""A worker killed at every named crash point of a linear run: the outcome is that of an undisturbed run.

Effects are counted by the scripted sandbox, outside the system under test.
"""

from dataclasses import replace
from typing import Any

import pytest

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


def linear(crash: CrashPoints | None = None) -> World:
    """Setup, routing, a command, two parallel calls, an answer."""
    world = World(
        plays([LOOK, PAIR, says("It is Python 3.11.7.")]), lambda kind, request: exited("out\n"), crash=crash
    )
    world.admit("Print the Python version.", context=SETUP)
    world.settle()
    return world


def outcome(world: World) -> dict[str, Any]:
    """What must be the same, however often the worker died."""
    obj = world.journal.object(NAMES)
    assert obj is not None
    run = world.journal.run("conv-1")
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


PASSINGS = passings()


def test_the_scenario_passes_every_commit_of_a_linear_run() -> None:
    commits = {point.rpartition(".")[0] for point, _ in PASSINGS}
    assert commits >= {
        "take",
        "open-turn",
        "request-sandbox",
        "issue-code",
        "note-task",
        "claim",
        "record",
        "finish-turn",
        "release-sandbox",
        "sandbox-gone",
        "disown-sandbox",
        "close",
    }


@pytest.mark.req("NOD-073", "NOD-074", "NOD-075", "INV-10", "INV-42", "INV-44")
@pytest.mark.parametrize(("point", "passing"), PASSINGS)
def test_a_crash_here_changes_nothing(point: str, passing: int) -> None:
    crashed = linear(CrashOnce(point, passing))
    assert crashed.crashes == 1
    assert outcome(crashed) == outcome(linear())


@pytest.mark.req("NOD-088", "INV-46")
def test_a_managed_call_in_flight_is_made_again_counted_and_charged_once() -> None:
    # The record of the first round is lost with its worker: the call went out, its reply was not kept.
    crashed = linear(CrashOnce("record.before", 4))
    (task,) = [task for task in crashed.journal.all_tasks("conv-1") if task.resent]
    assert (task.key, task.resent, task.attempt) == ("r1", 1, 2)
    assert len(crashed.models.requests) == 4
    assert outcome(crashed)["cost"] == outcome(linear())["cost"]
