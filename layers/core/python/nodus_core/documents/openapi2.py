"""OpenAPI 2 (Swagger), which older kubectl reads, as JSON and as the protocol buffer that it asks for."""

from typing import Any, cast

from nodus_core.documents.calls import Operation
from nodus_core.documents.operations import operations
from nodus_core.documents.parts import STATUS
from nodus_core.documents.schemas import GVK, all_schemas, gvk, relocated
from nodus_core.resources.media_types import JSON

Document = dict[str, Any]
DEFINITIONS = "#/definitions/"


def document(release: str) -> Document:
    """The API as Swagger. Headers are left to OpenAPI 3."""
    paths: dict[str, Document] = {}
    for operation in operations():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    made: Document = {
        "swagger": "2.0",
        "info": {"title": "Nodus", "version": release},
        "paths": paths,
        "definitions": {name: _open(schema) for name, schema in all_schemas().items()},
    }
    return relocated(made, DEFINITIONS)


def _operation(operation: Operation) -> Document:
    parameters: list[Document] = [
        {
            "name": each.name,
            "in": each.where,
            "required": each.required,
            "type": each.schema["type"],
            "description": each.description,
        }
        for each in operation.parameters
        if each.where != "header"
    ]
    for name in list(operation.bodies.values())[:1]:
        parameters.append({"name": "body", "in": "body", "required": True, "schema": {"$ref": name}})
    return {
        "operationId": operation.id,
        "description": operation.summary,
        "consumes": list(operation.bodies) or ["*/*"],
        "produces": [JSON],
        "parameters": parameters,
        "responses": {
            str(code): {
                "description": answer.description,
                **({"schema": {"$ref": answer.schema}} if answer.schema else {}),
            }
            for code, answer in sorted(operation.answers.items())
            if answer.schema != STATUS or code < 300
        },
        "x-kubernetes-action": operation.action,
        GVK: gvk(operation.kind)[0],
    }


def _open(value: Any) -> Any:
    """A schema without what Swagger has no word for: closed objects, alternatives.

    A reference that says something of its own stands beside what it says: kubectl reads no `allOf`.
    """
    if isinstance(value, dict):
        schema = cast("Document", value)
        if "allOf" in schema:
            schema = {**schema["allOf"][0], **{key: item for key, item in schema.items() if key != "allOf"}}
        return {
            key: _open(item)
            for key, item in schema.items()
            if not (key == "additionalProperties" and item is False) and key not in ("anyOf", "oneOf")
        }
    if isinstance(value, list):
        return [_open(item) for item in cast("list[Any]", value)]
    return value
