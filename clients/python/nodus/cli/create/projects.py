"""`nodus create project`, and what work in a project needs: secrets, budgets and API keys."""

from __future__ import annotations

import click

from nodus._kinds import API_KEY, BUDGET, PROJECT, SECRET
from nodus.cli import changing, values
from nodus.cli.changing import Report
from nodus.cli.create.making import given, make
from nodus.cli.failures import usage
from nodus.cli.session import Command, Session, pass_session


@click.command("secret", cls=Command)
@click.argument("name")
@click.option(
    "--from-literal", "literals", multiple=True, metavar="FIELD=VALUE", help="A field and its value."
)
@click.option(
    "--from-file",
    "from_files",
    multiple=True,
    metavar="[FIELD=]FILE|-",
    help="A field with what a file holds, or standard input; without FIELD it is called like the file.",
)
@changing.change_options
@pass_session
def secret(
    session: Session,
    name: str,
    *,
    literals: tuple[str, ...],
    from_files: tuple[str, ...],
    report: Report,
) -> None:
    """Store values that are never shown again.

    Such as a model provider's key. A value on the command line stays in the shell's history; --from-file FIELD=- reads
    it from standard input.

    \b
      nodus create secret anthropic-key --from-file ANTHROPIC_API_KEY=-
      nodus create secret model-key --from-literal OPENAI_API_KEY=…
    """
    make(session, SECRET, name, {"data": values.read(literals, from_files)}, report)


@click.command("budget", cls=Command)
@click.argument("name")
@click.option(
    "--limit",
    required=True,
    metavar="USD",
    help="What the project may spend on models and sandboxes together.",
)
@changing.change_options
@pass_session
def budget(session: Session, name: str, *, limit: str, report: Report) -> None:
    """Limit what a project spends; what does not fit waits.

    \b
      nodus create budget product-showcase --limit 5.00
    """
    spec = {"period": "Total", "action": "Block", "limitUSD": limit}
    make(session, BUDGET, name, spec, report)


@click.command("project", cls=Command)
@click.argument("name")
@click.option("--display-name", metavar="TEXT", help="What people call it.")
@changing.change_options
@pass_session
def project(session: Session, name: str, *, display_name: str | None, report: Report) -> None:
    """Make a project of the organization.

    \b
      nodus create project staging --display-name "Staging"
    """
    make(session, PROJECT, name, given(displayName=display_name), report)


@click.command("apikey", cls=Command)
@click.argument("name")
@click.option("--role", type=click.Choice(["viewer", "editor", "admin"]), help="What it may do, in one word.")
@click.option(
    "--permission", "permissions", multiple=True, metavar="WORD", help="Or such as agentruns:read; several."
)
@click.option(
    "--for-project", "projects", multiple=True, metavar="NAME", help="Where it works; several (default: all)."
)
@click.option("--ttl", metavar="DURATION", help="How long it works, such as 30d (default: for ever).")
@changing.change_options
@pass_session
def apikey(
    session: Session,
    name: str,
    *,
    role: str | None,
    permissions: tuple[str, ...],
    projects: tuple[str, ...],
    ttl: str | None,
    report: Report,
) -> None:
    """Make an API key. Its token is printed now and never again.

    \b
      nodus create apikey ci --role editor --for-project web --ttl 30d
      nodus create apikey reader --permission agentruns:read -o jsonpath='{.status.token}'
    """
    if (role is None) is (not permissions):
        raise usage("give --role or --permission, one of them")
    spec = given(role=role, permissions=[*permissions] or None, projects=[*projects] or ["*"], ttl=ttl)
    make(session, API_KEY, name, spec, report)
