"""A call on a Secret killed at every commit point: no value stays that no Secret names, none is lost that one does."""

from collections.abc import Callable

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.secrets import Secrets, vault_place
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import DUE_SHARDS as SHARDS
from nodus_core.journal.ports import CrashPoints
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import ObjectKey
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.world import World

PLACE = Place("acme", "web", "alice")
KEY = ObjectKey("acme", "web", "Secret", "key")
Step = Callable[[Secrets], object]


def manifest(value: str) -> Manifest:
    return Manifest("Secret", Metadata("key"), {"data": {"KEY": value}})


STEPS: dict[str, list[Step]] = {
    "create": [lambda secrets: secrets.create(PLACE, manifest("one"))],
    "taken": [
        lambda secrets: secrets.create(PLACE, manifest("one")),
        lambda secrets: secrets.create(PLACE, manifest("two")),
    ],
    "change": [
        lambda secrets: secrets.apply(PLACE, manifest("one")),
        lambda secrets: secrets.apply(PLACE, manifest("two")),
    ],
    "delete": [
        lambda secrets: secrets.create(PLACE, manifest("one")),
        lambda secrets: secrets.delete(PLACE, "key"),
    ],
    "again": [
        lambda secrets: secrets.create(PLACE, manifest("one")),
        lambda secrets: secrets.delete(PLACE, "key"),
        lambda secrets: secrets.create(PLACE, manifest("two")),
    ],
}


def play(world: World, steps: list[Step], crash: CrashPoints) -> None:
    """The calls one after the other; whoever dies is not asked again."""
    journal = Journal(world.store, world.ids, crash)
    secrets = Secrets(Shelf(journal, world.payloads, world.clock), world.ids, vault=world.vault)
    for step in steps:
        try:
            step(secrets)
        except (Crash, Refusal):
            continue


def points(steps: list[Step]) -> list[tuple[str, int]]:
    """Every passing of every crash point."""
    seen = CrashOnce()
    play(World(lambda request, number: AssertionError()), steps, seen)
    return seen.passings()


PLACES = [(name, *place) for name, steps in STEPS.items() for place in points(steps)]


def test_every_commit_is_among_them() -> None:
    commits = {point.rpartition(".")[0] for _, point, _ in PLACES}
    assert commits == {
        *("expect-value", "create-object", "replace-object", "remove-object"),
        *("doom-value", "forget-value"),
    }


@pytest.mark.req("NOD-118", "INV-12")
@pytest.mark.parametrize(("name", "point", "passing"), PLACES)
def test_a_crash_here_leaves_no_value_behind_and_loses_none(name: str, point: str, passing: int) -> None:
    world = World(lambda request, number: AssertionError())
    play(world, STEPS[name], CrashOnce(point, passing))
    world.clock.advance(301)
    reclaim = Reclaim(world.outside, world.vault, world.clock)
    for uid in [uid for shard in SHARDS for uid in world.outside.due_values(shard, world.clock.now())]:
        reclaim.reclaim(uid)
    obj = world.outside.object(KEY)
    if obj is None:
        assert world.vault.places == {}
        return
    assert list(world.vault.places) == [vault_place(obj)]
    assert obj.value is not None
    assert world.vault.read(vault_place(obj), obj.value.version)["KEY"] in {"one", "two"}
