"""`nodus agentrun …`: what a run did and answered."""

from __future__ import annotations

import sys

import click

from nodus._client import API_VERSION
from nodus.cli import columns, formats, text
from nodus.cli.session import Command, Group, Session, pass_session

OUTPUT = formats.FormatType(("table", "json"), jsonpath=False)


@click.group(cls=Group)
def agentrun() -> None:
    """Read what a run did and answered."""


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
