"""Objects on standard output, in the format that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from nodus._kinds import API_VERSION, Kind
from nodus.cli import formats, picking, tables, text
from nodus.cli.formats import Format
from nodus.cli.kinds import Target

Thing = dict[str, Any]


def whole(found: str) -> None:
    """A text as it is: into a file or pipe byte for byte; on a terminal control characters are made visible."""
    if sys.stdout.isatty():
        click.echo(text.block(found), nl=not found.endswith("\n"))
    else:
        sys.stdout.buffer.write(found.encode())


def objects(kind: Kind, things: Sequence[Thing], output: Format, *, header: bool = True) -> None:
    """A list of objects of one kind."""
    if output.tabular:
        rows(kind, things, output, header=header)
    else:
        value({"apiVersion": API_VERSION, "kind": f"{kind.name}List", "items": list(things)}, output)


def below(
    kind: str,
    things: Sequence[Thing],
    output: Format,
    header: list[str],
    row: Callable[[Thing], list[str]],
    *,
    nothing: str | None = None,
) -> None:
    """A list of what stands below an object, as JSON or as a table of ours; `nothing` is said where there is none."""
    if output.word == "json":
        click.echo(formats.to_json({"apiVersion": API_VERSION, "kind": kind, "items": [*things]}))
    elif things:
        click.echo(text.table(header, [row(thing) for thing in things]))
    elif nothing is not None:
        click.echo(nothing, err=True)


def mixed(things: Sequence[tuple[Kind, Thing]], output: Format, *, header: bool = True) -> None:
    """Objects of several kinds: a table for each kind, or one ``List``."""
    if not output.tabular:
        value({"apiVersion": "v1", "kind": "List", "items": [thing for _, thing in things]}, output)
        return
    for number, kind in enumerate(dict.fromkeys(kind for kind, _ in things)):
        if number and output.word != "name":
            click.echo()
        rows(kind, [thing for own, thing in things if own is kind], output, header=header)


def rows(kind: Kind, things: Sequence[Thing], output: Format, *, header: bool) -> None:
    """Lines of a table, or names."""
    if output.word == "name":
        for thing in things:
            click.echo(text.line(Target(kind, str(picking.pick(thing, "metadata.name")))))
        return
    click.echo(text.table(*table_of(kind, things, output), with_header=header))


def table_of(kind: Kind, things: Sequence[Thing], output: Format) -> tuple[list[str], list[list[str]]]:
    """The heading and the cells of a table; without columns of one's own, the objects are rows of the server's."""
    if output.columns is not None:
        return [*output.columns.header], [output.columns.row(thing) for thing in things]
    header, cells = tables.cells_of([*things], wide=output.word == "wide")
    if not (output.projects and kind.namespaced):
        return header, cells
    projects = [str(picking.pick(thing, "metadata.namespace")) for thing in things]
    return ["PROJECT", *header], [[project, *row] for project, row in zip(projects, cells, strict=True)]


def value(found: Thing, output: Format) -> None:
    """One JSON value: as JSON or YAML, or what a template makes of it."""
    if output.template is not None:
        shown = output.template.render(found)
        # Not click.echo, which takes colours out of what goes into a pipe: that must be exact.
        sys.stdout.write(text.block(shown) if sys.stdout.isatty() else shown)
    elif output.word == "json":
        click.echo(formats.to_json(found))
    else:
        click.echo(formats.to_yaml(found), nl=False)
