"""What entries of the change log mean to a watcher: events, each with its object as it is now."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.listing import MOST_REPLY
from nodus_core.conversations.reading import Reading, Shown
from nodus_core.conversations.shelf import key_of
from nodus_core.journal.changes import Change
from nodus_core.kernel.objects import Object
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.selectors import Selection

MOST_EVENTS = 1000
"""Events of one answer."""

_READ = 100


@dataclass(frozen=True)
class Event:
    """One line of a watch: `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`, and the object.

    `cells`: what tables showed of one that is gone, by column.
    """

    type: str
    object: Shown
    cells: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def version(self) -> int:
        return int(self.object["metadata"]["resourceVersion"])


@dataclass(frozen=True)
class Told:
    """Events in the order of their versions; not `whole`: what happened after the last one is left out."""

    events: tuple[Event, ...] = ()
    whole: bool = True


@dataclass(frozen=True)
class Story:
    """What the log says of one name, in order; at least one entry.

    Of a name, not of an object: one that is made anew may have a lower version than the end of the one before, where
    their writers' clocks differ.
    """

    changes: tuple[Change, ...]

    @property
    def last(self) -> Change:
        return self.changes[-1]

    def began(self, selection: Selection, project: str) -> bool:
        """Whether the object came, or came to be meant, with these changes, as far as they know."""
        first = self.changes[0]
        is_new = any(change.type == "ADDED" for change in self.changes)
        return is_new or not (
            selection.has_labels(first.labels or {}) and selection.fields.may_match(_known(first, project))
        )

    def may_have_matched(self, selection: Selection, project: str, now: Object | None) -> bool:
        """Whether the object may have been meant before one of these changes.

        Labels are changed only by commits that make sure of what was there before; another commit's entry may hold
        old ones. So those of every entry are considered, and those of now. A field that no entry knows may have
        had any value.
        """
        before = [change for change in self.changes if change.labels is not None]
        labels: list[Mapping[str, str]] = [change.labels or {} for change in before]
        return any(map(selection.has_labels, [*labels, *([now.labels] if now else [])])) and any(
            selection.fields.may_match(_known(change, project)) for change in before
        )


@dataclass(frozen=True)
class Happenings:
    """Events of one kind in one project, as far as a selection means them."""

    reading: Reading
    place: Place
    kind: str
    selection: Selection

    def told(self, changes: Sequence[Change]) -> Told:
        """The events of these changes, one for each object.

        Where they are more than an answer holds, those of the latest changes are left out, and so is an object that
        was told of by an early entry and has changed again since: its later entry comes later.
        """
        events: list[Event] = []
        size, reached = 0, 0
        for story, event in self._events(changes):
            if event is not None:
                size += len(json.dumps(event.object, default=str))
                if events and (size > MOST_REPLY or len(events) == MOST_EVENTS):
                    return Told(_in_order(event for event in events if event.version <= reached), whole=False)
                events.append(event)
            reached = story.last.version
        return Told(_in_order(events))

    def _events(self, changes: Sequence[Change]) -> Iterator[tuple[Story, Event | None]]:
        """The story of each name that may be meant, in the order of their last changes, with what there is to tell."""
        name = self.selection.fields.name()
        ordered = _stories([change for change in changes if name in (None, change.name)])
        for stories in (ordered[start : start + _READ] for start in range(0, len(ordered), _READ)):
            keys = [key_of(self.place, self.kind, story.last.name) for story in stories]
            found = self.reading.shelf.journal.objects_at(keys)
            shown = {
                item["metadata"]["name"]: item
                for item in self.reading.all_shown([obj for obj in found if obj])
            }
            for story, obj in zip(stories, found, strict=True):
                yield story, self._event(story, obj, shown.get(story.last.name))

    def _event(self, story: Story, now: Object | None, shown: Shown | None) -> Event | None:
        selection, project = self.selection, self.place.project
        if now is None or shown is None:
            # Without an entry of its end yet: that one is told when it is seen.
            ended = story.last.type == "DELETED" and story.may_have_matched(selection, project, None)
            return Event("DELETED", self._gone(story.last), story.last.cells) if ended else None
        if selection.matches(shown):
            return Event("ADDED" if story.began(selection, project) else "MODIFIED", shown)
        return Event("DELETED", shown) if story.may_have_matched(selection, project, now) else None

    def _gone(self, end: Change) -> Shown:
        """What is left to say of an object that is no more."""
        metadata: dict[str, Any] = {
            "name": end.name,
            **({"namespace": self.place.project} if self.place.project else {}),
            "uid": end.uid,
            "resourceVersion": str(end.version),
        }
        if end.labels:
            metadata["labels"] = dict(end.labels)
        return {"apiVersion": API_VERSION, "kind": self.kind, "metadata": metadata}


def _known(change: Change, project: str) -> dict[str, str]:
    return {"metadata.name": change.name, "metadata.namespace": project, **change.fields}


def _in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda event: event.version))


def _stories(changes: Sequence[Change]) -> list[Story]:
    """The changes by name, in the order of each one's last."""
    found: dict[str, list[Change]] = {}
    for change in sorted(changes, key=lambda change: change.version):
        found.setdefault(change.name, []).append(change)
    stories = [Story(tuple(entries)) for entries in found.values()]
    return sorted(stories, key=lambda story: story.last.version)
