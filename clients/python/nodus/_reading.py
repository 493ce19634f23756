"""What there is of a kind: read, listed, watched and waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from nodus._flow import Flow, Item, Stream, operation, stream
from nodus._kinds import API_VERSION, Kind
from nodus._pages import LARGEST_PAGE, PAGE_SIZE, Pages, items_of, version_of
from nodus._record import Record
from nodus._transport import Call, Reply, Transport
from nodus._waiting import waiting
from nodus._watch import Event, Snapshot, Watch
from nodus.errors import ConditionMissedError, NodusError, NotFoundError

if TYPE_CHECKING:
    from nodus._client import AnyClient

ALL_PROJECTS = ""
"""In the place of a project's name, for lists only: all projects that the key may use."""


class ReadingFlows:
    """The objects of one kind, as far as nothing is changed."""

    def __init__(self, client: AnyClient, kind: Kind) -> None:
        self.kind = kind
        self._client = client

    def path(self, name: str | None = None, *below: str) -> str:
        """The path of the collection, of an object, or of something below an object, word by word."""
        from urllib.parse import quote  # noqa: PLC0415 (`import nodus` does without it)

        parts = [self.kind.plural, *(() if name is None else (name, *below))]
        if any(part in {"", ".", ".."} for part in parts):
            raise NodusError(
                f"{name!r} cannot be the name of an object: give its metadata.name", reason="Invalid"
            )
        tail = "/".join(quote(part, safe="") for part in parts)
        if not self.kind.namespaced or self._client.project == ALL_PROJECTS:
            return f"/apis/{API_VERSION}/{tail}"
        return f"/apis/{API_VERSION}/namespaces/{quote(self._client.project, safe='')}/{tail}"

    @operation
    def get(self, name: str, *, within: float | None = None) -> Flow[Record]:
        """Read one object.

        Args:
            name: its name.
            within: seconds after which the read gives up; ``None``: after its bounded tries.
        """
        return (yield from self._record(Call("GET", self.path(name)), within))

    @stream
    def pages(
        self,
        *,
        field_selector: str | None = None,
        label_selector: str | None = None,
        limit: int = PAGE_SIZE,
        name: str | None = None,
        below: str | None = None,
        position: str | None = None,
    ) -> Stream[Record]:
        """The pages of a list, from a ``continue`` position on (NODQ-71).

        Raises:
            ExpiredError: the position is too old; begin again.
        """
        query = {"limit": str(limit)} | _selectors(field_selector, label_selector)
        pages = Pages(
            lambda query: self._read(query, name, *(() if below is None else (below,))), query, position
        )
        while (page := (yield from pages.next())) is not None:
            yield Item(page)

    @stream
    def list(self, *, field_selector: str | None = None, label_selector: str | None = None) -> Stream[Record]:
        """All objects, page by page as they are used.

        Args:
            field_selector: for example ``spec.agent=hello-agent``; the server says which fields it takes.
            label_selector: for example ``team=web,stage!=test``.
        """
        query = {"limit": str(PAGE_SIZE)} | _selectors(field_selector, label_selector)
        pages = Pages(self._read, query)
        while (page := (yield from pages.next())) is not None:
            for thing in items_of(page):
                yield Item(thing)

    @stream
    def watch(
        self,
        *,
        field_selector: str | None = None,
        label_selector: str | None = None,
        resource_version: str | None = None,
        resume: bool = True,
        timeout: float | None = None,
    ) -> Stream[Event]:
        """What changes, as it changes, without an end: leave the loop, or ``close()`` (``aclose()``) it.

        Without ``resource_version`` everything that is there comes first, as ``ADDED``. Each change comes once. A
        lost connection, and a server that is away for less than two minutes, are outlasted.

        Args:
            field_selector, label_selector: as of ``list``.
            resource_version: go on after this position, which a list or an object has named.
            resume: when the position is too old, list again and give what differs from what was given before
                (what never was given, as ``ADDED``); ``False``: raise.
            timeout: end after so many seconds; ``None``: never.

        Raises:
            ExpiredError: the position is too old, and ``resume`` is off.
        """
        selectors = _selectors(field_selector, label_selector)

        yield from Watch(
            self._transport.wire,
            lambda: self._snapshot(selectors),
            partial(self._window, selectors),
            position=resource_version,
            resume=resume,
            seconds=timeout,
        ).events()

    @operation
    def wait_for(
        self, name: str, condition: str | Callable[[Record], bool], *, timeout: float | None = None
    ) -> Flow[Record]:
        """Wait until an object is as it shall be, and return it.

        Args:
            name: the object.
            condition: ``phase=Succeeded``, ``condition=Ready``, ``condition=Ready=False``,
                ``jsonpath={.status.fields[0]}=VALUE``, or a function of the object.
            timeout: seconds; ``None``: as long as it takes.

        Raises:
            ConditionMissedError: a phase was waited for, and the object has ended in another.
            NotFoundError: there is no such object, or no more.
            WaitTimeoutError: the time is over.
        """
        from nodus._conditions import Condition, parse_condition, phase_of  # noqa: PLC0415 (likewise)

        wanted = (
            parse_condition(condition) if isinstance(condition, str) else Condition("as wanted", condition)
        )

        def late(seen: Record | None) -> str:
            now = "was not read" if seen is None else f"is {phase_of(seen) or 'there'}"
            return f"{self.kind.word}/{name} {now}, and not {wanted.text}, after {timeout:g} s"

        thing = yield from waiting(
            self._transport.wire,
            lambda within: self._record(Call("GET", self.path(name)), within),
            lambda seen: wanted.met(seen) or wanted.missed(self.kind, seen),
            timeout=timeout,
            describe=late,
        )
        if wanted.missed(self.kind, thing):
            why = f"{self.kind.word}/{name} has ended {phase_of(thing)}, and will not be {wanted.text}"
            raise ConditionMissedError(why, object=thing)
        return thing

    @operation
    def wait_gone(self, name: str, *, timeout: float | None = None) -> Flow[None]:
        """Wait until an object is not there any more, as after ``delete``.

        Raises:
            WaitTimeoutError: the time is over.
        """

        def read(within: float) -> Flow[Record | None]:
            try:
                return (yield from self._record(Call("GET", self.path(name)), within))
            except NotFoundError:
                return None

        yield from waiting(
            self._transport.wire,
            read,
            lambda seen: seen is None,
            timeout=timeout,
            describe=lambda _: f"{self.kind.word}/{name} is still there after {timeout:g} s",
        )

    @property
    def _transport(self) -> Transport:
        return self._client.transport

    def _window(self, selectors: dict[str, str], position: str, seconds: int) -> Flow[bytes]:
        query = {
            **selectors,
            "watch": "true",
            "resourceVersion": position,
            "timeoutSeconds": str(seconds),
            "allowWatchBookmarks": "true",
        }
        return (yield from self._send(Call("GET", self.path(), query=query))).content

    def _snapshot(self, selectors: dict[str, str]) -> Flow[Snapshot]:
        pages = Pages(self._read, {"limit": str(LARGEST_PAGE)} | selectors)
        position = ""
        objects: list[Record] = []
        while (page := (yield from pages.next())) is not None:
            # The first page's: what changes while the others are read is told again, and known by its version.
            position = position or version_of(page)
            objects += items_of(page)
        return Snapshot(position, objects)

    def _read(self, query: Mapping[str, str], name: str | None = None, *below: str) -> Flow[Record]:
        return self._record(Call("GET", self.path(name, *below), query=query))

    def _send(self, call: Call, within: float | None = None) -> Flow[Reply]:
        return self._transport.send(call, within=within)

    def _record(self, call: Call, within: float | None = None) -> Flow[Record]:
        return Record((yield from self._send(call, within)).json())


def _selectors(field_selector: str | None, label_selector: str | None) -> dict[str, str]:
    given = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {name: value for name, value in given.items() if value}
