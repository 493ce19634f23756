"""`nodus login` and `nodus config`: where to call, with which key."""

from __future__ import annotations

import os
import sys
from itertools import islice

import click

from nodus import _config
from nodus._client import Client
from nodus.cli import text
from nodus.cli.failures import usage
from nodus.cli.session import Command, Group, Session, pass_session
from nodus.errors import ForbiddenError

ASK = "-"
DEFAULT_NAME = "default"


@click.command(cls=Command)
@click.option(
    "--key",
    is_flag=False,
    flag_value=ASK,
    default=ASK,
    metavar="KEY",
    help="The API key; without a value, or without the option, it is asked for (or read from standard input).",
)
@click.option("--server", metavar="URL", help="Address of the server (default: that of the context).")
@pass_session
def login(session: Session, key: str, server: str | None) -> None:
    """Sign in: try an API key and store it for later commands.

    The options --project and --org become the defaults of the context; --context names it.

    \b
      nodus login --server https://nodus.example.com --org acme --project web
    """
    stored = _config.load()
    name = session.context or stored.current or DEFAULT_NAME
    before = stored.contexts.get(name)
    address = server or os.environ.get("NODUS_SERVER") or (before.server if before else None)
    if not address:
        raise usage("which server? Give --server URL", "NotConfigured")
    context = _config.Context(
        server=_config.checked_server(address),
        token=_config.checked_token(_key(key)),
        org=session.org or (before.org if before else None),
        project=session.project or (before.project if before else _config.DEFAULT_PROJECT),
        more=before.more if before else {},
    )
    _try(context)
    stored.with_context(name, context).save()
    click.echo(f"Signed in to {text.line(context.server)} (context {text.line(name)}).")
    if os.environ.get("NODUS_TOKEN"):
        click.echo("NODUS_TOKEN is set and goes before the stored key.", err=True)


def _key(given: str) -> str:
    if given != ASK:
        return given
    if sys.stdin.isatty():
        return str(click.prompt("API key", hide_input=True)).strip()
    key = sys.stdin.readline().strip()
    if not key:
        raise usage("no key: give --key KEY, or the key on standard input", "NotSignedIn")
    return key


def _try(context: _config.Context) -> None:
    """Make one small call with the key, so that a wrong one is not stored."""
    with Client(
        server=context.server, token=context.token, org=context.org, project=context.project
    ) as client:
        try:
            list(islice(client.agents.pages(limit=1), 1))
        except ForbiddenError as error:
            # The key is known; it only may not list agents, or not in this project.
            click.echo(f"Warning: {text.line(error.message)}", err=True)


@click.group(cls=Group)
def config() -> None:
    """Show and choose contexts."""


@config.command("get-contexts", cls=Command)
def get_contexts() -> None:
    """List the contexts; * marks the current one."""
    stored = _config.load()
    rows = [
        ["*" if name == stored.current else "", name, context.server, context.org or "", context.project]
        for name, context in stored.contexts.items()
    ]
    if rows:
        click.echo(text.table(["CURRENT", "NAME", "SERVER", "ORG", "PROJECT"], rows))
    else:
        click.echo(f"No context yet: {_config.SIGN_IN_HINT}.", err=True)


@config.command("use-context", cls=Command)
@click.argument("name")
def use_context(name: str) -> None:
    """Make a context the current one."""
    stored = _config.load()
    context = stored.select(name)
    if context is not None:
        stored.with_context(name, context).save()
    click.echo(f"Now using context {text.line(name)}.")
