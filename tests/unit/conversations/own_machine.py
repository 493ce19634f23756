"""A Sandbox of one's own in a world in memory, with people who start, use, stop and delete it."""

from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.asking import Asking
from nodus_core.conversations.images import Images
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.own_sandboxes import OwnSandboxes
from nodus_core.conversations.sandbox_commands import SandboxCommands
from nodus_core.conversations.shelf import Shelf, key_of
from nodus_core.journal.ports import CrashPoints
from nodus_core.resources.manifest import read_manifest
from nodus_core.resources.sandbox_command import read_command
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import says
from nodus_core.testing.scripted_sandbox import Behaviour, exited
from nodus_core.testing.world import World

PLACE = Place("acme", "web", "alice")
FOLDER = {"mode": "Snapshotted", "stateDir": "/workspace"}


class OwnMachine:
    """Its folder holds a line for each command that ran in it (`ScriptedSandboxes`)."""

    def __init__(
        self,
        behaviour: Behaviour = lambda kind, request: exited("out\n"),
        *,
        crash: CrashPoints | None = None,
    ) -> None:
        self.store = MemoryStore()
        self.world = World(lambda request, number: says("x"), behaviour, store=self.store, crash=crash)
        shelf = Shelf(self.world.outside, self.world.payloads, self.world.clock)
        kicks = Kicks(self.world.outside, self.world.executions, self.world.clock)
        self.own = OwnSandboxes(
            shelf, self.world.ids, kicks=kicks, schedules=self.world.schedules, images=Images(shelf)
        )
        asking = Asking(self.world.outside, self.world.sandboxes, self.world.clock)
        self.commands = SandboxCommands(shelf, kicks, asking)

    def create(self, **spec: Any) -> None:
        head = {"apiVersion": "nodus.dev/v1", "kind": "Sandbox", "metadata": {"name": "mine"}}
        self.own.create(PLACE, read_manifest({**head, "spec": spec}, "Sandbox", "web"))

    def run(self, key: str) -> str:
        asked = read_command({"command": "date", "requestKey": key})
        return self.commands.run(PLACE, "mine", asked)[0]["metadata"]["name"]

    def start(self) -> None:
        self.own.start(PLACE, "mine")

    def stop(self) -> None:
        self.own.stop(PLACE, "mine")

    def delete(self) -> None:
        self.own.delete(PLACE, "mine")

    def minutes(self, count: float) -> None:
        self.world.pass_time(count * 60)

    def budget(self, limit: str) -> None:
        self.world.budget(limit)

    def kill(self) -> None:
        """Its machine is gone at once, with all that stood in it."""
        for daemon in self.world.sandboxes.daemons.values():
            daemon.alive = False

    @property
    def status(self) -> dict[str, Any]:
        obj = self.world.outside.object(key_of(PLACE, "Sandbox", "mine"))
        assert obj is not None
        return obj.status

    @property
    def stands(self) -> tuple[str, str | None]:
        return self.status["phase"], self.status.get("reason")

    @property
    def saved(self) -> list[bytes]:
        """The archives in the store, the oldest first."""
        archives = self.world.sandboxes.archives.objects
        return [archives[name] for name in sorted(archives)]

    @property
    def folder(self) -> list[str]:
        """What stands in the folder of the machine that lives."""
        (alive,) = [daemon for daemon in self.world.sandboxes.daemons.values() if daemon.alive]
        return alive.folder.decode().split()
