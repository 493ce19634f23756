"""`nodus api-resources`: the kinds there are."""

from __future__ import annotations

import click

from nodus._kinds import API_VERSION, KINDS
from nodus.cli import formats, text
from nodus.cli.formats import Format
from nodus.cli.session import Command


@click.command("api-resources", cls=Command)
@click.option("--namespaced", type=bool, metavar="BOOLEAN", help="Only kinds of projects, or only others.")
@formats.output_option(("table", "name"), templates=False)
@click.option("--no-headers", is_flag=True, help="The table without its heading.")
def api_resources(namespaced: bool | None, output: Format, no_headers: bool) -> None:
    """List the kinds of objects and the words for them.

    \b
      nodus api-resources
      nodus api-resources --namespaced=false
    """
    kinds = [kind for kind in KINDS if namespaced is None or kind.namespaced is namespaced]
    if output.word == "name":
        for kind in kinds:
            click.echo(kind.plural)
        return
    rows = [
        [kind.plural, kind.short or "", API_VERSION, str(kind.namespaced).lower(), kind.name]
        for kind in kinds
    ]
    header = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    click.echo(text.table(header, rows, with_header=not no_headers))
