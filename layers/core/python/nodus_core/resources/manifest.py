"""The envelope of every object: what a client writes, and what it is shown (NOD-001, NOD-002)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from nodus_core.kernel.errors import Cause
from nodus_core.kernel.ids import digest
from nodus_core.resources.document import bad, canonical
from nodus_core.resources.kinds import API_VERSION, BY_NAME
from nodus_core.resources.metadata import Metadata, read_metadata
from nodus_core.resources.patch import merge
from nodus_core.resources.refusals import invalid, refusal, unknown_fields
from nodus_core.resources.secret import sealed_digest

MOST_SPEC = 3_000_000
"""Bytes of a spec as JSON. With the longest annotations (1.5 MB where each character is escaped), labels and a status,
an object in base64 stays below the 6 MB that a function may answer."""

_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True)
class Manifest:
    """An object as a client wants it. `spec` holds what was written, without nulls; nothing is defaulted.

    Its repr leaves the spec out, which may hold a Secret's values.
    """

    kind: str
    metadata: Metadata
    spec: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """Its name; empty where one is to be generated."""
        return self.metadata.name

    def named(self, ending: str) -> "Manifest":
        """The same under a name of its own: the one that it has, or the one that is generated with this ending."""
        if self.metadata.generate_name is None:
            return self
        return replace(self, metadata=replace(self.metadata, name=self.metadata.generate_name + ending))

    def complete(self) -> "Manifest":
        """The same as all that the object is to be: what it says nothing about is empty."""
        said = self.metadata
        whole = replace(said, labels=said.labels or {}, annotations=said.annotations or {})
        return replace(self, metadata=whole)

    def meaning(self) -> str:
        """A text that is the same for manifests that mean the same."""
        said = self.metadata
        told = {"kind": self.kind, "name": said.name, "labels": said.labels, "spec": self.spec}
        more = {"generateName": said.generate_name, "annotations": said.annotations}
        return canonical({**told, **{name: value for name, value in more.items() if value is not None}})

    def fingerprint(self, salt: str) -> str:
        """A digest of the meaning, to know the same request again; of a Secret's, it tells nothing about the values."""
        return sealed_digest(self.meaning(), salt) if self.kind == "Secret" else digest(self.meaning())


def read_manifest(body: Mapping[str, Any], kind: str, project: str, name: str | None = None) -> Manifest:
    """The object in a request body, checked whole.

    Args:
        body: what `read_json` gave.
        kind: the kind that the path stands for.
        project: the path's namespace, empty for a kind that has none; another `metadata.namespace` is refused.
        name: the path's name, if it has one.

    Raises `Refusal` naming every field that is not right. `status` and the server's own metadata are ignored
    (NOD-002), so that what was read can be written back.
    """
    body = without_nulls(body)
    _check_envelope(body, kind)
    given = _mapping(body.get("metadata", {}), "metadata", kind)
    metadata, wrong = read_metadata(given, BY_NAME[kind], project, name)
    causes = [*unknown_fields(body, _FIELDS, ""), *wrong]
    if "spec" not in body:
        causes.append(Cause("spec", "is required", "FieldValueRequired"))
    if causes:
        raise invalid(kind, metadata.name or None, tuple(causes))
    spec = _mapping(body["spec"], "spec", kind)
    check_spec(kind, metadata.name, spec)
    _check_size(kind, metadata.name, spec)
    return Manifest(kind, metadata, BY_NAME[kind].spec.as_stored(spec))


def merged(current: Manifest, project: str, patch: Mapping[str, Any]) -> Manifest:
    """An object as it is, with a merge patch (NODQ-60), checked whole. Raises `Refusal` as `read_manifest` does."""
    said = current.metadata
    own: dict[str, Any] = {"name": said.name, "namespace": project or None}
    own |= {"labels": said.labels or {}, "annotations": said.annotations or {}}
    target = {"apiVersion": API_VERSION, "kind": current.kind, "metadata": own, "spec": current.spec}
    return read_manifest(merge(target, patch), current.kind, project, said.name).complete()


def check_changed(kind: str, name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raises `Refusal` `Invalid` for a change of a spec that its kind does not allow."""
    causes = tuple(BY_NAME[kind].spec.changed(old, new))
    if causes:
        raise invalid(kind, name, causes)


def check_spec(kind: str, name: str, spec: dict[str, Any]) -> BaseModel:
    """The spec as its model. Raises `Refusal` `Invalid`, `PayloadTooLarge` or `ComingSoon`."""
    model = BY_NAME[kind].spec
    try:
        return model.model_validate(spec)
    except ValidationError as error:
        raise refusal(error, model, kind, name) from None


def _check_size(kind: str, name: str, spec: dict[str, Any]) -> None:
    """Refuses what no answer could carry."""
    size = len(json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MOST_SPEC:
        message = f"has {size:,} bytes as JSON, at most {MOST_SPEC:,} are taken: an answer must hold it"
        cause = Cause("spec", message, "FieldValueTooLong")
        raise invalid(kind, name or None, (cause,), reason="PayloadTooLarge")


def read_body(model: type[Body], kind: str, body: Mapping[str, Any]) -> Body:
    """A request body that is no manifest, as its model. Raises `Refusal` naming every field that is not right."""
    try:
        return model.model_validate(without_nulls(dict(body)))
    except ValidationError as error:
        raise refusal(error, model, kind, None, root="") from None


def without_nulls(value: Any) -> Any:
    """A field that is null is a field that was left out."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: without_nulls(item) for key, item in fields.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[Any]", value)]
    return value


def _check_envelope(body: Mapping[str, Any], kind: str) -> None:
    for name, wanted in (("apiVersion", API_VERSION), ("kind", kind)):
        value = body.get(name)
        if value is None:
            raise invalid(kind, None, (Cause(name, f"is required: {wanted}", "FieldValueRequired"),))
        if value != wanted:
            shown = repr(value[:80]) if isinstance(value, str) else "that"
            raise bad(f"{name} must be {wanted} here, not {shown}")


def _mapping(value: Any, path: str, kind: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(kind, None, (Cause(path, "must hold fields"),))
    return cast("dict[str, Any]", value)
