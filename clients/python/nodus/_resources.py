"""The objects of a project or an organization, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nodus._flow import Blocking, Concurrent, Flow, Item, Stream, operation, stream
from nodus._kinds import API_VERSION, Kind
from nodus._pages import LARGEST_PAGE, PAGE_SIZE, Pages, items_of, version_of
from nodus._record import Record
from nodus._transport import APPLY_PATCH, MERGE_PATCH, Call, Reply, Transport
from nodus._waiting import waiting
from nodus._watch import Event, Snapshot, Watch
from nodus.errors import ConditionMissedError, NodusError, NotFoundError, OutcomeUnknownError

if TYPE_CHECKING:
    from nodus._client import AnyClient

Manifest = Mapping[str, Any] | Record
"""An object as it is given: ``metadata`` with the name, and ``spec``; ``apiVersion`` and ``kind`` are filled in."""


class Applied(NamedTuple):
    """What an apply did: the object afterwards, and whether it is new."""

    object: Record
    created: bool


class ResourceFlows:
    """The objects of one kind; every call may raise the errors of ``nodus.errors``."""

    def __init__(self, client: AnyClient, kind: Kind) -> None:
        self.kind = kind
        self._client = client

    def path(self, name: str | None = None, below: str | None = None) -> str:
        """The path of the collection, of an object, or of something below an object."""
        from urllib.parse import quote  # noqa: PLC0415 (`import nodus` does without it)

        parts = [self.kind.plural, *((name, below) if below else (name,) if name is not None else ())]
        if any(part in {"", ".", ".."} for part in parts):
            raise NodusError(
                f"{name!r} cannot be the name of an object: give its metadata.name", reason="Invalid"
            )
        tail = "/".join(quote(part or "", safe="") for part in parts)
        if not self.kind.namespaced:
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

    @operation
    def create(
        self,
        name: str | None,
        spec: Mapping[str, Any],
        *,
        generate_name: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Flow[Record]:
        """Create an object; a name that is taken raises ``AlreadyExistsError``.

        Args:
            name: its name; ``None``: the server makes one of ``generate_name``.
            spec: what it shall be.
            generate_name: the beginning of such a name, for example ``nightly-``.
            labels: words to select it by.
            annotations: other words to keep with it.
            dry_run: have it checked, and store nothing.

        Raises:
            OutcomeUnknownError: the answer was lost, and with it the token of a key; of other kinds it is asked for
                again.
        """
        if bool(name) is bool(generate_name):
            raise NodusError(f"a {self.kind.word} has a name or generate_name, one of them", reason="Invalid")
        metadata: dict[str, Any] = {"name": name} if name else {"generateName": generate_name}
        if labels is not None:
            metadata["labels"] = dict(labels)
        if annotations is not None:
            metadata["annotations"] = dict(annotations)
        body = self._whole({"metadata": metadata, "spec": dict(spec)})
        # The server keeps the call's key: sent again after a lost answer, it gives the first outcome (FLD-16), and so
        # the name that was made.
        repeatable = not self.kind.shows_once
        call = Call("POST", self.path(), query=dry(dry_run), body=body, repeatable=repeatable)
        return Record((yield from self._making(call, str(name or generate_name))).json())

    @operation
    def update(self, manifest: Manifest, *, dry_run: bool = False) -> Flow[Record]:
        """Replace an object that exists by this one, such as one that was read and changed.

        Its ``metadata.resourceVersion``, if it has one, must still be the object's.

        Raises:
            ConflictError: somebody has changed it in between: read it again, and repeat the change.
            NotFoundError: there is no such object; ``apply`` would make it.
        """
        body = self._whole(manifest)
        # The second try of a change at a given version would meet the version that the first one has made.
        repeatable = not self.kind.costly and "resourceVersion" not in body["metadata"]
        path = self.path(_name_of(body))
        call = Call("PUT", path, query=dry(dry_run), body=body, repeatable=repeatable)
        return (yield from self._record(call))

    @operation
    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Flow[Applied]:
        """Create the object, or bring an existing one to this ``spec`` (NOD-009).

        Args:
            manifest: ``metadata`` with the name, and ``spec``; ``apiVersion`` and ``kind`` are filled in.
            dry_run: have it checked, and store nothing.

        Raises:
            OutcomeUnknownError: the answer was lost, and sending it again could do more than sending it once.
        """
        body = self._whole(manifest)
        name = _name_of(body)
        # An apply states the outcome; but one that was deleted in between would be made, and paid for, again.
        repeatable = not (self.kind.costly or self.kind.shows_once)
        query = dry(dry_run)
        call = Call(
            "PATCH", self.path(name), query=query, body=body, content_type=APPLY_PATCH, repeatable=repeatable
        )
        reply = yield from self._making(call, name)
        return Applied(Record(reply.json()), created=reply.code == 201)

    @operation
    def patch(self, name: str, patch: Mapping[str, Any], *, dry_run: bool = False) -> Flow[Record]:
        """Merge a JSON merge patch into an object, for example ``{"spec": {"maxParallelAgents": 0}}``."""
        call = Call("PATCH", self.path(name), query=dry(dry_run), body=dict(patch), content_type=MERGE_PATCH)
        return (yield from self._record(call))

    @operation
    def delete(
        self,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> Flow[Record]:
        """Delete an object; what comes back is the object that is going, or a ``Status`` of success.

        Args:
            name: its name.
            uid: only the object with this ``metadata.uid``, and not another that was made under its name since.
            resource_version: only if nobody has changed it since this ``metadata.resourceVersion``.
            dry_run: have it checked, and delete nothing.

        Raises:
            ConflictError: it is another object, or another version of it, by now.
        """
        given = {"uid": uid, "resourceVersion": resource_version}
        meant = {field: value for field, value in given.items() if value is not None}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": meant} if meant else None
        return (yield from self._record(Call("DELETE", self.path(name), query=dry(dry_run), body=body)))

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
        pages = Pages(lambda query: self._read(query, name, below), query, position)
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

        def window(position: str, seconds: int) -> Flow[bytes]:
            query = {
                **selectors,
                "watch": "true",
                "resourceVersion": position,
                "timeoutSeconds": str(seconds),
                "allowWatchBookmarks": "true",
            }
            return (yield from self._send(Call("GET", self.path(), query=query))).content

        yield from Watch(
            self._transport.wire,
            lambda: self._snapshot(selectors),
            window,
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

    def _snapshot(self, selectors: dict[str, str]) -> Flow[Snapshot]:
        pages = Pages(self._read, {"limit": str(LARGEST_PAGE)} | selectors)
        position = ""
        objects: list[Record] = []
        while (page := (yield from pages.next())) is not None:
            # The first page's: what changes while the others are read is told again, and known by its version.
            position = position or version_of(page)
            objects += items_of(page)
        return Snapshot(position, objects)

    def _read(
        self, query: Mapping[str, str], name: str | None = None, below: str | None = None
    ) -> Flow[Record]:
        return self._record(Call("GET", self.path(name, below), query=query))

    def _whole(self, manifest: Manifest) -> dict[str, Any]:
        fields = manifest.to_dict() if isinstance(manifest, Record) else manifest
        if not isinstance(fields.get("metadata"), Mapping):
            raise NodusError("a manifest has `metadata` with the object's name", reason="Invalid")
        return {"apiVersion": API_VERSION, "kind": self.kind.name, **fields}

    def _send(self, call: Call, within: float | None = None) -> Flow[Reply]:
        return self._transport.send(call, within=within)

    def _making(self, call: Call, name: str) -> Flow[Reply]:
        """Send what may make an object."""
        try:
            return (yield from self._send(call))
        except OutcomeUnknownError as error:
            if not self.kind.shows_once:
                raise
            it = f"{self.kind.word}/{name}"
            lost = f"if it has made {it}, the token is lost with the answer: delete {it} and make it again"
            raise OutcomeUnknownError(f"{error.message}; {lost}") from error

    def _record(self, call: Call, within: float | None = None) -> Flow[Record]:
        return Record((yield from self._send(call, within)).json())


class Resource(ResourceFlows, Blocking):
    """The objects of one kind; each call returns when it is done."""


class AsyncResource(ResourceFlows, Concurrent):
    """The objects of one kind; each call is awaited."""


def _name_of(body: Mapping[str, Any]) -> str:
    name = body["metadata"].get("name")
    if not isinstance(name, str):
        raise NodusError("a manifest has the object's name in `metadata.name`", reason="Invalid")
    return name


def dry(dry_run: bool) -> dict[str, str]:
    """The query of a write that is to be checked and not made, if it is."""
    return {"dryRun": "All"} if dry_run else {}


def _selectors(field_selector: str | None, label_selector: str | None) -> dict[str, str]:
    given = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {name: value for name, value in given.items() if value}
