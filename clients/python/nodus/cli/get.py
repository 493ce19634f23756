"""`nodus get`: show objects."""

from __future__ import annotations

import sys
from typing import Any

import click

from nodus._kinds import API_VERSION
from nodus.cli import columns, formats, text
from nodus.cli.failures import usage
from nodus.cli.kinds import Kind, Target, kind_of
from nodus.cli.session import Command, Session, pass_session

OUTPUT = formats.FormatType()


@click.command(cls=Command)
@click.argument("kind", metavar="KIND[/NAME]")
@click.argument("name", required=False)
@click.option("-o", "--output", type=OUTPUT, default="table", help="How to show it (default: table).")
@click.option("--field-selector", metavar="FIELD=VALUE", help="Only objects with this value.")
@click.option("-w", "--watch", is_flag=True, hidden=True)
@pass_session
def get(
    session: Session,
    kind: str,
    name: str | None,
    *,
    output: formats.Format,
    field_selector: str | None,
    watch: bool,
) -> None:
    """Show one object, or all of a kind.

    \b
      nodus get agent/hello-agent -o yaml
      nodus get ar
      nodus get ar --field-selector spec.agent=hello-agent
      nodus get ar triage -o jsonpath='{.status.phase}'
    """
    if watch:
        raise usage(
            "`get` does not watch; use `nodus agentrun steps NAME --follow`, or `nodus wait KIND/NAME --for=…`"
        )
    word, slash, own = kind.partition("/")
    known = kind_of(word)
    if slash and (name or not own):
        raise usage(f"give one name: `nodus get {known.word}/NAME`")
    wanted = own or name
    if wanted is None:
        things = [thing.to_dict() for thing in session.resource(known).list(field_selector=field_selector)]
        _show_list(session, known, things, output)
        return
    if field_selector:
        raise usage("--field-selector is for lists; leave out the name")
    _show(known, session.resource(known).get(wanted).to_dict(), output)


def _show(kind: Kind, thing: dict[str, Any], output: formats.Format) -> None:
    if output.word in {"table", "wide", "name"}:
        _show_rows(kind, [thing], output)
    else:
        _show_value(thing, output)


def _show_list(session: Session, kind: Kind, things: list[dict[str, Any]], output: formats.Format) -> None:
    if output.word not in {"table", "wide", "name"}:
        _show_value({"apiVersion": API_VERSION, "kind": f"{kind.name}List", "items": things}, output)
    elif things:
        _show_rows(kind, things, output)
    elif output.word != "name":
        click.echo(f"No {kind.plural} in project {text.line(session.client.project)}.", err=True)


def _show_rows(kind: Kind, things: list[dict[str, Any]], output: formats.Format) -> None:
    if output.word == "name":
        for thing in things:
            click.echo(text.line(Target(kind, str(columns.pick(thing, "metadata.name")))))
        return
    wide = output.word == "wide"
    rows = [columns.row(kind, thing, wide=wide) for thing in things]
    click.echo(text.table(columns.header(kind, wide=wide), rows))


def _show_value(value: dict[str, Any], output: formats.Format) -> None:
    if output.template is not None:
        shown = output.template.render(value)
        # Not click.echo, which takes colours out of what goes into a pipe: that must be exact.
        sys.stdout.write(text.block(shown) if sys.stdout.isatty() else shown)
    elif output.word == "json":
        click.echo(formats.to_json(value))
    else:
        click.echo(formats.to_yaml(value), nl=False)
