"""Watching a kind's objects: what has changed behind a position, in windows of some seconds (decision 2).

A window reads the change log until something is there that its watcher cannot know, or its time is up:

    ──────────────┬──────────────────────────┬──────────────────► the log's end
                floor                the watcher's position
                  │ doubtful: told before,   │ new: ends the window, after a short gathering
                  │ or seen too late for it  │

Doubtful entries are told again with what is new, or when the time is up: repeats, never gaps. Behind a settled
position there are none. Each event shows its object as it is now, and events are in the order of their versions: the
last one's is the position from which its watcher goes on.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from nodus_core.access.door import Place
from nodus_core.conversations.happenings import MOST_EVENTS, Event, Happenings, Told
from nodus_core.conversations.listing import Listing
from nodus_core.conversations.reading import Reading
from nodus_core.journal import changes as log
from nodus_core.journal.changes import MOST_CHANGES, OVERLAP, Change
from nodus_core.kernel.errors import Refusal
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.selectors import EVERYTHING, Selection

GATHERING_S = 0.25
"""How long a window that has something to tell waits for what happens at the same time."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 3.0
"""Seconds between two looks at the log; they grow while nothing happens."""

LONGEST_WINDOW_S = 25.0
"""The longest that an answer may wait: API Gateway ends a call after 30 s."""

_AHEAD = timedelta(minutes=1)
"""How far other clocks may be ahead of ours; a later position is none."""


@dataclass(frozen=True)
class Watch:
    """What a watcher asks for. `position` is None for one who knows nothing yet.

    `seconds`: how long an answer may wait for something to happen. `bookmarks`: it takes positions without objects.
    """

    position: int | None = None
    selection: Selection = EVERYTHING
    seconds: float = 0.0
    bookmarks: bool = False


@dataclass
class _Sight:
    """What one window has seen of the log: entries by what tells them apart. `at`: when it looked last."""

    position: int
    at: datetime
    behind: int
    doubtful: dict[tuple[int, str, str], Change] = field(default_factory=dict[tuple[int, str, str], Change])
    new: dict[tuple[int, str, str], Change] = field(default_factory=dict[tuple[int, str, str], Change])

    def take(self, found: Iterable[Change], at: datetime, *, first: bool = False) -> list[Change]:
        """Adds what a look has found. Returns what is new."""
        fresh: list[Change] = []
        for change in found:
            if first and change.version <= self.position:
                self.doubtful[change.id] = change
            elif change.id not in self.doubtful and change.id not in self.new:
                self.new[change.id] = change
                fresh.append(change)
        self.at = at
        # What this look cannot have seen is younger.
        self.behind = max(self.behind, log.micros(at) - OVERLAP)
        return fresh

    def is_in_doubt(self) -> bool:
        """Whether there are doubtful entries beside the one that gave the position, which its watcher was told of."""
        own = [change for change in self.doubtful.values() if change.version == self.position]
        return len(self.doubtful) > (1 if len(own) == 1 else 0)

    def reached(self) -> int:
        """The greatest version that was seen, or the position."""
        return max([self.position, *(change.version for change in self.new.values())])


@dataclass(frozen=True)
class Watching:
    """Watches of one journal. `window_s`: how long an answer waits at most."""

    reading: Reading
    window_s: float

    def window(self, place: Place, kind: str, watch: Watch) -> list[Event]:
        """What has changed behind the watcher's position, once something has or the window's time is up.

        Without a position: everything that there is, as `ADDED`. Raises `Refusal`: `BadRequest` for a position that
        cannot be one; `Expired` when the log does not reach back to it, or when more has happened since than one
        answer can hold: list again then.
        """
        if not watch.position:
            return self._begin(place, kind, watch)
        begun = self.reading.shelf.clock.now()
        _check(watch.position, begun)
        happenings = Happenings(self.reading, place, kind, watch.selection)
        sight = _Sight(watch.position, begun, log.floor(watch.position))
        has_news = self._wait(happenings, sight, begun + self._patience(watch))
        told = _told(happenings, sight) if has_news or sight.is_in_doubt() else Told()
        events = list(told.events)
        if told.whole and watch.bookmarks:
            reached = max([sight.reached(), *(event.version for event in events)])
            events.append(_bookmark(kind, max(reached, log.settled(sight.at))))
        return events

    def _patience(self, watch: Watch) -> timedelta:
        return timedelta(seconds=min(watch.seconds, self.window_s))

    def _wait(self, happenings: Happenings, sight: _Sight, until: datetime) -> bool:
        """Looks at the log until it holds something to tell. False: the time is up."""
        clock, pause = self.reading.shelf.clock, FIRST_PAUSE_S
        fresh = self._look(happenings, sight, first=True)
        while not (fresh and happenings.told(fresh).events):
            left = (until - clock.now()).total_seconds()
            if left <= 0:
                return False
            clock.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
            fresh = self._look(happenings, sight)
        clock.sleep(GATHERING_S)
        self._look(happenings, sight)
        return True

    def _look(self, happenings: Happenings, sight: _Sight, *, first: bool = False) -> list[Change]:
        place, at = happenings.place, self.reading.shelf.clock.now()
        store = self.reading.shelf.journal.store
        found = log.read_changes(store, place.org, place.project, happenings.kind, sight.behind)
        if not found.whole:
            raise _expired(f"there were more than {MOST_CHANGES} changes since")
        return sight.take(found.changes, at, first=first)

    def _begin(self, place: Place, kind: str, watch: Watch) -> list[Event]:
        """All objects as they are now, and the position from which to go on."""
        page = Listing(self.reading).page(place, kind, MOST_EVENTS, None, watch.selection)
        if page.after is not None:
            raise _expired("there are more objects than one answer holds")
        events = sorted((Event("ADDED", item) for item in page.items), key=lambda event: event.version)
        position = max([int(page.version), *(event.version for event in events)])
        return [*events, *([_bookmark(kind, position)] if watch.bookmarks else [])]


def _told(happenings: Happenings, sight: _Sight) -> Told:
    """The events of a window. Where they do not fit, doubtful ones are left for the next window, which must see them.

    It does as long as its position is near enough to them.
    """
    known = [*sight.doubtful.values(), *sight.new.values()]
    told = happenings.told(known)
    late = [change.version for change in known if change.version <= sight.position]
    if told.whole or not late:
        return told
    nearest = min(late) + OVERLAP
    new = [change for change in known if sight.position < change.version < nearest]
    events = tuple(event for event in happenings.told(new).events if sight.position < event.version < nearest)
    if not events:
        raise _expired("more has happened at once than one answer holds")
    return Told(events, whole=False)


def _check(position: int, now: datetime) -> None:
    if position > log.micros(now + _AHEAD):
        raise Refusal("BadRequest", f"resourceVersion {position} lies ahead of every change")
    if not log.is_kept(position, now):
        raise _expired("changes are kept for an hour")


def _expired(why: str) -> Refusal:
    return Refusal(
        "Expired", f"this resourceVersion is too old to go on from: {why}; list again and watch from there"
    )


def _bookmark(kind: str, position: int) -> Event:
    metadata = {"resourceVersion": str(position)}
    return Event("BOOKMARK", {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata})
