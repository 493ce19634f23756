"""Builds of images killed at every commit: each image comes to what it would have, and nothing runs on or is left."""

from collections.abc import Callable
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.build_keeping import BuildKeeping
from nodus_core.conversations.environment_images import EnvironmentImages
from nodus_core.conversations.images import Images, ImageSources
from nodus_core.conversations.left_images import LeftImagesKeeping
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal import keys
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import CrashPoints
from nodus_core.kernel.errors import NodusError, Refusal
from nodus_core.kernel.objects import ObjectKey
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_builder import PLACE, ScriptedBuilder
from nodus_core.testing.world import World

WEB = Place("acme", "web", "alice")
KEY = ObjectKey("acme", "web", "EnvironmentImage", "tools")
BASE = "registry.example/base:1"
NOWHERE = "sha256:" + "b" * 64


class Registry:
    """Every tag stands for the same."""

    def digest(self, repository: str, version: str, host: str) -> str:
        return NOWHERE


class Cloud:
    """API and sweeper of one deployment, which may die at a crash point."""

    def __init__(self, crash: CrashPoints | None = None) -> None:
        self.store = MemoryStore()
        self.world = World(lambda request, number: AssertionError(), store=self.store)
        self.builder = ScriptedBuilder(self.world.clock)
        self.into(crash)

    def into(self, crash: CrashPoints | None) -> None:
        """Everything goes on in a process with these crash points."""
        world = self.world
        self.journal = Journal(world.store, world.ids, crash)
        shelf = Shelf(self.journal, world.payloads, world.clock)
        sources = ImageSources({}, Registry(), Registry(), builds=PLACE)
        self.images = EnvironmentImages(shelf, world.ids, images=Images(shelf, sources))
        self.builds = BuildKeeping(shelf, self.builder)
        self.left_images = LeftImagesKeeping(self.journal, world.clock, self.builder)

    def sweep(self) -> None:
        """One pass over what is due; what raises stays due."""
        self.world.clock.advance(60)
        now = self.world.clock.now()
        for noun, name in [found for shard in keys.DUE_SHARDS for found in self.journal.due(shard, now)]:
            try:
                if noun == keys.IMAGE_BUILD:
                    self.builds.look(name)
                elif noun == keys.LEFT_IMAGES:
                    self.left_images.clear(name, lambda: 60.0)
            except (NodusError, Crash):
                continue

    def kick(self) -> None:
        """An event of each build that there is, as if it had ended."""
        for row in list(self.store.rows()):
            if row.pk.startswith("build#"):
                try:
                    self.builds.look(row.pk.removeprefix("build#"))
                except (NodusError, Crash):
                    continue

    @property
    def rows(self) -> list[str]:
        return [row.pk for row in self.store.rows() if row.pk.startswith(("build#", "images#"))]


Step = Callable[[Cloud], object]


def apply(setup: str) -> Step:
    manifest = Manifest("EnvironmentImage", Metadata("tools"), {"image": BASE, "setup": setup})
    return lambda cloud: cloud.images.apply(WEB, manifest)


def build(cloud: Cloud) -> object:
    return cloud.images.build(WEB, "tools")


def delete(cloud: Cloud) -> object:
    return cloud.images.delete(WEB, "tools")


def sweeps(count: int) -> Step:
    return lambda cloud: [cloud.sweep() for _ in range(count)]


def doubled(cloud: Cloud) -> None:
    for _ in range(3):
        cloud.kick()
        cloud.sweep()
        cloud.kick()


STEPS: dict[str, list[Step]] = {
    "built": [apply("true"), sweeps(6)],
    "failing": [apply("false"), sweeps(6)],
    "doubled events": [apply("true"), doubled, doubled],
    "changed meanwhile": [apply("true"), sweeps(1), apply("two"), sweeps(6)],
    "changed before it began": [apply("true"), apply("two"), sweeps(6)],
    "built again": [apply("true"), sweeps(6), build, sweeps(6)],
    "deleted meanwhile": [apply("true"), sweeps(1), delete, sweeps(2)],
    "deleted": [apply("true"), sweeps(6), delete, sweeps(65)],
}


def play(steps: list[Step], crash: CrashPoints, slept: float = 0) -> Cloud:
    """Each step; a person whose call has died calls again, by what is then there. A dead sweeper's next minute comes."""
    cloud = Cloud(crash)
    for step in steps:
        for _ in range(2):
            try:
                step(cloud)
            except Crash:
                cloud.world.clock.advance(slept)
            except Refusal:  # it was deleted by the call that died
                break
            else:
                break
    cloud.into(None)
    for _ in range(75):
        cloud.sweep()
    return cloud


def outcome(cloud: Cloud) -> dict[str, Any]:
    """What must be the same, whoever died when."""
    obj = cloud.journal.object(KEY)
    status = {} if obj is None else obj.status
    return {
        "status": {name: status.get(name) for name in ("state", "digest", "reason", "message")},
        "rows": cloud.rows,
        "running": cloud.builder.running,
        "removed": len(cloud.builder.removed) > 0,
    }


def points(steps: list[Step]) -> list[tuple[str, int]]:
    seen = CrashOnce()
    play(steps, seen)
    return seen.passings()


PLACES = [(name, *place) for name, steps in STEPS.items() for place in points(steps)]


def test_every_commit_is_among_them() -> None:
    commits = {point.rpartition(".")[0] for _, point, _ in PLACES}
    assert commits == {
        *("create-object", "replace-object", "remove-object"),
        *("ask-build", "note-build", "await-build", "settle-build", "drop-build", "forget-images"),
    }


@pytest.mark.req("NOD-448", "NODQ-104", "INV-12")
@pytest.mark.parametrize("slept", [0, 600], ids=["soon", "late"])
@pytest.mark.parametrize(("name", "point", "passing"), PLACES)
def test_a_crash_here_changes_nothing(name: str, point: str, passing: int, slept: float) -> None:
    undisturbed, crashed = play(STEPS[name], CrashOnce()), play(STEPS[name], CrashOnce(point, passing), slept)
    assert outcome(crashed) == outcome(undisturbed)
    assert crashed.rows == crashed.builder.running == []


def test_a_crash_between_asking_and_noting_starts_no_second_build() -> None:
    for point in ("ask-build.after", "note-build.before", "note-build.after"):
        crashed = play(STEPS["built"], CrashOnce(point))
        assert len(crashed.builder.builds) == 1


@pytest.mark.parametrize(("seconds", "changed"), [(50, False), (200, False), (50, True), (200, True)])
def test_someone_who_sleeps_while_another_builds_writes_nothing_late(seconds: float, changed: bool) -> None:
    """A worker that has asked the builder sleeps over the end of the build, or over a change of its image."""
    cloud = Cloud()
    apply("true")(cloud)
    start, slept = cloud.builder.start, []

    def sleepy(*asked: Any) -> str:
        number = start(*asked)
        if not slept:
            slept.append(number)
            if changed:
                apply("two")(cloud)
            other = BuildKeeping(cloud.builds.shelf, cloud.builder)
            for _ in range(2):
                cloud.world.clock.advance(seconds / 2)
                for row in list(cloud.rows):
                    other.look(row.removeprefix("build#"))
        return number

    cloud.builder.start = sleepy  # type: ignore[method-assign]
    for _ in range(20):
        cloud.sweep()
    obj = cloud.journal.object(KEY)
    assert obj is not None
    assert obj.status["state"] == "Completed"
    assert obj.status["digest"] in {
        cloud.builder.digest_of(build.order)
        for build in cloud.builder.builds.values()
        if build.order.setup == ("two" if changed else "true")
    }
    assert cloud.builder.builds[slept[0]].stopped == (changed and seconds == 50)
    assert cloud.rows == cloud.builder.running == []
