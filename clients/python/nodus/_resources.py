"""The objects of a project or an organization, kind by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from nodus._flow import Blocking, Concurrent, Flow, operation
from nodus._kinds import API_VERSION
from nodus._reading import ReadingFlows
from nodus._record import Record
from nodus._transport import APPLY_PATCH, MERGE_PATCH, Call, Reply
from nodus.errors import NodusError, OutcomeUnknownError

Manifest = Mapping[str, Any] | Record
"""An object as it is given: ``metadata`` with the name, and ``spec``; ``apiVersion`` and ``kind`` are filled in."""


class Applied(NamedTuple):
    """What an apply did: the object afterwards, and whether it is new."""

    object: Record
    created: bool


class ResourceFlows(ReadingFlows):
    """The objects of one kind; every call may raise the errors of ``nodus.errors``."""

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

    def _whole(self, manifest: Manifest) -> dict[str, Any]:
        fields = manifest.to_dict() if isinstance(manifest, Record) else manifest
        if not isinstance(fields.get("metadata"), Mapping):
            raise NodusError("a manifest has `metadata` with the object's name", reason="Invalid")
        return {"apiVersion": API_VERSION, "kind": self.kind.name, **fields}

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
