"""The output of a command as it comes: its standard output on ours, its standard error on ours."""

from __future__ import annotations

import sys

import click

from nodus._machines import BEGIN_SECONDS
from nodus.cli import text
from nodus.cli.session import Session

_HINTS = {"TimedOut": "it was ended after its time; --timeout gives it more"}


def show(session: Session, name: str, command: str) -> None:
    """Until it ends; what was shown before is shown again."""
    for piece in session.client.sandboxes.follow_output(name, command):
        stream = sys.stderr if piece.stream == "stderr" else sys.stdout
        stream.write(text.block(piece.text) if stream.isatty() else piece.text)
        stream.flush()


def end_of(session: Session, name: str, command: str) -> int:
    """The exit code of a command whose output has ended; says so where it did not end by itself."""
    client = session.client
    while (status := client.sandboxes.command(name, command).status).state in ("Pending", "Running"):
        client.wire.sleep(BEGIN_SECONDS)  # its end is told a moment after its output
    if status.state != "Exited":
        why = status.get("message") or _HINTS.get(status.state)
        said = f"{status.state}: {text.line(str(why))}" if why else status.state
        click.echo(f"sandbox/{text.line(name)} command {command} {said}", err=True)
    code = status.get("exitCode")
    return code if isinstance(code, int) else 1
