"""The envelope of every object: what a client writes, and what it is shown (NOD-001, NOD-002)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from nodus_core.kernel.errors import MOST_CAUSES, Cause
from nodus_core.kernel.ids import digest
from nodus_core.resources.document import Written, bad, below, canonical
from nodus_core.resources.fields import is_name
from nodus_core.resources.kinds import API_VERSION, BY_NAME
from nodus_core.resources.patch import merge
from nodus_core.resources.refusals import invalid, refusal, suggestion
from nodus_core.resources.secret import sealed_digest

_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_WRITABLE = ("name", "namespace", "labels")
_SHOWN = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
_MOST_LABELS = 64
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_MONEY_FIELDS = ("perRunMaxCostUSD", "limitUSD")


@dataclass(frozen=True)
class Manifest:
    """An object as a client wants it. `spec` holds what was written, without nulls; nothing is defaulted.

    `labels` is None when the writer says nothing about them; `version` is `metadata.resourceVersion` if it was
    sent: the one that the writer has seen. Its repr leaves the spec out, which may hold a Secret's values.
    """

    kind: str
    name: str
    spec: dict[str, Any] = field(repr=False)
    labels: dict[str, str] | None = None
    version: str | None = None

    def meaning(self) -> str:
        """A text that is the same for manifests that mean the same."""
        return canonical({"kind": self.kind, "name": self.name, "labels": self.labels, "spec": self.spec})

    def fingerprint(self, salt: str) -> str:
        """A digest of the meaning, to know the same request again; of a Secret's, it tells nothing about the values."""
        return sealed_digest(self.meaning(), salt) if self.kind == "Secret" else digest(self.meaning())


def read_manifest(body: Mapping[str, Any], kind: str, project: str, name: str | None = None) -> Manifest:
    """The object in a request body, checked whole.

    Args:
        body: what `read_json` gave.
        kind: the kind that the path stands for.
        project: the path's namespace; another `metadata.namespace` is refused.
        name: the path's name, if it has one.

    Raises `Refusal` naming every field that is not right. `status` and the server's own metadata are ignored
    (NOD-002), so that what was read can be written back.
    """
    body = without_nulls(body)
    _check_envelope(body, kind)
    metadata = _mapping(body.get("metadata", {}), "metadata", kind)
    causes = [*_unknown(body, _FIELDS, ""), *_unknown(metadata, (*_WRITABLE, *_SHOWN), "metadata")]
    own_name, name_causes = _name(metadata.get("name"), name)
    namespace = metadata.get("namespace")
    if namespace not in (None, project):
        causes.append(Cause("metadata.namespace", f"must be {project}, the project of the path"))
    labels, label_causes = _labels(metadata.get("labels"))
    causes += [*name_causes, *label_causes]
    if "spec" not in body:
        causes.append(Cause("spec", "is required", "FieldValueRequired"))
    if causes:
        raise invalid(kind, own_name or None, tuple(causes))
    spec = _mapping(body["spec"], "spec", kind)
    version = metadata.get("resourceVersion")
    check_spec(kind, own_name, spec)
    return Manifest(kind, own_name, _as_stored(spec), labels, None if version is None else str(version))


def merged(current: Manifest, project: str, patch: Mapping[str, Any]) -> Manifest:
    """An object as it is, with a merge patch (NODQ-60), checked whole. Raises `Refusal` as `read_manifest` does."""
    own: dict[str, Any] = {"name": current.name, "namespace": project, "labels": current.labels or {}}
    target = {"apiVersion": API_VERSION, "kind": current.kind, "metadata": own, "spec": current.spec}
    manifest = read_manifest(merge(target, patch), current.kind, project, current.name)
    return replace(manifest, labels=manifest.labels or {})


def check_spec(kind: str, name: str, spec: dict[str, Any]) -> BaseModel:
    """The spec as its model. Raises `Refusal` `Invalid`, `PayloadTooLarge` or `ComingSoon`."""
    model = BY_NAME[kind].spec
    try:
        return model.model_validate(spec)
    except ValidationError as error:
        raise refusal(error, model, kind, name) from None


def without_nulls(value: Any) -> Any:
    """A field that is null is a field that was left out."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: without_nulls(item) for key, item in fields.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[Any]", value)]
    return value


def _as_stored(spec: dict[str, Any]) -> dict[str, Any]:
    """Money that was given as a number becomes the text that was written (NODQ-92)."""
    written = {name: str(spec[name]) for name in _MONEY_FIELDS if name in spec}
    return {**spec, **written}


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


def _unknown(given: Mapping[str, Any], known: tuple[str, ...], path: str) -> list[Cause]:
    # No more than are shown: to look for the field that was meant is slow.
    unknown = islice((key for key in given if key not in known), MOST_CAUSES)
    return [
        Cause(below(path, key), f"is no field{suggestion(key, list(known))}", "FieldValueUnknown")
        for key in unknown
    ]


def _name(written: Any, of_path: str | None) -> tuple[str, list[Cause]]:
    name = of_path if written is None else written
    if name is None or name == "":
        return "", [Cause("metadata.name", "is required", "FieldValueRequired")]
    if not isinstance(name, str) or isinstance(name, Written):
        return "", [Cause("metadata.name", "must be a text")]
    if not is_name(name):
        message = "must be lower case letters, digits, - and . (at most 253 characters)"
        return "", [Cause("metadata.name", message)]
    if of_path is not None and name != of_path:
        return name, [Cause("metadata.name", f"must be {of_path}, the name in the path")]
    return name, []


def _labels(value: Any) -> tuple[dict[str, str] | None, list[Cause]]:
    if value is None:
        return None, []
    if not isinstance(value, dict) or len(cast("dict[str, Any]", value)) > _MOST_LABELS:
        return None, [Cause("metadata.labels", f"must hold at most {_MOST_LABELS} texts")]
    labels = cast("dict[str, Any]", value)
    causes = [
        Cause(below("metadata.labels", key), "must be a label: at most 63 letters, digits, - _ and .")
        for key, text in labels.items()
        if not _is_label_key(key) or type(text) is not str or _VALUE.fullmatch(text) is None
    ]
    return (None, causes) if causes else (labels, [])


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(name) and _VALUE.fullmatch(name) is not None and (not slash or is_name(prefix))
