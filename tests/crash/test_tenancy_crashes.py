"""Calls on projects and keys killed at every commit point: nothing is lost, nothing is orphaned, the next call goes on."""

from collections.abc import Callable

import pytest
from nodus_core.access.door import Place
from nodus_core.access.grant import Grant
from nodus_core.conversations.api_keys import ApiKeys
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.tenancy import Organizations, Projects
from nodus_core.journal.access import Access
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import CrashPoints
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import ObjectKey
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.world import World

ORG = Place("acme", "", "alice", Grant.everything())
LAB = Place("acme", "lab", "alice")
NEW_PROJECT = Manifest("Project", Metadata("lab"), {})
NEW_KEY = Manifest("ApiKey", Metadata("ci"), {"role": "viewer", "projects": ["*"]})
NEW_AGENT = Manifest("Agent", Metadata("a"), {})


class Calls:
    """The use cases of one process."""

    def __init__(self, world: World, crash: CrashPoints | None = None) -> None:
        self.journal = Journal(world.store, world.ids, crash)
        shelf = Shelf(self.journal, world.payloads, world.clock)
        self.access = Access(self.journal.writer)
        self.organizations = Organizations(shelf, world.ids)
        self.projects = Projects(shelf, world.ids, access=self.access)
        self.keys = ApiKeys(shelf, world.ids)
        self.agents = Definitions(shelf, world.ids, "Agent")


Step = Callable[[Calls], object]

STEPS: dict[str, list[Step]] = {
    "empty": [lambda calls: calls.projects.delete(ORG, "lab")],
    "full": [
        lambda calls: calls.agents.create(LAB, NEW_AGENT),
        lambda calls: calls.projects.delete(ORG, "lab"),
    ],
    "left closed": [
        lambda calls: calls.agents.create(LAB, NEW_AGENT),
        lambda calls: calls.access.close_project("acme", "lab", "dead"),
        lambda calls: calls.projects.delete(ORG, "lab"),
    ],
    "again": [
        lambda calls: calls.projects.delete(ORG, "lab"),
        lambda calls: calls.projects.create(ORG, NEW_PROJECT),
        lambda calls: calls.agents.create(LAB, NEW_AGENT),
    ],
    "key": [lambda calls: calls.keys.create(ORG, NEW_KEY), lambda calls: calls.keys.delete(ORG, "ci")],
}


def play(world: World, steps: list[Step], crash: CrashPoints) -> None:
    """The calls one after the other; whoever dies is not asked again."""
    ready = Calls(world)
    ready.organizations.create(ORG, Manifest("Organization", Metadata("acme"), {}))
    ready.projects.create(ORG, NEW_PROJECT)
    calls = Calls(world, crash)
    for step in steps:
        try:
            step(calls)
        except (Crash, Refusal):
            continue


def world() -> World:
    return World(lambda request, number: AssertionError())


def points(steps: list[Step]) -> list[tuple[str, int]]:
    """Every passing of every crash point."""
    seen = CrashOnce()
    play(world(), steps, seen)
    return seen.passings()


PLACES = [(name, *place) for name, steps in STEPS.items() for place in points(steps)]


def test_every_commit_is_among_them() -> None:
    commits = {point.rpartition(".")[0] for _, point, _ in PLACES}
    assert commits == {"create-object", "remove-object", "close-project", "reopen-project"}


@pytest.mark.parametrize(("name", "point", "passing"), PLACES)
def test_a_crash_here_orphans_nothing_and_the_next_call_goes_on(name: str, point: str, passing: int) -> None:
    here = world()
    play(here, STEPS[name], CrashOnce(point, passing))
    calls = Calls(here)

    # What the door reads says the same as the object.
    project = here.outside.object(ObjectKey("acme", "", "Project", "lab"))
    assert (project is None) == (calls.access.project("acme", "lab") is None)
    key = here.outside.object(ObjectKey("acme", "", "ApiKey", "ci"))
    rows = [row for row in here.store.rows() if row.pk.startswith("key#")]
    assert [row.pk for row in rows] == (
        [] if key is None or key.value is None else [f"key#{key.value.digest}"]
    )

    # Nothing lies in a project that is not there, and nothing can be put there.
    agent = here.outside.object(ObjectKey("acme", "lab", "Agent", "a"))
    if project is None:
        assert agent is None
        with pytest.raises(Refusal, match="being deleted"):
            calls.agents.create(LAB, NEW_AGENT)
        return

    # A project that is there can be emptied and deleted, whatever was left half done.
    if agent is not None:
        with pytest.raises(Refusal, match="agents a"):
            calls.projects.delete(ORG, "lab")
        calls.agents.delete(LAB, "a")
    calls.projects.delete(ORG, "lab")
    assert calls.access.project("acme", "lab") is None
