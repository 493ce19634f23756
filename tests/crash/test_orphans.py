"""Tasks that nobody wants, and sandboxes whose task died unheard, while whoever looks after them dies at every commit."""

import functools

import pytest
from nodus_core.journal.keys import LIVE_SHARDS
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import Daemon, exited
from nodus_core.testing.world import NAMES, World

WHILE_S = 300
"""No orphan is older than that, whatever dies (FLD-10)."""


class Life:
    """A conversation whose sandbox dies unheard while it rests, beside tasks that nobody wants and that hear nothing."""

    def __init__(self, crash: CrashOnce) -> None:
        self.world = World(
            plays([says("look", ("run_command", {"command": "ls"})), says("done"), says("again")]),
            lambda kind, request: exited("a\n"),
            crash=crash,
        )

    def live(self) -> None:
        world = self.world
        world.admit(keep_alive=True)
        world.pass_time(WHILE_S)
        strays = {"task/stray": "made-up-s1", "task/theirs": ""}
        if self.sandbox().task is not None:
            # Where the worker died before it noted the task, nobody can tell which of two is the sandbox's.
            strays["task/second"] = "conv-s1"
        for arn, sandbox in strays.items():
            world.sandboxes.daemons[arn] = Daemon(sandbox, "no code", f"token of {arn}", "boot", deaf=True)
        world.pass_time(WHILE_S)
        assert self.running() == ["task/conv-s1", "task/theirs"]
        world.sandboxes.daemons["task/conv-s1"].alive = False  # no event tells of it
        world.pass_time(WHILE_S)
        sandbox = self.sandbox()
        assert (sandbox.state, sandbox.meter and sandbox.meter.closed) == (SandboxState.GONE, True)
        world.say("Go on.")
        world.pass_time(WHILE_S)
        world.stop()
        world.pass_time(WHILE_S)

    def sandbox(self) -> Sandbox:
        sandbox = self.world.outside.sandbox("conv-s1")
        assert sandbox is not None
        return sandbox

    def running(self) -> list[str]:
        return [arn for arn, daemon in self.world.sandboxes.daemons.items() if daemon.alive]


@functools.cache
def passings() -> list[tuple[str, int]]:
    crash = CrashOnce()
    Life(crash).live()
    return crash.passings(without="renew")


def test_the_life_passes_the_commits_of_a_lost_task() -> None:
    commits = {point.partition(".")[0] for point, _ in passings()}
    assert commits >= {"kick", "take", "sandbox-gone", "book-sandbox", "note-task"}


@pytest.mark.req("FLD-10")
def test_a_crash_at_any_point_leaves_no_task_and_no_sandbox() -> None:
    for point, passing in passings():
        life = Life(CrashOnce(point, passing))
        life.live()
        world = life.world
        assert world.crashes == 1, point
        assert life.running() == ["task/theirs"], point
        assert [name for shard in LIVE_SHARDS for name in world.outside.live_sandboxes(shard)] == [], point
        shown = world.outside.object(NAMES)
        assert shown is not None
        assert shown.status["phase"] == "Cancelled", point
        assert [turn["phase"] for turn in shown.status["turns"]] == ["Succeeded"] * 2, point
