"""`nodus explain`: what a kind's fields mean."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from nodus._kinds import API_VERSION
from nodus.cli import completing, documents, text
from nodus.cli.kinds import kind_of
from nodus.cli.schemas import Schema, Schemas
from nodus.cli.session import Command, Session, pass_session

INDENT = "  "
WIDTH = 78
DEEPEST = 16
# What limits a value, and how it is said.
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "characters: at least {}",
    "maxLength": "characters: at most {}",
    "minItems": "entries: at least {}",
    "maxItems": "entries: at most {}",
}


@click.command(cls=Command)
@click.argument("path", metavar="KIND[.FIELD]…", shell_complete=completing.objects)
@click.option("--recursive", is_flag=True, help="All fields below, without their descriptions.")
@pass_session
def explain(session: Session, path: str, recursive: bool) -> None:
    """Say what a kind's fields mean.

    The server is asked: it describes what it checks.

    \b
      nodus explain agentrun
      nodus explain agent.spec.model
      nodus explain ag.spec --recursive
    """
    word, *fields = path.strip(".").split(".")
    kind = kind_of(word)
    schemas = Schemas(documents.read(session.client.settings, documents.SCHEMA))
    schema = schemas.at(schemas.of_kind(kind), fields, kind.word)
    lines = [f"KIND:     {kind.name}", f"VERSION:  {API_VERSION}"]
    if fields:
        lines.append(f"FIELD:    {fields[-1]} <{schemas.type_of(schema)}>")
    said = list(_described(schemas, schema, 1))
    if said:
        lines += ["", "DESCRIPTION:", *said]
    below = list(_tree(schemas, schema, 1) if recursive else _fields(schemas, schema))
    if below:
        lines += ["", "FIELDS:", *below]
    click.echo("\n".join(text.line(line) for line in lines))


def _described(schemas: Schemas, schema: Schema, depth: int) -> Iterator[str]:
    """The description and what limits the value."""
    seen = schemas.whole(schema)
    limits = [form.format(seen[key]) for key, form in _LIMITS.items() if key in seen]
    if seen.get("enum"):
        limits.append("one of " + ", ".join(str(word) for word in seen["enum"]))
    parts = [str(seen.get("description") or "").strip(), f"({'; '.join(limits)})" if limits else ""]
    said = " ".join(part for part in parts if part)
    return (INDENT * depth + line for line in textwrap.wrap(said, WIDTH - len(INDENT) * depth))


def _fields(schemas: Schemas, schema: Schema) -> Iterator[str]:
    for name, field, required in schemas.fields(schema):
        yield f"{INDENT}{name} <{schemas.type_of(field)}>{' required' if required else ''}"
        yield from _described(schemas, field, 3)


def _tree(schemas: Schemas, schema: Schema, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        return  # a schema that refers to itself has no end
    for name, field, required in schemas.fields(schema):
        yield f"{INDENT * depth}{name} <{schemas.type_of(field)}>{' required' if required else ''}"
        yield from _tree(schemas, field, depth + 1)
