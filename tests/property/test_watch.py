"""Watchers see every change at least once, whatever the clocks say and whenever a commit becomes visible.

Writers' clocks differ by up to two seconds, and a commit becomes visible up to nearly eight seconds after its version
was made, also in the middle of a window. What a use case does before its commit may take much longer. Watchers go on from the version of their last event, sleep as long as they
like, and list again when they are told to. In the end each of them knows exactly what is there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from nodus_core.access.door import Place
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.listing import Listing
from nodus_core.conversations.reading import Reading
from nodus_core.conversations.shelf import Shelf, key_of
from nodus_core.conversations.watching import Watch, Watching
from nodus_core.journal.changes import next_version
from nodus_core.journal.journal import Journal
from nodus_core.journal.objects import projection
from nodus_core.journal.payloads import Scope
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import Object
from nodus_core.kernel.text import Inline, Text
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata
from nodus_core.resources.selectors import EVERYTHING, Selection, read_selection
from nodus_core.testing.clock import CountingIds
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.world import TickingClock

PLACE = Place("acme", "web", "alice")
KIND = "AgentRun"
SELECTIONS = (
    EVERYTHING,
    EVERYTHING,
    read_selection(None, "tier=web"),
    read_selection("status.phase=Running", None),
    read_selection("spec.agent=a,status.phase!=Queued", "tier"),
)
NAMES = st.sampled_from(("a", "b", "c"))
LABELS = st.sampled_from(({}, {"tier": "web"}, {"tier": "db"}))
PHASES = st.sampled_from(("Queued", "Running", "Failed"))
LAGS = st.floats(-2.0, 9.9)
"""Seconds by which a commit's version is older than the moment in which it becomes visible."""


class SlowPayloads(MemoryPayloads):
    """A payload store that takes its time, in which something happens; it does so once it is told to."""

    meanwhile: Callable[[], None] | None = None

    def put(self, scope: Scope, text: str, *, head: bool = True) -> Text:
        if self.meanwhile is not None:
            self.meanwhile()
        return super().put(scope, text, head=head)


@dataclass
class Watcher:
    """A client: what it knows, and the version of the last event that it was told."""

    selection: Selection
    bookmarks: bool
    position: int | None = None
    known: dict[str, int] = field(default_factory=dict[str, int])

    def hear(self, events: list[Any]) -> None:
        for event in events:
            name = event.object["metadata"].get("name")
            if event.type in ("ADDED", "MODIFIED"):
                self.known[name] = event.version
            elif event.type == "DELETED":
                self.known.pop(name, None)
            self.position = event.version


class Watchers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pending: list[Callable[[], None]] = []
        self.clock = TickingClock(self.happen)
        self.journal = Journal(MemoryStore(), CountingIds())
        self.payloads = SlowPayloads()
        shelf = Shelf(self.journal, self.payloads, self.clock)
        self.definitions = Definitions(shelf, self.journal.writer.ids, KIND)
        self.reading = Reading(shelf)
        self.watching = Watching(self.reading, 25.0)
        self.watchers: list[Watcher] = []

    def happen(self) -> None:
        """What was to happen during a window."""
        if self.pending:
            self.pending.pop(0)()

    @initialize()
    def begin(self) -> None:
        self.watchers = [Watcher(selection, number % 2 == 0) for number, selection in enumerate(SELECTIONS)]

    # --- writers ---

    def found(self, name: str) -> Object | None:
        return self.journal.object(key_of(PLACE, KIND, name))

    def change(self, name: str, labels: dict[str, str], phase: str, lag: float) -> None:
        """Creates the object, or changes labels and status at once."""
        now, old = self.clock.now() - timedelta(seconds=lag), self.found(name)
        status = {"phase": phase}
        if old is None:
            uid, spec = self.journal.writer.ids.fresh("u"), {"spec.agent": "a"}
            new = Object(
                key_of(PLACE, KIND, name), uid, next_version(0, now), 1, Inline('{"agent":"a"}'), now, status
            )
            self.journal.objects.create(replace(new, labels=labels, selectable=spec), now)
        else:
            new = replace(old, labels=labels, status=status, version=next_version(old.version, now))
            self.journal.objects.replace(old, new, now)

    @rule(name=NAMES, labels=LABELS, phase=PHASES, lag=LAGS)
    def write(self, name: str, labels: dict[str, str], phase: str, lag: float) -> None:
        self.change(name, labels, phase, lag)

    @rule(name=NAMES, labels=LABELS, phase=PHASES, lag=LAGS)
    def write_during_a_window(self, name: str, labels: dict[str, str], phase: str, lag: float) -> None:
        self.pending.append(lambda: self.change(name, labels, phase, lag))

    @rule(name=NAMES, phase=PHASES, lag=LAGS, relabelled=st.booleans())
    def project(self, name: str, phase: str, lag: float, relabelled: bool) -> None:
        """The holder of a line shows a status; it has read the object before somebody changed its labels."""
        read = self.found(name)
        if read is None:
            return
        if relabelled:
            self.change(name, {"tier": "web"}, str(read.status.get("phase", "Queued")), 0.0)
        now, stored = self.clock.now() - timedelta(seconds=lag), self.found(name)
        assert stored is not None
        version = next_version(max(read.version, stored.version), now)
        shown = replace(read, status={"phase": phase}, version=version)
        self.journal.writer.commit("project", *projection(shown, now))

    @rule(name=NAMES, lag=LAGS)
    def delete(self, name: str, lag: float) -> None:
        old = self.found(name)
        if old is not None:
            self.journal.objects.remove(old, self.clock.now() - timedelta(seconds=lag))

    @rule(name=NAMES, labels=LABELS, note=st.sampled_from("xyz"), seconds=st.sampled_from((0.0, 8.0, 40.0)))
    def apply(self, name: str, labels: dict[str, str], note: str, seconds: float) -> None:
        """A person applies the object, whose texts take long to store; everybody else goes on meanwhile."""

        def meanwhile() -> None:
            self.clock.advance(seconds)
            self.all_watch()

        self.payloads.meanwhile = meanwhile
        metadata = Metadata(name, labels, {"note": note})
        self.definitions.apply(PLACE, Manifest(KIND, metadata, {"agent": "a"}))
        self.payloads.meanwhile = None

    # --- watchers ---

    @rule()
    def all_watch(self) -> None:
        for which in range(len(self.watchers)):
            self.watch(which, 0.0)

    @rule(which=st.integers(0, 4), seconds=st.sampled_from((2.0, 25.0)))
    def wait(self, which: int, seconds: float) -> None:
        self.watch(which, seconds)

    def watch(self, which: int, seconds: float) -> None:
        watcher = self.watchers[which]
        wanted = Watch(watcher.position, watcher.selection, seconds, watcher.bookmarks)
        try:
            events = self.watching.window(PLACE, KIND, wanted)
        except Refusal as refused:
            if refused.reason != "Expired":
                raise
            self.list_again(which)
            return
        versions = [event.version for event in events]
        assert versions == sorted(versions)
        if watcher.position is None:
            watcher.known.clear()
        watcher.hear(events)

    @rule(which=st.integers(0, 4))
    def list_again(self, which: int) -> None:
        watcher = self.watchers[which]
        page = Listing(self.reading).page(PLACE, KIND, 500, None, watcher.selection)
        assert page.after is None
        metadata = [item["metadata"] for item in page.items]
        watcher.known = {said["name"]: int(said["resourceVersion"]) for said in metadata}
        watcher.position = int(page.version)

    @rule(seconds=st.sampled_from((0.001, 0.5, 4.0, 15.0, 70.0, 3700.0)))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def teardown(self) -> None:
        while self.pending:
            self.happen()
        objects, _ = self.journal.objects_of(PLACE.org, PLACE.project, KIND)
        shown = self.reading.all_shown(objects)
        for which, watcher in enumerate(self.watchers):
            for _ in range(3):  # the rest that is new, and what was told of late
                self.watch(which, 25.0)
            wanted = {
                item["metadata"]["name"]: int(item["metadata"]["resourceVersion"])
                for item in shown
                if watcher.selection.matches(item)
            }
            assert watcher.known == wanted


TestWatchers = Watchers.TestCase
TestWatchers.settings = settings(settings.default, stateful_step_count=20)
