"""`nodus sandbox …`: commands in a sandbox."""

from __future__ import annotations

import click

from nodus._kinds import API_VERSION, SANDBOX
from nodus._sandboxes import Sandbox
from nodus.cli import completing, formats, printing, text
from nodus.cli.picking import pick
from nodus.cli.session import Command, Group, Session, pass_session

sandbox_argument = click.argument("name", shell_complete=completing.names(SANDBOX))
HEADER = ["ID", "STATE", "EXIT", "STARTED", "COMMAND"]


@click.group(cls=Group)
def sandbox() -> None:
    """Work in a sandbox: run commands, look at them, end them."""


@sandbox.command(cls=Command)
@sandbox_argument
@click.option("--cwd", "working_dir", metavar="FOLDER", help="Where to run it (default: /workspace).")
@click.option("--timeout", metavar="DURATION", help="End it after so much time (default: 60s).")
@click.option("--detach", is_flag=True, help="Print its id at once, and let it run.")
@click.argument("command", nargs=-1, required=True)
@pass_session
def run(
    session: Session,
    name: str,
    command: tuple[str, ...],
    *,
    working_dir: str | None,
    timeout: str | None,
    detach: bool,
) -> int:
    """Run a shell command in a running sandbox.

    Its output is printed when it has ended, and its exit code is this command's.

    \b
      nodus sandbox run dev -- python3 --version
      nodus sandbox run dev --timeout 10m -- 'pytest -q | tail -3'
      nodus sandbox run dev --detach -- ./long.sh
    """
    line = " ".join(command)
    if detach:
        placed = session.client.sandboxes.run(name, line, working_dir=working_dir, timeout=timeout)
        click.echo(placed.metadata.name)
        return 0
    handle = Sandbox(name, client=session.client)
    done = handle.run(line, working_dir=working_dir, timeout=timeout)
    if done.output:
        printing.whole(done.output)
    if done.state != "Exited":
        click.echo(f"sandbox/{text.line(name)} command {done.name} {done.state}", err=True)
    code = done.get("exitCode")
    return code if isinstance(code, int) else 1


@sandbox.command(cls=Command)
@sandbox_argument
@formats.output_option(("table", "json"), templates=False)
@pass_session
def commands(session: Session, name: str, output: formats.Format) -> None:
    """List a sandbox's commands, the newest first; also while it is stopped."""
    found = [command.to_dict() for command in session.client.sandboxes.commands(name)]
    if output.word == "json":
        listed = {"apiVersion": API_VERSION, "kind": "SandboxCommandList", "items": found}
        click.echo(formats.to_json(listed))
    elif found:
        click.echo(text.table(HEADER, [_row(command) for command in found]))
    else:
        click.echo(f"Sandbox {text.line(name)} has had no command yet.", err=True)


@sandbox.command(cls=Command)
@sandbox_argument
@click.argument("command")
@pass_session
def output(session: Session, name: str, command: str) -> None:
    """Print what an ended command has put out."""
    found = session.client.sandboxes.output(name, command)
    if found:
        printing.whole(found)


@sandbox.command(cls=Command)
@sandbox_argument
@click.argument("command")
@pass_session
def cancel(session: Session, name: str, command: str) -> None:
    """End a command, and neither the sandbox nor another command."""
    shown = session.client.sandboxes.cancel_command(name, command)
    state = pick(shown.to_dict(), "status.state")
    over = state not in ("Pending", "Running", "Cancelled")
    said = f"has ended already ({state})" if over else "cancelled" if state == "Cancelled" else "cancelling"
    click.echo(f"sandbox/{text.line(name)} command {text.line(command)} {said}")


def _row(command: dict[str, object]) -> list[str]:
    paths = ("metadata.name", "status.state", "status.exitCode", "status.startedAt", "spec.command")
    found = (pick(command, path) for path in paths)
    return ["" if value is None else text.line(str(value)) for value in found]
