"""The committed documents, made from the models: `python -m nodus_core.documents.reference FOLDER` writes both.

`openapi.json` is the OpenAPI 3.1 document, `api.md` the same for people.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodus_core import RELEASE
from nodus_core.documents import openapi3
from nodus_core.documents.operations import Operation, operations
from nodus_core.documents.schemas import all_schemas, name_of
from nodus_core.documents.shared import PREFIX
from nodus_core.resources.kinds import KINDS, Kind

Schema = dict[str, Any]

HEAD = """\
# The REST API, call by call

Made from the models by `python -m nodus_core.documents.reference docs`; a test compares. How the calls behave is on [protocols.md](protocols.md), every refusal on [errors.md](errors.md). The same as OpenAPI 3.1: [openapi.json](openapi.json), and from a server `GET /openapi.json`.
"""


def openapi() -> str:
    """The OpenAPI 3.1 document as it is committed."""
    return json.dumps(openapi3.document(RELEASE), indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """The reference page."""
    schemas = all_schemas()
    lines = [HEAD]
    for kind in KINDS:
        lines += _kind(kind, schemas)
    return "\n".join(lines) + "\n"


def _kind(kind: Kind, schemas: dict[str, Schema]) -> Iterator[str]:
    yield f"## {kind.name}\n"
    short = f", short {', '.join(f'`{word}`' for word in kind.short_names)}" if kind.short_names else ""
    scope = "of a project" if kind.namespaced else "of an organization"
    yield f"`{kind.plural}`{short}; {scope}; permissions `{kind.permission('read')}`, `{kind.permission('write')}`.\n"
    if kind.notice:
        yield f"{kind.notice}\n"
    yield "| call | does | answers |\n|---|---|---|"
    for operation in operations():
        if operation.kind is kind:
            yield _call(operation)
    yield "\n| field of `spec` | type | |\n|---|---|---|"
    yield from _fields(schemas[name_of(kind.spec.__name__)], schemas, "")
    yield ""


def _call(operation: Operation) -> str:
    good = " ".join(str(code) for code in sorted(operation.answers) if code < 400)
    bad = " ".join(str(code) for code in sorted(operation.answers) if code >= 400)
    query = " ".join(each.name for each in operation.parameters if each.where == "query")
    asked = f"; {query}" if query else ""
    return f"| `{operation.method} {operation.path}` | {operation.summary}{asked} | {good}; {bad} |"


def _fields(schema: Schema, schemas: dict[str, Schema], above: str) -> Iterator[str]:
    needed = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        path = f"{above}.{name}" if above else name
        target = _target(field)
        required = "required" if name in needed else ""
        yield f"| `{path}` | {_type(field, schemas)} | {required} |"
        if target:
            yield from _fields(schemas[target], schemas, path)
        inner = _target(field.get("items", {}))
        if inner:
            yield from _fields(schemas[inner], schemas, f"{path}[]")


def _target(field: Schema) -> str | None:
    """The schema of ours that a field refers to."""
    (first, *_) = field.get("allOf") or [field]
    target = first.get("$ref")
    return target if target is not None and target.startswith(PREFIX) else None


def _type(field: Schema, schemas: dict[str, Schema]) -> str:
    if _target(field):
        return "object"
    if "anyOf" in field:
        return " or ".join(_type(part, schemas) for part in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    kind = str(field.get("type", "any"))
    bounds = [f"{word} {field[key]}" for key, word in _BOUNDS.items() if key in field]
    of = f" of {_type(field['items'], schemas)}" if kind == "array" and "items" in field else ""
    return f"{kind}{of}{': ' if bounds else ''}{', '.join(bounds)}"


_BOUNDS = {
    "minimum": "from",
    "maximum": "to",
    "maxLength": "at most",
    "minItems": "from",
    "maxItems": "at most",
    "maxProperties": "at most",
}


def main() -> None:
    """Writes both files into the folder that is named."""
    folder = Path(sys.argv[1])
    (folder / "openapi.json").write_text(openapi())
    (folder / "api.md").write_text(page())


if __name__ == "__main__":
    main()
