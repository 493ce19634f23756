"""`nodus login`, `nodus logout` and `nodus whoami`: where to call, with which key."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from itertools import islice

import click

from nodus import _config
from nodus._client import Client
from nodus.cli import text
from nodus.cli.failures import usage
from nodus.cli.session import Command, Session, pass_session
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
@click.option("--aws", is_flag=True, help="Sign in as who AWS says that you are, instead of with a key.")
@click.option("--profile", metavar="NAME", help="With --aws: the profile of your AWS configuration.")
@click.option(
    "--ttl", metavar="DURATION", help="With --aws: how long the login lasts, 15m to 12h (default: 1h)."
)
@click.option("--server", metavar="URL", help="Address of the server (default: that of the context).")
@pass_session
def login(
    session: Session,
    key: str,
    *,
    aws: bool,
    profile: str | None,
    ttl: str | None,
    server: str | None,
) -> None:
    """Sign in with an API key or an AWS identity.

    The key is tried, and stored for later commands.

    The options --project and --org become the defaults of the context; --context names it. With --aws a request
    of AWS STS is signed on this machine and given to the server; no AWS credential leaves it.

    \b
      nodus login --server https://nodus.example.com --org acme --project web
      nodus login --aws --profile work --ttl 8h
    """
    if aws and key != ASK:
        raise usage("give --key or --aws, not both")
    if not aws and (profile or ttl):
        raise usage("--profile and --ttl go with --aws")
    stored = _config.load()
    name = session.context or stored.current or DEFAULT_NAME
    before = stored.contexts.get(name)
    checked = _address(server, before)
    org = session.org or (before.org if before else None)
    token, told = _by_aws(checked, profile, org, ttl) if aws else (_key(key), "")
    context = _config.Context(
        server=checked,
        token=_config.checked_token(token),
        org=org,
        project=session.project or (before.project if before else _config.DEFAULT_PROJECT),
        # What the file says of another server does not hold for this one.
        more=before.more if before and before.server == checked else {},
    )
    _try(context)
    stored.with_context(name, context).save()
    click.echo(f"Signed in to {text.line(context.server)} (context {text.line(name)}){told}.")
    _warn_of_the_environment("goes before the stored key")


def _address(given: str | None, before: _config.Context | None) -> str:
    """The server: the one that is given, that of the environment, or that of the context."""
    address = given or os.environ.get("NODUS_SERVER") or (before.server if before else None)
    if not address:
        raise usage("which server? Give --server URL", "NotConfigured")
    return _config.checked_server(address)


def _key(given: str) -> str:
    if given != ASK:
        return given
    if sys.stdin.isatty():
        return str(click.prompt("API key", hide_input=True)).strip()
    key = sys.stdin.readline().strip()
    if not key:
        raise usage("no key: give --key KEY, or the key on standard input", "NotSignedIn")
    return key


def _by_aws(server: str, profile: str | None, org: str | None, ttl: str | None) -> tuple[str, str]:
    """The key that the server has made, and what to say of it."""
    from nodus import _aws  # noqa: PLC0415 (only this login pays for it)

    made = _aws.log_in(server, session=_aws.session_of(profile), org=org, ttl=ttl)
    told = f" as {text.line(made.get('identity'))} until {text.line(made.get('expiresAt'))}"
    return str(made.get("token")), told


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


@click.command(cls=Command)
@pass_session
def logout(session: Session) -> None:
    """Forget the key of a context.

    The key itself stays valid until it is deleted or expires.

    \b
      nodus logout
      nodus logout --context work
    """
    stored = _config.load()
    name = session.context or stored.current
    context = stored.select(name)
    if name is None or context is None or not context.token:
        click.echo("Not signed in.", err=True)
    else:
        replace(stored, contexts={**stored.contexts, name: replace(context, token="")}).save()
        click.echo(f"Signed out of {text.line(context.server)} (context {text.line(name)}).")
    _warn_of_the_environment("is used all the same")


def _warn_of_the_environment(what: str) -> None:
    if os.environ.get("NODUS_TOKEN"):
        click.echo(f"NODUS_TOKEN is set and {what}.", err=True)
