"""The committed documents, made from the models: `python -m nodus_core.documents.reference FOLDER` writes both.

`openapi.json` is the OpenAPI 3.1 document, `api.md` the same for people.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nodus_core import RELEASE
from nodus_core.documents import openapi3
from nodus_core.documents.calls import Operation
from nodus_core.documents.operations import operations
from nodus_core.documents.parts import PREFIX
from nodus_core.documents.schemas import all_schemas, name_of
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
    lines += _login(schemas)
    return "\n".join(lines) + "\n"


def _kind(kind: Kind, schemas: dict[str, Schema]) -> Iterator[str]:
    yield f"## {kind.name}\n"
    short = f", short {', '.join(f'`{word}`' for word in kind.short_names)}" if kind.short_names else ""
    scope = "of a project" if kind.namespaced else "of an organization"
    yield f"`{kind.plural}`{short}; {scope}; permissions `{kind.permission('read')}`, `{kind.permission('write')}`.\n"
    if kind.notice:
        yield f"{kind.notice}\n"
    calls = [operation for operation in operations() if operation.kind == kind.name]
    yield from _calls(calls)
    yield from _table("field of `spec`", name_of(kind.spec.__name__), schemas)
    yield from _others(calls, schemas, known={name_of(kind.name), name_of(kind.list_name)})


def _login(schemas: dict[str, Schema]) -> Iterator[str]:
    """What is no kind of objects: whoever calls has no key, and gets one."""
    calls = [operation for operation in operations() if operation.is_open]
    yield "## Login\n"
    yield "No object, and no credential is needed; see *Login by AWS identity* on [protocols.md](protocols.md).\n"
    yield from _calls(calls)
    yield from _others(calls, schemas, known=set())


def _calls(calls: Sequence[Operation]) -> Iterator[str]:
    yield "| call | does | answers |\n|---|---|---|"
    yield from map(_call, calls)
    yield ""


def _others(calls: Sequence[Operation], schemas: dict[str, Schema], known: set[str]) -> Iterator[str]:
    """What calls take and answer beside the schemas that are `known`, and Kubernetes' own."""
    for call in calls:
        answers = (answer.schema for answer in call.answers.values() if answer.schema)
        for what, names in (("body", call.bodies.values()), ("answer", answers)):
            for name in dict.fromkeys(names):
                if name.startswith(PREFIX) and name not in known:
                    title = f"field of the {what} of `{call.method} …/{call.path.rpartition('/')[2]}`"
                    yield from _table(title, name, schemas)


def _table(title: str, name: str, schemas: dict[str, Schema]) -> Iterator[str]:
    yield f"| {title} | type | means |\n|---|---|---|"
    yield from _fields(schemas[name], schemas, "")
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
        said = field["description"].replace("|", "\\|")
        yield f"| `{path}` | {_type(field)} | {'**Required.** ' if name in needed else ''}{said} |"
        yield from _below(field, schemas, path)


def _below(field: Schema, schemas: dict[str, Schema], path: str) -> Iterator[str]:
    """The fields of what a field holds: of itself, or of each that is in it."""
    target = _target(field)
    if target or "properties" in field:
        yield from _fields(schemas[target] if target else field, schemas, path)
    if "items" in field:
        yield from _below(field["items"], schemas, f"{path}[]")
    if isinstance(field.get("additionalProperties"), dict):
        yield from _below(field["additionalProperties"], schemas, f"{path}.*")


def _target(field: Schema) -> str | None:
    """The schema of ours that a field refers to."""
    (first, *_) = field.get("allOf") or [field]
    target = first.get("$ref")
    return target if target is not None and target.startswith(PREFIX) else None


def _type(field: Schema) -> str:
    if "$ref" in field or "allOf" in field:
        return "object"
    if "anyOf" in field:
        return " or ".join(_type(part) for part in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    said = ", ".join(form.format(field[key]) for key, form in _SAID.items() if key in field)
    of = f" of {_type(field['items'])}" if "items" in field else ""
    return f"{field.get('type', 'any')}{f' ({said})' if said else ''}{of}"


_SAID = {
    "minimum": "from {}",
    "maximum": "to {}",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "maxProperties": "at most {}",
    "example": "such as `{}`",
}


def main() -> None:
    """Writes both files into the folder that is named."""
    folder = Path(sys.argv[1])
    (folder / "openapi.json").write_text(openapi())
    (folder / "api.md").write_text(page())


if __name__ == "__main__":
    main()
