"""`nodus config`: show, choose and change contexts, and make kubectl use them."""

from __future__ import annotations

from dataclasses import replace

import click

from nodus import _config
from nodus.cli import completing, formats, printing, text
from nodus.cli.failures import usage
from nodus.cli.formats import Format
from nodus.cli.session import Group, Session, pass_session

HIDDEN = "(hidden)"


@click.group(cls=Group)
def config() -> None:
    """Show, choose and change contexts.

    A context is a server, a key, and the project and organization to use there. Contexts are kept in ~/.config/nodus/config.yaml; NODUS_CONFIG names another file. NODUS_SERVER, NODUS_TOKEN,
    NODUS_ORG and NODUS_PROJECT go before what a context says.
    """


@config.command("get-contexts")
@formats.output_option(("table", "name"), templates=False)
def get_contexts(output: Format) -> None:
    """List the contexts; * marks the current one."""
    stored = _config.load()
    if output.word == "name":
        for name in stored.contexts:
            click.echo(text.line(name))
        return
    rows = [
        ["*" if name == stored.current else "", name, context.server, context.org or "", context.project]
        for name, context in stored.contexts.items()
    ]
    if rows:
        click.echo(text.table(["CURRENT", "NAME", "SERVER", "ORG", "PROJECT"], rows))
    else:
        click.echo(f"No context yet: {_config.SIGN_IN_HINT}.", err=True)


@config.command("current-context")
def current_context() -> None:
    """Print the name of the current context."""
    stored = _config.load()
    if stored.current is None:
        raise usage(f"there is no current context: {_config.SIGN_IN_HINT}", "ContextNotFound")
    click.echo(text.line(stored.current))


@config.command("use-context")
@click.argument("name", shell_complete=completing.contexts)
def use_context(name: str) -> None:
    """Make a context the current one."""
    stored = _config.load()
    stored.select(name)
    replace(stored, current=name).save()
    click.echo(f"Now using context {text.line(name)}.")


@config.command("set-context")
@click.argument("name", required=False, shell_complete=completing.contexts)
@click.option("--current", is_flag=True, help="The current context, instead of NAME.")
@click.option("--server", metavar="URL", help="Address of the server.")
@pass_session
def set_context(session: Session, name: str | None, *, current: bool, server: str | None) -> None:
    """Make a context, or change one.

    --project, --org and --server say what it shall be; its key stays.

    \b
      nodus config set-context --current -p staging
      nodus config set-context work --server https://nodus.example.com --org acme
    """
    stored = _config.load()
    if current is (name is not None):
        raise usage("give the NAME of a context, or --current")
    wanted = stored.current if current else name
    if wanted is None:
        raise usage(f"there is no current context: {_config.SIGN_IN_HINT}", "ContextNotFound")
    before = stored.contexts.get(wanted)
    address = server or (before.server if before else None)
    if address is None:
        raise usage(f"context {wanted!r} is new: give its --server URL")
    blank = _config.Context(server=address, token="")
    changes = {"server": _config.checked_server(address)}
    changes |= {"org": session.org} if session.org else {}
    changes |= {"project": session.project} if session.project else {}
    changed = replace(before or blank, **changes)
    replace(stored, contexts={**stored.contexts, wanted: changed}).save()
    click.echo(f"Context {text.line(wanted)} {'changed' if before else 'made'}.")
    if not changed.token:
        click.echo(f"It has no key yet: nodus login --context {text.line(wanted)}", err=True)


@config.command("delete-context")
@click.argument("name", shell_complete=completing.contexts)
def delete_context(name: str) -> None:
    """Forget a context and its key.

    The key itself stays valid.
    """
    stored = _config.load()
    stored.select(name)
    left = {own: context for own, context in stored.contexts.items() if own != name}
    replace(stored, contexts=left, current=None if stored.current == name else stored.current).save()
    click.echo(f"Context {text.line(name)} deleted.")
    if stored.current == name:
        click.echo("No context is current now: nodus config use-context NAME", err=True)


@config.command("view")
@formats.output_option(("yaml", "json"), default="yaml")
def view(output: Format) -> None:
    """Print the configuration; keys are hidden."""
    stored = _config.load()
    contexts = {
        name: {
            **context.more,
            "server": context.server,
            **({"org": context.org} if context.org else {}),
            "project": context.project,
            "token": HIDDEN if context.token else "",
        }
        for name, context in stored.contexts.items()
    }
    printing.value({**stored.more, "current-context": stored.current, "contexts": contexts}, output)


@config.command("kubeconfig")
@formats.output_option(("yaml", "json"), templates=False, default="yaml")
@pass_session
def kubeconfig(session: Session, output: Format) -> None:
    """Print a configuration for kubectl.

    With it kubectl talks to the context's server, in the context's project. It holds the key.

    \b
      nodus config kubeconfig > nodus.kubeconfig
      kubectl --kubeconfig nodus.kubeconfig get agentruns
    """
    from nodus.cli.kube import kubeconfig_of  # noqa: PLC0415 (only this command needs it)

    stored = _config.load()
    settings = session.client.settings
    context = stored.select(session.context)
    mine = context if context is not None and context.server == settings.server else None
    name = (session.context or stored.current or "nodus") if mine else "nodus"
    printing.value(kubeconfig_of(name, settings, mine.more if mine else {}), output)
