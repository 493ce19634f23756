"""Parts that schemas are made of: their names, and fields, texts, numbers, lists."""

from typing import Any

Schema = dict[str, Any]

PREFIX = "dev.nodus.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{META}.ObjectMeta"
LIST_META = f"{META}.ListMeta"
STATUS = f"{META}.Status"


def text(description: str, **more: Any) -> Schema:
    """A text."""
    return {"type": "string", "description": description, **more}


def whole(description: str, **more: Any) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": description, **more}


def moment(description: str) -> Schema:
    """A moment in UTC."""
    return text(description, format="date-time")


def texts(description: str) -> Schema:
    """Texts by name."""
    return {"type": "object", "description": description, "additionalProperties": {"type": "string"}}


def texts_in_order(description: str) -> Schema:
    """A list of texts."""
    return {"type": "array", "description": description, "items": {"type": "string"}}


def fields(description: str, properties: Schema, *required: str, **more: Any) -> Schema:
    """An object of these fields."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "description": description, "properties": properties, **needed, **more}


def versioned(version: str, kind: str) -> Schema:
    """The fields that say what an object is."""
    return {
        "apiVersion": text("Version of the schema.", enum=[version]),
        "kind": text("The kind.", enum=[kind]),
    }


def page_of(kind: str, description: str, items: str, what: Schema) -> Schema:
    """A page of a list of `kind`; `what` each of its items is."""
    return fields(
        description,
        {
            **versioned("nodus.dev/v1", kind),
            "metadata": {"allOf": [{"$ref": LIST_META}], "description": "What every list has."},
            "items": {"type": "array", "items": what, "description": items},
        },
        "items",
    )


def view_of(kind: str, description: str, spec: Schema, status: Schema, *required: str) -> Schema:
    """Something below an object that is shown as one: what was asked for, and what became of it."""
    return fields(
        description,
        {
            **versioned("nodus.dev/v1", kind),
            "metadata": {"allOf": [{"$ref": OBJECT_META}], "description": "What every object has."},
            "spec": fields("What was asked for.", spec),
            "status": fields("What became of it.", status),
        },
        *required,
    )


NOTHING: Schema = {"type": "object", "description": "Holds nothing."}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
