"""Watching a collection without an end, over windows that end (docs/protocols.md, section 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, cast

from nodus._flow import Flow, Item, Stream
from nodus._record import Record
from nodus._status import from_status
from nodus._transport import parsed
from nodus._waiting import PASSING, SERVER_AWAY_SECONDS
from nodus._wire import Wire
from nodus.errors import ApiError, ExpiredError, UnexpectedAnswerError

WINDOW_SECONDS = 20  # below the 25 s that no call stays open longer than (NODQ-79)
# A window that ends sooner, and empty, has not waited for anything.
SHORTEST_WINDOW_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
MOST_TOMBSTONES = 10_000

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]


class Event(NamedTuple):
    """One change: what happened, and the object afterwards.

    Of ``DELETED`` it is the object as the watch knew it last; of one that it never knew, its metadata only.
    """

    type: EventType
    object: Record


class Snapshot(NamedTuple):
    """Everything that a collection holds, and the position at which it did."""

    position: str
    objects: list[Record]


class Watch:
    """One watch: its position, what it knows to be there, and how long the server has been away.

    Args:
        wire: clock, sleep and chance.
        listing: reads the whole collection.
        window: reads the events after a position; its second argument is the seconds that the server may wait.
        position: where to begin; ``None``: with all that is there.
        resume: whether an expired position is made good by another listing.
        seconds: how long to watch; ``None``: for ever.
    """

    def __init__(
        self,
        wire: Wire,
        listing: Callable[[], Flow[Snapshot]],
        window: Callable[[str, int], Flow[bytes]],
        *,
        position: str | None,
        resume: bool,
        seconds: float | None,
    ) -> None:
        self._wire = wire
        self._listing = listing
        self._window = window
        self._position = position
        self._resume = resume
        self._until = float("inf") if seconds is None else wire.clock() + seconds
        self._known = _Known()
        self._answered: float | None = None
        self._fruitless = 0

    def events(self) -> Stream[Event]:
        """The changes, in the order of each object's versions, each once."""
        expired = self._position is None
        while self._wire.clock() < self._until:
            began = self._wire.clock()
            changes: list[Event] = []
            listing, expired = expired, False
            try:
                changes = yield from self._list() if listing else self._read(self._position or "")
                self._answered = self._wire.clock()
            except ExpiredError:
                if not self._resume:
                    raise
                expired = True
            except PASSING:
                if self._answered is None or self._wire.clock() - self._answered > SERVER_AWAY_SECONDS:
                    raise
                expired = listing
            for change in changes:
                yield Item(change)
            waited = self._wire.clock() - began >= SHORTEST_WINDOW_SECONDS
            if changes or waited:
                self._fruitless = 0
            elif expired or not listing:
                yield from self._pause()

    def _list(self) -> Flow[list[Event]]:
        snapshot = yield from self._listing()
        self._position = snapshot.position
        return list(self._known.replaced_by(snapshot.objects))

    def _read(self, position: str) -> Flow[list[Event]]:
        seconds = max(1, int(min(WINDOW_SECONDS, self._until - self._wire.clock())))
        content = yield from self._window(position, seconds)
        changes: list[Event] = []
        for word, thing in _lines(content):
            if word == "ERROR":
                if changes:  # first these; the next window meets the error again
                    break
                raise _error(thing)
            if not _newer(position, _version(thing)):
                position = _version(thing)
            if word != "BOOKMARK" and (change := self._known.changed_by(word, thing)):
                changes.append(change)
        self._position = position
        return changes

    def _pause(self) -> Flow[None]:
        longest = min(FIRST_PAUSE_SECONDS * 2**self._fruitless, LONGEST_PAUSE_SECONDS)
        self._fruitless = min(self._fruitless + 1, 16)
        seconds = longest * (0.5 + self._wire.chance() / 2)
        yield partial(self._wire.sleep, min(seconds, max(0.0, self._until - self._wire.clock())))


class _Known:
    """The objects that are there, as far as the watch has seen, and the latest that are not any more.

    The server may tell a change twice (decision 2); what is not newer than what is known is left out.
    """

    def __init__(self) -> None:
        self._there: dict[Key, Record] = {}
        self._gone: dict[Key, str] = {}
        self._listed = False

    def changed_by(self, word: EventType, thing: Record) -> Event | None:
        """Take in an event; what it says that is new."""
        key, version = _key(thing), _version(thing)
        before = self._there.get(key)
        if before is not None and _newer(_version(before), version):
            return None
        if key in self._gone and not _newer(version, self._gone[key]):
            return None
        if word == "DELETED":
            return self._deleted(key, thing)
        self._there[key] = thing
        return Event(word, thing) if before is None or _version(before) != version else None

    def _deleted(self, key: Key, thing: Record) -> Event | None:
        self._gone[key] = _version(thing)
        if len(self._gone) > MOST_TOMBSTONES:
            del self._gone[next(iter(self._gone))]
        before = self._there.pop(key, None)
        if before is None:  # whoever has seen everything was never told of it
            return None if self._listed else Event("DELETED", thing)
        known, told = before.to_dict(), thing.to_dict()
        return Event("DELETED", Record(known | told | {"metadata": known["metadata"] | told["metadata"]}))

    def replaced_by(self, objects: list[Record]) -> Iterator[Event]:
        """Take in a listing; what has changed since, as far as it can be told."""
        self._listed = True
        before, self._there = self._there, {_key(thing): thing for thing in objects}
        for key, thing in before.items():
            after = self._there.get(key)
            if after is None or _uid(after) != _uid(thing):
                yield Event("DELETED", thing)
        for key, thing in self._there.items():
            earlier = before.get(key)
            if earlier is None or _uid(earlier) != _uid(thing):
                yield Event("ADDED", thing)
            elif _version(earlier) != _version(thing):
                yield Event("MODIFIED", thing)


def _lines(content: bytes) -> Iterator[tuple[EventType | Literal["BOOKMARK", "ERROR"], Record]]:
    """The events of a window.

    Raises:
        UnexpectedAnswerError: it is none.
    """
    for line in content.splitlines():
        event: Any = parsed(line) if line.strip() else {"type": "", "object": {}}
        match event:
            case {
                "type": "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR" as word,
                "object": {**fields},
            }:
                yield word, Record(fields)
            case {"type": str(), "object": {}}:
                pass  # a later server's own kind of event
            case _:
                raise UnexpectedAnswerError("the answer to a watch holds a line that is no event")


def _error(status: Record) -> ApiError:
    code = status.get("code")
    return from_status(status.to_dict(), code=code if isinstance(code, int) else 500)


def _metadata(thing: Record) -> dict[str, Any]:
    metadata = thing.to_dict().get("metadata")
    return cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}


def _key(thing: Record) -> Key:
    metadata = _metadata(thing)
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _uid(thing: Record) -> Any:
    return _metadata(thing).get("uid")


def _version(thing: Record) -> str:
    version = _metadata(thing).get("resourceVersion")
    if not isinstance(version, str):
        raise UnexpectedAnswerError("the answer to a watch holds an object without a resourceVersion")
    return version


def _newer(one: str, other: str) -> bool:
    """Whether a version is after another; they are decimal numbers (decision 2)."""
    if one.isdecimal() and other.isdecimal():
        # Of numbers without leading zeros the longer is the larger; `int` refuses what is very long.
        return (len(one), one) > (len(other), other)
    return False
