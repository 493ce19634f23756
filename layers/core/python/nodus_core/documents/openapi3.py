"""OpenAPI 3: 3.0 as kubectl reads it, 3.1 for everybody else."""

from collections.abc import Iterable
from typing import Any

from nodus_core.documents.calls import Operation, Parameter
from nodus_core.documents.operations import operations
from nodus_core.documents.schemas import GVK, all_schemas, gvk, relocated
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.media_types import JSON

Document = dict[str, Any]

SCHEMAS = "#/components/schemas/"
PATH = f"openapi/v3/apis/{API_VERSION}"
"""Where the 3.0 document of the group stands."""


def index(digest: str) -> Document:
    """`GET /openapi/v3`: one document for each group version; `digest` changes with its contents."""
    return {"paths": {f"apis/{API_VERSION}": {"serverRelativeURL": f"/{PATH}?hash={digest}"}}}


def document(release: str, version: str = "3.1.0", servers: Iterable[str] = ()) -> Document:
    """The whole API. `version` is that of OpenAPI; the schemas are the same in all."""
    paths: dict[str, Document] = {}
    for operation in operations():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    made: Document = {
        "openapi": version,
        "info": {
            "title": "Nodus",
            "version": release,
            "description": "AI agents as durable, exactly-once work.",
            "license": {"name": "Apache-2.0"},
        },
        **({"servers": [{"url": url} for url in servers]} if servers else {}),
        "paths": paths,
        "components": {
            "schemas": all_schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }
    return relocated(made, SCHEMAS)


def _operation(operation: Operation) -> Document:
    bodies = {media: {"schema": {"$ref": name}} for media, name in operation.bodies.items()}
    return {
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [operation.plural],
        **({"security": []} if operation.is_open else {}),
        "parameters": [_parameter(each) for each in operation.parameters],
        **({"requestBody": {"required": True, "content": bodies}} if bodies else {}),
        "responses": {
            str(code): {
                "description": answer.description,
                **(
                    {
                        "content": {
                            answer.media: {
                                "schema": {"$ref": answer.schema} if answer.schema else {"type": "string"}
                            }
                        }
                    }
                    if answer.schema or answer.media != JSON
                    else {}
                ),
            }
            for code, answer in sorted(operation.answers.items())
        },
        "x-kubernetes-action": operation.action,
        GVK: gvk(operation.kind)[0],
    }


def _parameter(parameter: Parameter) -> Document:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "description": parameter.description,
        "required": parameter.required,
        "schema": parameter.schema,
    }
