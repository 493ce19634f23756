"""Whoever keeps the pool, or takes a machine of it, dies at every commit: each machine is one sandbox's, none is left."""

import functools

import pytest
from nodus_core.journal.keys import LIVE_SHARDS
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

WHILE_S = 300


class Life:
    """A pool of two, a conversation in one of its machines, and the end of the pool."""

    def __init__(self, crash: CrashOnce) -> None:
        self.world = World(
            plays([says("look", ("run_command", {"command": "ls"})), says("done")]),
            lambda kind, request: exited("a\n"),
            crash=crash,
        )

    def live(self) -> None:
        world = self.world
        world.warm = 2
        world.pass_time(WHILE_S)
        assert (self.waiting(), len(self.running())) == (2, 2)
        world.admit(keep_alive=True)
        world.pass_time(WHILE_S)
        assert (self.waiting(), len(self.running())) == (2, 3)
        world.stop()
        world.pass_time(WHILE_S)
        assert (self.waiting(), len(self.running())) == (2, 2)
        world.warm = 0
        world.pass_time(WHILE_S)

    def waiting(self) -> int:
        return sum(machine.is_up for machine in self.world.outside.warm_machines())

    def running(self) -> list[str]:
        return [arn for arn, daemon in self.world.sandboxes.daemons.items() if daemon.alive]


@functools.cache
def passings() -> list[tuple[str, int]]:
    crash = CrashOnce()
    Life(crash).live()
    return crash.passings(without="renew")


def test_the_life_passes_every_commit_of_the_pool() -> None:
    commits = {point.partition(".")[0] for point, _ in passings()}
    assert commits >= {"place-warm", "note-warm-task", "bind-warm", "drop-warm", "issue-code", "sandbox-gone"}


@pytest.mark.req("FLD-10")
def test_a_crash_at_any_point_changes_nothing() -> None:
    for point, passing in passings():
        life = Life(CrashOnce(point, passing))
        life.live()
        world = life.world
        assert world.crashes == 1, point
        assert (life.running(), world.outside.warm_machines()) == ([], []), point
        assert [name for shard in LIVE_SHARDS for name in world.outside.live_sandboxes(shard)] == [], point
        assert len(world.sandboxes.effects) == 1, point
        shown = world.outside.object(NAMES)
        assert shown is not None
        assert [turn["phase"] for turn in shown.status["turns"]] == ["Succeeded"], point
