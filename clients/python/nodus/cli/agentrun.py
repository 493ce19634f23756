"""`nodus agentrun …`: messages to a run, what it did, what it answered."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from nodus._client import API_VERSION
from nodus.cli import columns, formats, text
from nodus.cli.failures import Failure, usage
from nodus.cli.kinds import AGENT_RUN, Target
from nodus.cli.session import Command, Group, Session, pass_session
from nodus.errors import OutcomeUnknownError

OUTPUT = formats.FormatType(("table", "json"), jsonpath=False)


@click.group(cls=Group)
def agentrun() -> None:
    """Talk to a run: send it messages, read what it did and answered."""


@agentrun.command(cls=Command)
@click.argument("name")
@pass_session
def answer(session: Session, name: str) -> None:
    """Print the whole answer of a run.

    Into a file or pipe it goes byte for byte; on a terminal control characters are made visible.
    """
    found = session.client.agentruns.answer(name)
    if sys.stdout.isatty():
        click.echo(text.block(found), nl=not found.endswith("\n"))
    else:
        sys.stdout.buffer.write(found.encode())


@agentrun.command(cls=Command)
@click.argument("name")
@click.option(
    "--follow",
    is_flag=True,
    help="Show each step as it starts and ends, until the run has finished or rests.",
)
@click.option("-o", "--output", type=OUTPUT, default="table", help="How to show it (default: table).")
@pass_session
def steps(session: Session, name: str, follow: bool, output: formats.Format) -> None:
    """List what a run did, in order.

    \b
      nodus agentrun steps hello-agent-run
      nodus agentrun steps hello-agent-run --follow
      nodus agentrun steps hello-agent-run -o json

    With --follow, -o json prints one line per change: the step as it is then. A run that goes on only when
    somebody acts (NeedsResolution, MaxCostReached) ends --follow with exit code 1 and what to do.
    """
    if follow:
        from nodus.cli.follow import follow_steps  # noqa: PLC0415 (only a follower pays for it)

        follow_steps(session.client, name, as_json=output.word == "json")
        return
    found = [step.to_dict() for step in session.client.agentruns.steps(name)]
    if output.word == "json":
        click.echo(formats.to_json({"apiVersion": API_VERSION, "kind": "StepList", "items": found}))
    elif found:
        click.echo(text.table(columns.STEP_HEADER, [columns.step_row(step) for step in found]))
    else:
        click.echo(f"Run {text.line(name)} has no step yet.", err=True)


@agentrun.command(cls=Command)
@click.argument("name")
@click.argument("message", metavar="[TEXT]", required=False)
@click.option(
    "-f",
    "--filename",
    "source",
    metavar="FILE|-",
    help="Take the text from a file, or from standard input (-).",
)
@click.option("--key", metavar="KEY", help="The message's key (default: a new one).")
@pass_session
def send(session: Session, name: str, message: str | None, source: str | None, key: str | None) -> None:
    """Send a run its next prompt.

    \b
      nodus agentrun send hello-agent-run "Now do the same for the staging logs" --key staging-1
      nodus agentrun send hello-agent-run -f question.txt

    A run that works reads it after its current turn. Sending it again with the same key delivers it once. A run
    that has finished refuses it (AgentRunFinished).
    """
    payload = _payload(message, source)
    chosen = key or os.urandom(8).hex()
    try:
        accepted = session.client.agentruns.send(name, chosen, payload)
    except OutcomeUnknownError as error:
        error.message += f"; send it again with --key {chosen}, it is delivered once"
        raise
    target = Target(AGENT_RUN, name)
    click.echo(f"{target} message {text.line(accepted.message_key)} accepted as turn {accepted.turn}")


def _payload(message: str | None, source: str | None) -> str:
    """The text of a message: the argument, or exactly what a file or standard input holds."""
    if (message is None) is (source is None):
        raise usage('give the message once: as "TEXT", or with -f FILE (- for standard input)')
    if source is None:
        return message or ""
    try:
        content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return content.decode()
    except OSError as error:
        raise Failure(f"{source}: {os.strerror(error.errno or 0)}", reason="FileNotRead") from error
    except UnicodeDecodeError as error:
        raise Failure(f"{source}: not UTF-8 at byte {error.start}", reason="FileNotRead") from error
