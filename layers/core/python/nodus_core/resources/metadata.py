"""`metadata` as a client writes it: checked whole, and what is the server's left alone (NOD-002)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from nodus_core.kernel.errors import Cause
from nodus_core.resources.document import Written, below
from nodus_core.resources.fields import LONGEST_LABEL, is_name
from nodus_core.resources.kinds import Kind
from nodus_core.resources.labels import is_label_key, is_label_value
from nodus_core.resources.refusals import unknown_fields

MOST_LABELS = 64
MOST_ANNOTATIONS = 262_144
"""Bytes of all annotations of an object, keys and values together (as Kubernetes has it)."""

GENERATED = 5
"""Characters that are put behind `generateName`."""

SANDBOX_FINALIZER = "nodus.dev/sandbox"
"""What a run that is being deleted waits for."""

_WRITABLE = ("name", "generateName", "namespace", "labels", "annotations")
_SERVERS = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "finalizers", "managedFields", "selfLink"),
)
"""Fields that the server writes: they are ignored, so that what was read can be written back."""


@dataclass(frozen=True)
class Metadata:
    """What a client says of an object; `labels` and `annotations` are None where it says nothing about them.

    `name` is empty where one is to be generated. `version` and `uid` are those that the writer has seen.
    """

    name: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    version: str | None = None
    uid: str | None = None
    generate_name: str | None = None


def read_metadata(
    given: Mapping[str, Any], kind: Kind, project: str, name: str | None
) -> tuple[Metadata, list[Cause]]:
    """The metadata and what is wrong with it. `name` is that of the path, if it has one."""
    causes = [*unknown_fields(given, _WRITABLE, "metadata", ignored=_SERVERS), *_foreign(given)]
    prefix, wrong = _prefix(given, kind) if name is None else (None, [])
    own_name, name_causes = ("", wrong) if prefix is not None else _name(given.get("name"), name, kind)
    namespace = given.get("namespace")
    if namespace not in (None, project):
        wanted = (
            f"must be {project}, the project of the path" if project else f"is nothing that a {kind.name} has"
        )
        causes.append(Cause("metadata.namespace", wanted))
    labels, label_causes = _labels(given.get("labels"))
    annotations, annotation_causes = _annotations(given.get("annotations"))
    read = Metadata(
        own_name, labels, annotations, _text(given.get("resourceVersion")), _text(given.get("uid")), prefix
    )
    return read, [*causes, *name_causes, *label_causes, *annotation_causes]


def _foreign(given: Mapping[str, Any]) -> Iterator[Cause]:
    """What other systems keep in metadata and nothing here would act on."""
    finalizers: Any = given.get("finalizers") or []
    if finalizers not in ([], [SANDBOX_FINALIZER]):
        yield Cause("metadata.finalizers", "are set by the server only: leave them out")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _prefix(given: Mapping[str, Any], kind: Kind) -> tuple[str | None, list[Cause]]:
    """`generateName`, where it counts: with a name it means nothing."""
    prefix = given.get("generateName")
    if prefix is None or given.get("name"):
        return None, []
    longest = kind.longest_name - GENERATED
    fits = type(prefix) is str and len(prefix) <= longest and is_name(prefix + "0" * GENERATED)
    message = f"must be the beginning of a name: lower case letters, digits, - and . (at most {longest})"
    return str(prefix), [] if fits else [Cause("metadata.generateName", message)]


def _name(written: Any, of_path: str | None, kind: Kind) -> tuple[str, list[Cause]]:
    name = of_path if written is None else written
    if name is None or name == "":
        return "", [Cause("metadata.name", "is required", "FieldValueRequired")]
    if not isinstance(name, str) or isinstance(name, Written):
        return "", [Cause("metadata.name", "must be a text")]
    if not is_name(name) or len(name) > kind.longest_name:
        message = f"must be lower case letters, digits, - and . (at most {kind.longest_name} characters)"
        return "", [Cause("metadata.name", message)]
    if of_path is not None and name != of_path:
        return name, [Cause("metadata.name", f"must be {of_path}, the name in the path")]
    return name, []


def _labels(value: Any) -> tuple[dict[str, str] | None, list[Cause]]:
    if value is None:
        return None, []
    if not isinstance(value, dict) or len(cast("dict[str, Any]", value)) > MOST_LABELS:
        return None, [Cause("metadata.labels", f"must hold at most {MOST_LABELS} texts")]
    labels = cast("dict[str, Any]", value)
    causes = [
        Cause(
            below("metadata.labels", key),
            f"must be a label: at most {LONGEST_LABEL} letters, digits, - _ and .",
        )
        for key, text in labels.items()
        if not is_label_key(key) or type(text) is not str or not is_label_value(text)
    ]
    return (None, causes) if causes else (labels, [])


def _annotations(value: Any) -> tuple[dict[str, str] | None, list[Cause]]:
    if value is None:
        return None, []
    if not isinstance(value, dict):
        return None, [Cause("metadata.annotations", "must hold texts")]
    annotations = cast("dict[str, Any]", value)
    causes = [
        Cause(below("metadata.annotations", key), "must be a text under a key such as example.com/note")
        for key, text in annotations.items()
        if not is_label_key(key) or type(text) is not str
    ]
    if causes:
        return None, causes
    size = sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items())
    if size > MOST_ANNOTATIONS:
        message = f"have {size} bytes together, at most {MOST_ANNOTATIONS} are taken"
        return None, [Cause("metadata.annotations", message, "FieldValueTooLong")]
    return annotations, []
