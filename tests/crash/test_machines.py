"""A worker of a Sandbox's line dies at every commit point: one machine at a time, each command once, nothing left."""

import functools

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.asking import Asking
from nodus_core.conversations.images import Images
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.own_sandboxes import OwnSandboxes
from nodus_core.conversations.sandbox_commands import SandboxCommands
from nodus_core.conversations.shelf import Shelf, key_of
from nodus_core.resources.manifest import read_manifest
from nodus_core.resources.sandbox_command import read_command
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import World

PLACE = Place("acme", "web", "alice")
WHILE_S = 300
"""Long enough for a lease to end and the sweeper to come, and shorter than the machine is idle."""


class Life:
    """A Sandbox from its making to its end, with people who come back every five minutes."""

    def __init__(self, crash: CrashOnce) -> None:
        self.store = MemoryStore()
        self.world = World(
            lambda request, number: says("x"),
            lambda kind, request: exited("out\n"),
            store=self.store,
            crash=crash,
        )
        world = self.world
        shelf = Shelf(world.outside, world.payloads, world.clock)
        kicks = Kicks(world.outside, world.executions, world.clock)
        self.own = OwnSandboxes(
            shelf, world.ids, kicks=kicks, schedules=world.schedules, images=Images(shelf)
        )
        self.commands = SandboxCommands(shelf, kicks, Asking(world.outside, world.sandboxes, world.clock))

    def live(self) -> None:
        body = {
            "apiVersion": "nodus.dev/v1",
            "kind": "Sandbox",
            "metadata": {"name": "mine"},
            "spec": {"idleTimeout": "2h"},
        }
        self.own.create(PLACE, read_manifest(body, "Sandbox", "web"))
        self.stands("Running", machines=1)
        asked = read_command({"command": "date", "requestKey": "k"})
        command = self.commands.run(PLACE, "mine", asked)[0]["metadata"]["name"]
        self.stands("Running", machines=1)
        assert self.commands.get(PLACE, "mine", command)["status"]["state"] == "Exited"
        self.own.stop(PLACE, "mine")
        self.stands("Paused", machines=0)
        self.own.start(PLACE, "mine")
        self.stands("Running", machines=1)
        self.own.delete(PLACE, "mine")
        self.world.pass_time(WHILE_S)

    def stands(self, phase: str, *, machines: int) -> None:
        """After a while it is so, and so many machines run."""
        self.world.pass_time(WHILE_S)
        obj = self.world.outside.object(key_of(PLACE, "Sandbox", "mine"))
        assert obj is not None
        assert (obj.status["phase"], self.alive()) == (phase, machines)

    def alive(self) -> int:
        return sum(daemon.alive for daemon in self.world.sandboxes.daemons.values())


@functools.cache
def passings() -> list[tuple[str, int]]:
    crash = CrashOnce()
    Life(crash).live()
    return crash.passings(without="renew")


def test_the_life_passes_every_commit_of_a_machine() -> None:
    commits = {point.partition(".")[0] for point, _ in passings()}
    assert commits >= {"request-machine", "settle-machine", "take", "rest", "book-sandbox", "release-sandbox"}


@pytest.mark.req("FLD-10", "NOD-443", "NOD-411")
def test_a_crash_at_any_point_changes_nothing() -> None:
    for point, passing in passings():
        life = Life(CrashOnce(point, passing))
        life.live()
        assert life.world.crashes == 1, point
        assert life.world.outside.object(key_of(PLACE, "Sandbox", "mine")) is None, point
        assert (life.alive(), len(life.world.sandboxes.daemons)) == (0, 2), point
        assert len(life.world.sandboxes.effects) == 1, point
        left = [key.pk for key in life.store.rows() if key.pk.startswith(("sb#", "open#", "conv#"))]
        assert left == [], point
