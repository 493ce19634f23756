"""A worker dies at every commit of saving, restoring and stopping: what is restored is whole, and nothing is left."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.inference.exchange import ToolResults
from nodus_core.journal.ports import CrashPoints
from nodus_core.kernel.continuity import IDLE_AFTER
from nodus_core.kernel.saving import EVERY
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.scripted_model import says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

from tests.unit.conversations.own_machine import FOLDER, OwnMachine

CALL = says("", ("run_command", {"command": "date"}))
KEPT = Context("agent", 1, "", ModelChoice("Nodus"), setup="make deps", state_dir="/workspace")
LATER = EVERY.total_seconds() / 60 + 8


@dataclass(frozen=True)
class Lived:
    """What a life has come to, whatever died in it: what its folder held in the end, and what is left in the store."""

    found: tuple[str, ...]
    effects: int
    machines: int
    left: int
    crashes: int = 0


def machine(crash: CrashPoints) -> Lived:
    """It is saved, stopped, started again, lost, started again, and deleted."""
    life = OwnMachine(crash=crash)
    life.create(continuity=FOLDER)
    life.minutes(5)
    commands = [life.run("first")]
    life.minutes(LATER)
    assert life.status["lastSave"]["state"] == "Saved"
    life.stop()
    life.minutes(8)
    assert life.stands == ("Paused", "Stopped")
    life.start()
    life.minutes(5)
    assert life.folder == commands
    commands.append(life.run("second"))
    life.minutes(LATER)
    life.kill()
    life.minutes(8)
    assert life.stands == ("Paused", "SandboxLost")
    life.start()
    life.minutes(5)
    found = tuple(str(commands.index(name)) for name in life.folder)
    assert len(life.saved) == 2
    life.delete()
    life.minutes(8)
    world = life.world
    rows = [key for key in life.store.rows() if key.pk.startswith(("sb#", "open#", "conv#"))]
    made = len(world.sandboxes.daemons)
    return Lived(found, len(world.sandboxes.effects), made, len(rows) + len(life.saved), world.crashes)


def run(crash: CrashPoints) -> Lived:
    """It answers, its sandbox is stopped while it waits, it answers again, and is cancelled."""
    world = World(
        lambda request, number: says("done") if isinstance(request.messages[-1], ToolResults) else CALL,
        lambda kind, request: exited("out\n"),
        crash=crash,
    )
    world.admit(context=KEPT, keep_alive=True)
    world.pass_time(IDLE_AFTER.total_seconds() + 900)
    assert shown(world)["sandbox"]["phase"] == "Deleted"
    world.say("again")
    world.pass_time(600)
    assert shown(world)["answer"]["turn"] == 2
    (daemon,) = [daemon for daemon in world.sandboxes.daemons.values() if daemon.alive]
    found = tuple(line.rpartition(".")[2] for line in daemon.folder.decode().split())
    world.stop()
    world.settle()
    made, left = len(world.sandboxes.daemons), len(world.sandboxes.archives.objects)
    return Lived(found, len(world.sandboxes.effects), made, left, world.crashes)


def shown(world: World) -> dict[str, dict[str, object]]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


LIVES: dict[str, Callable[[CrashPoints], Lived]] = {"machine": machine, "run": run}


@functools.cache
def passings(life: str) -> list[tuple[str, int]]:
    crash = CrashOnce()
    LIVES[life](crash)
    return crash.passings(without="renew")


def test_the_lives_pass_every_commit_of_saved_folders() -> None:
    commits = {point.partition(".")[0] for life in LIVES for point, _ in passings(life)}
    assert commits >= {"begin-save", "complete-save", "drop-saves", "place-restore", "restored"}


@pytest.mark.req("NOD-168", "NOD-169", "NOD-171", "NOD-173", "NODQ-64")
@pytest.mark.parametrize("life", LIVES)
def test_a_crash_at_any_point_changes_nothing(life: str) -> None:
    undisturbed = LIVES[life](CrashOnce())
    assert undisturbed.left == 0
    for point, passing in passings(life):
        crashed = LIVES[life](CrashOnce(point, passing))
        assert crashed.crashes == 1, point
        assert crashed == Lived(
            undisturbed.found, undisturbed.effects, undisturbed.machines, undisturbed.left, 1
        ), (point, passing)
