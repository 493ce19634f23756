"""`nodus get --watch`: a line whenever an object changes."""

from __future__ import annotations

from typing import Any

import click

from nodus._kinds import Kind
from nodus.cli import formats, picking, printing, text
from nodus.cli.failures import usage
from nodus.cli.formats import Format
from nodus.cli.kinds import Target
from nodus.cli.session import Session


def follow(
    session: Session,
    kind: Kind,
    name: str | None,
    output: Format,
    *,
    labels: str | None,
    fields: str | None,
    header: bool,
) -> None:
    """Show what is there, and from then on what changes, until interrupted.

    Args:
        session: where.
        kind: of what.
        name: only this object; ``None``: all that the selectors choose.
        output: a line of a table, or JSON in one line, or YAML documents.
        labels, fields: label selector and field selector.
        header: whether a table has its heading.

    Raises:
        Failure: the format cannot be shown bit by bit.
    """
    if name is not None:
        session.resource(kind).get(name)  # one that does not exist is an error, not an endless silence
        only = f"metadata.name={name}"
        fields = f"{fields},{only}" if fields else only
    if output.template is not None:
        raise usage(
            "--watch shows tables, names, json or yaml; a template sees one object at a time with `get`"
        )
    table: text.Table | None = None
    resource = session.rows(kind) if output.of_server else session.resource(kind)
    for event in resource.watch(label_selector=labels, field_selector=fields):
        thing = event.object.to_dict()
        if not (output.of_server or output.columns):
            _show(kind, thing, output)
            continue
        heading, rows = printing.table_of(kind, [thing], output)
        table = table or text.Table(heading, with_header=header)
        click.echo(table.add(rows))


def _show(kind: Kind, thing: dict[str, Any], output: Format) -> None:
    """An object whose like may follow: its name, a line of JSON, or a document of YAML."""
    if output.word == "name":
        click.echo(text.line(Target(kind, str(picking.pick(thing, "metadata.name")))))
    elif output.word == "json":
        click.echo(formats.to_json_line(thing))
    else:
        click.echo("---\n" + formats.to_yaml(thing), nl=False)
