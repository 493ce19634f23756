"""Runs that are created together: all or none at every moment, whoever dies, and whoever looks meanwhile."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.admission import Admission
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.batches import Batches
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.happenings import Event
from nodus_core.conversations.images import Images
from nodus_core.conversations.listing import Listing
from nodus_core.conversations.promises import promise
from nodus_core.conversations.reading import Reading
from nodus_core.conversations.shelf import Outcome, Shelf, key_of
from nodus_core.conversations.watching import Watch, Watching
from nodus_core.journal.batches import PATIENCE
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import CrashPoints
from nodus_core.journal.store import Transaction
from nodus_core.kernel.errors import Refusal, RetryableError, StoreUnavailable
from nodus_core.resources.manifest import Manifest, read_manifest
from nodus_core.resources.selectors import EVERYTHING
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.faults import Fault, Faults, FaultyStore
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import says
from nodus_core.testing.world import World

PLACE = Place("acme", "web", "alice")
NAMES = [f"run-{number:02d}" for number in reversed(range(30))]
"""More than one commit holds, and not in the order in which they are stored."""


class Peeked(MemoryStore):
    """A store in which something happens after each commit."""

    then: Callable[[str], None] | None = None
    _peeks = False

    def commit(self, transaction: Transaction, token: str) -> None:
        super().commit(transaction, token)
        if self.then is not None and not self._peeks:
            self._peeks = True
            self.then(transaction.name)
            self._peeks = False


class Team:
    """A world with an agent, and those who create batches in it and look at it."""

    def __init__(self) -> None:
        self.store = Peeked()
        self.world = World(lambda request, number: says("done"), store=self.store)
        Definitions(self.shelf(), self.world.ids, "Agent").create(PLACE, read("Agent", "helper"))

    def shelf(self, crash: CrashPoints | None = None) -> Shelf:
        world = self.world
        return Shelf(Journal(world.store, world.ids, crash), world.payloads, world.clock)

    def admission(self, crash: CrashPoints | None = None, over: Shelf | None = None) -> Admission:
        world = self.world
        shelf = over or self.shelf(crash)
        return Admission(shelf, world.executions, world.schedules, world.ids, Images(shelf))

    def create(self, crash: CrashPoints | None = None, *, over: Shelf | None = None) -> list[Outcome]:
        runs = [read("AgentRun", name, agent="helper", input="x") for name in NAMES]
        promised = promise(key_of(PLACE, "AgentRun", ""), "POST", "/agentruns", "batch-1", *runs)
        return Batches(self.admission(crash, over)).create(PLACE, runs, promised)

    def names(self) -> list[str]:
        """What a list shows."""
        page = Listing(Reading(self.shelf())).page(PLACE, "AgentRun", 500, None, EVERYTHING)
        return [item["metadata"]["name"] for item in page.items]

    def seen(self) -> set[str]:
        """What single reads show."""
        journal = self.shelf().journal
        return {name for name in NAMES if journal.object(key_of(PLACE, "AgentRun", name)) is not None}

    def watched(self, position: int) -> list[Event]:
        return Watching(Reading(self.shelf()), 0.0).window(PLACE, "AgentRun", Watch(position))

    def leftovers(self) -> list[str]:
        """Rows that belong to a batch, or name one."""
        rows = self.store.rows().items()
        return [f"{key.pk}/{key.sk}" for key, row in rows if key.pk.startswith("batch#") or "batch" in row]

    def conversations(self) -> int:
        return sum(key.pk.startswith("conv#") and key.sk == "head" for key in self.store.rows())


def read(kind: str, name: str, **spec: str) -> Manifest:
    body = {"apiVersion": "nodus.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return read_manifest(body, kind, PLACE.project)


def passings(play: Callable[[CrashPoints], object]) -> list[tuple[str, int]]:
    seen = CrashOnce()
    play(seen)
    return seen.passings()


PLACES = passings(lambda crash: Team().create(crash))


def test_every_commit_of_a_batch_is_among_them() -> None:
    commits = {point.rpartition(".")[0] for point, _ in PLACES}
    assert commits == {"open-batch", "stage-batch", "commit-batch", "show-batch", "batch-over"}


@pytest.mark.req("NOD-361", "NOD-363", "NODQ-78")
@pytest.mark.parametrize(("point", "passing"), PLACES)
def test_a_batch_whose_caller_dies_is_there_whole_or_not_at_all(point: str, passing: int) -> None:
    team = Team()
    with pytest.raises(Crash):
        team.create(CrashOnce(point, passing))
    there = team.names()
    assert there in ([], sorted(NAMES))
    assert team.seen() == set(there)
    is_committed = PLACES.index((point, passing)) >= PLACES.index(("commit-batch.after", 1))
    assert bool(there) is is_committed
    team.world.pass_time(PATIENCE.total_seconds() + 120)
    assert team.leftovers() == []
    assert team.names() == there
    assert team.conversations() == len(there)
    again = team.create()
    assert [outcome.replayed for outcome in again] == [is_committed] * len(NAMES)
    assert [outcome.object.key.name for outcome in again] == NAMES
    team.world.settle()
    statuses = [run.status["phase"] for run in team.shelf().journal.objects_of("acme", "web", "AgentRun")[0]]
    assert statuses == ["Succeeded"] * len(NAMES)
    assert len(team.world.models.requests) == len(NAMES)


def half_done(point: str) -> Team:
    """A batch whose caller has died there, and whose time is over."""
    team = Team()
    with pytest.raises(Crash):
        team.create(CrashOnce(point, 2 if point.startswith("stage") else 1))
    team.world.clock.advance(PATIENCE.total_seconds() + 1)
    return team


def finish(team: Team, crash: CrashPoints | None = None) -> None:
    name = next(key.pk for key in team.store.rows() if key.pk.startswith("batch#")).partition("#")[2]
    BatchKeeping(team.shelf(crash)).finish(name)


ENDS = [
    (begun, *place)
    for begun in ("stage-batch.after", "commit-batch.after")
    for place in passings(lambda crash, begun=begun: finish(half_done(begun), crash))
]


@pytest.mark.req("NOD-361")
@pytest.mark.parametrize(("begun", "point", "passing"), ENDS)
def test_whoever_brings_a_batch_to_its_end_may_die_over_it(begun: str, point: str, passing: int) -> None:
    team = half_done(begun)
    with pytest.raises(Crash):
        finish(team, CrashOnce(point, passing))
    wanted = sorted(NAMES) if begun.startswith("commit") else []
    assert team.names() == wanted
    team.world.pass_time(120)
    assert team.leftovers() == []
    assert team.names() == wanted
    assert team.conversations() == len(wanted)


@pytest.mark.req("NODQ-78")
def test_nobody_sees_a_batch_before_it_is_committed() -> None:
    team = Team()
    position = Listing(Reading(team.shelf())).page(PLACE, "AgentRun", 1, None, EVERYTHING).version
    sights: list[tuple[str, int, int, int]] = []

    def look(commit: str) -> None:
        watched = len(team.watched(int(position)))
        sights.append((commit, len(team.names()), len(team.seen()), watched))

    team.store.then = look
    team.create()
    team.store.then = None
    for commit, listed, seen, watched in sights:
        if commit in ("open-batch", "stage-batch"):
            assert (listed, seen, watched) == (0, 0, 0)
        if commit in ("commit-batch", "show-batch", "batch-over"):
            assert (listed, seen) == (len(NAMES), len(NAMES))
    assert sights[-1][3] == len(NAMES)
    assert {event.type for event in team.watched(int(position))} == {"ADDED"}


def test_a_run_of_a_batch_may_be_changed_as_soon_as_it_is_there() -> None:
    team = Team()
    with pytest.raises(Crash):
        team.create(CrashOnce("commit-batch.after"))
    journal = team.shelf().journal
    labelled = journal.object(key_of(PLACE, "AgentRun", NAMES[1]))
    assert labelled is not None
    team.admission().patch(PLACE, NAMES[1], {"metadata": {"labels": {"tier": "web"}}})
    team.world.pass_time(120)
    team.world.settle()
    assert team.leftovers() == []
    after = journal.object(labelled.key)
    assert after is not None
    assert (after.uid, after.labels, after.status["phase"]) == (labelled.uid, {"tier": "web"}, "Succeeded")


@pytest.mark.parametrize("dead", [True, False])
def test_a_name_that_an_open_batch_has_taken_is_given_once_it_is_decided(dead: bool) -> None:
    team = Team()
    with pytest.raises(Crash):
        team.create(CrashOnce("stage-batch.after", 1))
    wanted = read("AgentRun", sorted(NAMES)[0], agent="helper", input="mine")
    if dead:
        team.world.clock.advance(PATIENCE.total_seconds() + 1)
        assert team.admission().admit_run(PLACE, wanted).created
        assert team.names() == [wanted.name]
        with pytest.raises(Refusal, match=r"items\[29\]") as refused:
            team.create()
        assert refused.value.reason == "AlreadyExists"
    else:
        with pytest.raises(RetryableError):
            team.admission().admit_run(PLACE, wanted)
    assert team.names() == ([wanted.name] if dead else [])


def test_a_batch_that_is_given_up_by_another_is_never_committed() -> None:
    team = Team()

    def overtake(commit: str) -> None:
        if commit == "stage-batch":
            team.store.then = None
            team.world.clock.advance(PATIENCE.total_seconds() + 1)
            finish(team)

    team.store.then = overtake
    outcomes = team.create()  # begun anew, under another id
    assert len({outcome.object.uid for outcome in outcomes}) == len(NAMES)
    assert team.names() == sorted(NAMES)
    assert team.leftovers() == []
    assert team.conversations() == len(NAMES)


@pytest.mark.req("NOD-363")
@pytest.mark.parametrize("commit", range(7))
@pytest.mark.parametrize("fault", [Fault.BROKEN, Fault.LOST])
def test_a_batch_whose_commit_got_no_answer_may_be_sent_again(commit: int, fault: Fault) -> None:
    team = Team()
    faults = Faults(*([None] * commit), fault)
    world = team.world
    shelf = Shelf(Journal(FaultyStore(team.store, faults), world.ids), world.payloads, world.clock)
    with suppress(StoreUnavailable):
        team.create(over=shelf)
    assert faults.injected == [fault]
    there = team.names()
    assert there in ([], sorted(NAMES))
    again = team.create()
    assert again[0].replayed is bool(there)
    assert team.names() == sorted(NAMES)
    world.pass_time(PATIENCE.total_seconds() + 120)
    assert team.leftovers() == []
    assert team.conversations() == len(NAMES)
