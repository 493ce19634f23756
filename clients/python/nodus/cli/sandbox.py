"""`nodus sandbox …`: commands, terminals and previews of a sandbox."""

from __future__ import annotations

import shlex

import click

from nodus._kinds import ENVIRONMENT_IMAGE, SANDBOX
from nodus._sandboxes import Sandbox
from nodus.cli import completing, following, formats, printing, text
from nodus.cli.failures import usage
from nodus.cli.picking import pick
from nodus.cli.sandbox_files import files
from nodus.cli.session import Command, Group, Session, pass_session

sandbox_argument = click.argument("name", shell_complete=completing.names(SANDBOX))
TERMINALS = "t-"
"""How ids of terminals begin."""

HEADER = ["ID", "STATE", "EXIT", "STARTED", "COMMAND"]


@click.group(cls=Group)
def sandbox() -> None:
    """Work in a sandbox: run commands, look at them, end them; open a shell; see its web services; look at its files, fetch and save them."""


sandbox.add_command(files)


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

    Its output is shown as it comes, and its exit code is this command's. Interrupted, it goes on in the sandbox.
    One COMMAND is a line for the shell; several are a program and its arguments, each as it is.

    \b
      nodus sandbox run dev -- python3 --version
      nodus sandbox run dev --timeout 10m -- 'pytest -q | tail -3'
      nodus sandbox run dev --detach -- ./long.sh
    """
    sandboxes = session.client.sandboxes
    placed = sandboxes.run(name, _line(command), working_dir=working_dir, timeout=timeout)
    command_id = str(placed.metadata.name)
    if detach:
        click.echo(command_id)
        return 0
    try:
        following.show(session, name, command_id)
    except KeyboardInterrupt:
        click.echo(
            f"{text.line(command_id)} goes on; nodus sandbox output {text.line(name)} {text.line(command_id)} -f"
            " follows it",
            err=True,
        )
        raise
    return following.end_of(session, name, command_id)


@sandbox.command(cls=Command)
@sandbox_argument
@formats.output_option(("table", "json"), templates=False)
@pass_session
def commands(session: Session, name: str, output: formats.Format) -> None:
    """List a sandbox's commands, the newest first; also while it is stopped."""
    found = [command.to_dict() for command in session.client.sandboxes.commands(name)]
    nothing = f"Sandbox {text.line(name)} has had no command yet."
    printing.below("SandboxCommandList", found, output, HEADER, _row, nothing=nothing)


@sandbox.command(cls=Command)
@sandbox_argument
@click.argument("command")
@click.option("-f", "--follow", is_flag=True, help="Show what comes, standard error apart, until it ends.")
@pass_session
def output(session: Session, name: str, command: str, *, follow: bool) -> None:
    """Print what a command has put out until now: at most its last 10,000 lines.

    It is there as long as the machine in which the command ran.
    """
    if follow:
        following.show(session, name, command)
        return
    found = session.client.sandboxes.output(name, command)
    if found:
        printing.whole(found)


@sandbox.command(cls=Command)
@sandbox_argument
@click.argument("command")
@pass_session
def cancel(session: Session, name: str, command: str) -> None:
    """End a command or a terminal, and neither the sandbox nor another one."""
    is_terminal, sandboxes = command.startswith(TERMINALS), session.client.sandboxes
    end = sandboxes.close_terminal if is_terminal else sandboxes.cancel_command
    shown = end(name, command)
    state = pick(shown.to_dict(), "status.state")
    over = state not in ("Pending", "Running", "Cancelled")
    said = f"has ended already ({state})" if over else "cancelled" if state == "Cancelled" else "cancelling"
    word = "terminal" if is_terminal else "command"
    click.echo(f"sandbox/{text.line(name)} {word} {text.line(command)} {said}")


@sandbox.command(cls=Command)
@sandbox_argument
@click.option("--attach", "terminal", metavar="ID", help="Come back to an open terminal.")
@click.option("--cwd", "working_dir", metavar="FOLDER", help="Where to begin (default: /workspace).")
@click.argument("command", nargs=-1)
@pass_session
def shell(
    session: Session, name: str, command: tuple[str, ...], *, terminal: str | None, working_dir: str | None
) -> int:
    """Open a shell in a running sandbox, or run a command on a terminal.

    It ends with the shell, and its exit code is the shell's. A dropped connection is made again by itself. Enter, then
    ~. leaves the terminal open (~~ types a ~).

    \b
      nodus sandbox shell dev
      nodus sandbox shell dev -- python3
      nodus sandbox shell dev --attach t-00017…
    """
    from nodus.cli import shell as screen  # noqa: PLC0415 (it needs what only a Unix terminal has)

    screen.check_terminal()
    handle = Sandbox(name, client=session.client)
    if terminal is not None:
        if command or working_dir:
            raise usage(
                "--attach comes back to a terminal as it is: give neither a command nor --cwd with it"
            )
        return screen.show(handle.attach(terminal), name)
    opened = handle.terminal(
        _line(command) or None, working_dir=working_dir, size=screen.size(), term=screen.term()
    )
    return screen.show(opened, name)


@sandbox.command(cls=Command)
@sandbox_argument
@formats.output_option(("table", "json"), templates=False)
@pass_session
def terminals(session: Session, name: str, output: formats.Format) -> None:
    """List a sandbox's open terminals, the oldest first."""
    found = [terminal.to_dict() for terminal in session.client.sandboxes.terminals(name)]
    nothing = f"Sandbox {text.line(name)} has no open terminal."
    printing.below("SandboxTerminalList", found, output, HEADER, _row, nothing=nothing)


@sandbox.command(cls=Command)
@sandbox_argument
@click.argument("port", type=click.IntRange(1, 65_535))
@click.option("--ttl", metavar="DURATION", help="How long the address works, at most 24h (default: 1h).")
@formats.output_option(("table", "json"), templates=False)
@pass_session
def preview(session: Session, name: str, port: int, *, ttl: str | None, output: formats.Format) -> None:
    """Print an address that shows the web service at a port of a running sandbox.

    Whoever knows the address may use the service, without a key, until its time is over: treat it as a secret.

    \b
      nodus sandbox run dev -- 'nohup python3 -m http.server 8000 > /dev/null 2>&1 &'
      nodus sandbox preview dev 8000
      curl "$(nodus sandbox preview dev 8000 --ttl 5m)"
    """
    made = session.client.sandboxes.preview(name, port, ttl=ttl).to_dict()
    if output.word == "json":
        click.echo(formats.to_json(made))
        return
    click.echo(text.line(made["url"]))
    click.echo(f"It works until {text.line(made['expiresAt'])}.", err=True)


@sandbox.command(cls=Command)
@sandbox_argument
@click.option("--model", metavar="ID", help="A model of the catalogue (default: the first one).")
@formats.output_option(("table", "json"), templates=False)
@pass_session
def inference(session: Session, name: str, *, model: str | None, output: formats.Format) -> None:
    """Show how code in a sandbox uses a model: its rates, a prompt for coding tools, a Python example.

    No key is copied into the sandbox: name a Secret with one under spec.secrets as NODUS_TOKEN, and the server's host
    under network.egress.allow.

    \b
      nodus sandbox inference dev
      nodus sandbox inference dev --model openai/gpt-oss-120b
    """
    found = session.client.sandboxes.inference(name, model=model).to_dict()
    if output.word == "json":
        click.echo(formats.to_json(found))
        return
    shown = found["model"]
    rates = [[word, f"{price} USD"] for word, price in shown["tokenRates"].items()]
    click.echo(f"Model {text.line(shown['id'])} ({text.line(shown['name'])}), per million tokens:")
    click.echo(text.table(["TOKENS", "RATE"], rates) if rates else "Its rates are not known.")
    click.echo(f"Models: {', '.join(map(text.line, found['models']))}")
    click.echo(f"Server: {text.line(found['host'])}")
    click.echo("\nSetup prompt for coding tools:\n")
    printing.whole(found["setupPrompt"])
    click.echo("\nPython:\n")
    printing.whole(found["python"])
    click.echo()
    click.echo(f"An agent with it: nodus create agent NAME --model {text.line(shown['id'])}")


@sandbox.command(cls=Command)
@formats.output_option(("table", "json"), templates=False)
@pass_session
def images(session: Session, output: formats.Format) -> None:
    """List what sandboxes can be made of: the catalogue's images and the project's completed ones."""
    found = [image.to_dict() for image in session.client.sandboxes.images()]
    printing.below("ImageChoiceList", found, output, ["IMAGE", "SOURCE", "DIGEST"], _image_row)


@sandbox.command("build-image", cls=Command)
@click.argument("name", shell_complete=completing.names(ENVIRONMENT_IMAGE))
@pass_session
def build_image(session: Session, name: str) -> int:
    """Find out anew what an EnvironmentImage stands for: its tag may have moved.

    One with a setup is built again; wait for it. What was made of it before keeps its digest.

    \b
      nodus sandbox build-image tools
      nodus wait environmentimage/tools --for=jsonpath='{.status.state}'=Completed --timeout=30m
    """
    status = session.client.sandboxes.build_image(name).to_dict()["status"]
    said = (
        status.get("digest") or status.get("message") or ("" if status["state"] != "Building" else _BUILDING)
    )
    click.echo(f"environmentimage/{text.line(name)} {text.line(status['state'])} {text.line(said)}".rstrip())
    return 1 if status["state"] == "Failed" else 0


_BUILDING = "wait for status.state"


def _line(command: tuple[str, ...]) -> str:
    """One word is a line for the shell. Of several each stays the argument that it was: `rm "a b"` removes one file."""
    return command[0] if len(command) == 1 else shlex.join(command)


def _image_row(image: dict[str, object]) -> list[str]:
    return [text.line(str(image.get(word) or "")) for word in ("image", "source", "digest")]


def _row(command: dict[str, object]) -> list[str]:
    paths = ("metadata.name", "status.state", "status.exitCode", "status.startedAt", "spec.command")
    found = (pick(command, path) for path in paths)
    return ["" if value is None else text.line(str(value)) for value in found]
