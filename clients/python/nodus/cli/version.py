"""`nodus version`."""

from __future__ import annotations

from typing import Any

import click

from nodus._version import __version__
from nodus.cli import documents, formats, picking, printing, text
from nodus.cli.formats import Format
from nodus.cli.session import Command, Session, pass_session


@click.command(cls=Command)
@click.option("--client", "client_only", is_flag=True, help="Do not ask the server.")
@formats.output_option(("table", "yaml", "json"), templates=False)
@pass_session
def version(session: Session, client_only: bool, output: Format) -> None:
    """Print the versions of program and server.

    \b
      nodus version --client
    """
    found: dict[str, Any] = {"clientVersion": {"version": __version__}}
    if not client_only:
        found["serverVersion"] = documents.read(session.client.settings, documents.VERSION)
    if output.word != "table":
        printing.value(found, output)
        return
    click.echo(f"Client: {__version__}")
    if not client_only:
        shown = picking.pick(found, "serverVersion.gitVersion")
        click.echo(f"Server: {text.line(shown)} at {text.line(session.client.settings.server)}")
