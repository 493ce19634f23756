"""JSON schemas of what goes over the wire, from the models that check it.

Pydantic's own output is brought to what OpenAPI 2, 3.0 and 3.1 all understand: no null beside a type (a field that is
null is one that was left out), constants as enumerations, maps without patterns of their keys, every model under a
name of its own.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel

from nodus_core.documents.parts import LIST_META, OBJECT_META, PREFIX
from nodus_core.documents.shared import SHARED
from nodus_core.resources.kinds import API_VERSION, GROUP, KINDS, VERSION, Kind
from nodus_core.resources.login import Login
from nodus_core.resources.message import Message
from nodus_core.resources.resolution import Stated
from nodus_core.resources.sandbox_command import SandboxCommand
from nodus_core.resources.sandbox_file import FileMove, FileUpload, NewFolder
from nodus_core.resources.sandbox_preview import SandboxPreview
from nodus_core.resources.sandbox_terminal import SandboxTerminal

Schema = dict[str, Any]

GVK = "x-kubernetes-group-version-kind"

_BOUNDS = {"ge": "minimum", "le": "maximum"}
_PYDANTICS = "#/$defs/"
_STATUS: Schema = {
    "type": "object",
    "description": "What is so; written by the server only.",
    "x-kubernetes-preserve-unknown-fields": True,
}
_LEFT_OUT = frozenset({"title", "default", "$defs", "propertyNames"})


def name_of(kind: str) -> str:
    """The name under which a kind's schema stands."""
    return f"{PREFIX}.{kind}"


def ref(name: str) -> Schema:
    """A reference to a schema by its name; `relocated` says where the schemas stand in a document."""
    return {"$ref": name}


def gvk(kind: str) -> list[Schema]:
    """How Kubernetes names a kind."""
    return [{"group": GROUP, "version": VERSION, "kind": kind}]


def of_model(model: type[BaseModel], found: dict[str, Schema]) -> Schema:
    """A reference to the schema of a model, which is put among those `found` with all that it refers to."""
    raw: Schema = model.model_json_schema(by_alias=True)
    for name, part in cast("dict[str, Schema]", raw.get("$defs", {})).items():
        found[name_of(name)] = _plain(part)
    found[name_of(model.__name__)] = _plain(raw)
    return ref(name_of(model.__name__))


def of_kind(kind: Kind, found: dict[str, Schema]) -> Schema:
    """A reference to the schema of a kind's objects; the list's is put beside it."""
    envelope: Schema = {
        "type": "object",
        "description": _said(kind.spec),
        "properties": {
            "apiVersion": _word("Version of the schema.", API_VERSION),
            "kind": _word("The kind.", kind.name),
            "metadata": _about("What every object has.", ref(OBJECT_META)),
            "spec": _about("What is wanted.", of_model(kind.spec, found)),
            "status": _STATUS,
        },
        "required": ["apiVersion", "kind", "metadata", "spec"],
        GVK: gvk(kind.name),
    }
    found[name_of(kind.name)] = envelope
    found[name_of(kind.list_name)] = {
        "type": "object",
        "description": f"A page of {kind.plural}.",
        "properties": {
            "apiVersion": _word("Version of the schema.", API_VERSION),
            "kind": _word("The kind.", kind.list_name),
            "metadata": _about("What every list has.", ref(LIST_META)),
            "items": {
                "type": "array",
                "description": f"The {kind.plural} of the page, in the order of their names.",
                "items": ref(name_of(kind.name)),
            },
        },
        "required": ["apiVersion", "kind", "metadata", "items"],
        GVK: gvk(kind.list_name),
    }
    return ref(name_of(kind.name))


def all_schemas() -> dict[str, Schema]:
    """Every schema by its name: kinds, lists, parts, and what they share with Kubernetes."""
    found = dict(SHARED)
    for kind in KINDS:
        of_kind(kind, found)
    of_sandboxes = (SandboxCommand, SandboxTerminal, SandboxPreview, FileMove, FileUpload, NewFolder)
    for model in (Login, Message, *of_sandboxes, Stated):
        of_model(model, found)
    return dict(sorted(found.items()))


def relocated(value: Any, where: str) -> Any:
    """A copy in which references lead to `where`, for instance `#/definitions/`."""
    if isinstance(value, dict):
        return {
            key: where + item if key == "$ref" else relocated(item, where)
            for key, item in cast("Schema", value).items()
        }
    if isinstance(value, list):
        return [relocated(item, where) for item in cast("list[Any]", value)]
    return value


def _plain(schema: Mapping[str, Any]) -> Schema:
    made = {_BOUNDS.get(key, key): item for key, item in schema.items() if key not in _LEFT_OUT}
    if "const" in made:
        made["enum"] = [made.pop("const")]
    if "anyOf" in made:
        typed = [item for item in made.pop("anyOf") if item.get("type") != "null"]
        if len(typed) == 1:
            return _plain({**typed[0], **made})
        made["anyOf"] = [*map(_plain, typed)]
    if "patternProperties" in made:
        (made["additionalProperties"],) = made.pop("patternProperties").values()
    if str(made.get("$ref", "")).startswith(_PYDANTICS):
        target = ref(name_of(str(made.pop("$ref")).removeprefix(_PYDANTICS)))
        return {"allOf": [target], **made} if made else target
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _plain(made[key])
    if "properties" in made:
        made["properties"] = {name: _plain(item) for name, item in made["properties"].items()}
    if isinstance(made.get("description"), str):
        made["description"] = " ".join(made["description"].split())
    return made


def _said(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _word(description: str, value: str) -> Schema:
    return {"type": "string", "description": description, "enum": [value]}


def _about(description: str, target: Schema) -> Schema:
    return {"allOf": [target], "description": description}
