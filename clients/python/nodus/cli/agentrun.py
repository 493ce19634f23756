"""`nodus agentrun …`: messages to a run, what it did, what it answered."""

from __future__ import annotations

import os
from typing import Any

import click

from nodus._kinds import AGENT_RUN, API_VERSION
from nodus._record import Record
from nodus.cli import completing, formats, picking, printing, sources, step_table, text
from nodus.cli.failures import usage
from nodus.cli.kinds import Target, targets_of
from nodus.cli.session import Command, Group, Session, pass_session
from nodus.errors import NotFoundError, OutcomeUnknownError


def _bare(_context: click.Context, _parameter: click.Parameter, word: str) -> str:
    """The name of a run that was given as `NAME` or as `agentrun/NAME`."""
    if "/" not in word:
        return word
    (target,) = targets_of((word,))
    if target.kind is not AGENT_RUN:
        raise usage(f"{word} is no run; give agentrun/NAME")
    return target.name


run_argument = click.argument("name", shell_complete=completing.names(AGENT_RUN), callback=_bare)
MOST_BYTES = 262_144  # the server takes no longer text


@click.group(cls=Group)
def agentrun() -> None:
    """Talk to a run: messages, steps, answer, resolutions."""


@agentrun.command(cls=Command)
@run_argument
@pass_session
def answer(session: Session, name: str) -> None:
    """Print the whole answer of a run.

    Into a file or pipe it goes byte for byte; on a terminal control characters are made visible.
    """
    printing.whole(session.client.agentruns.answer(name))


@agentrun.command(cls=Command)
@run_argument
@click.option(
    "--follow",
    is_flag=True,
    help="Show each step as it starts and ends, until the run has finished or rests.",
)
@formats.output_option(("table", "wide", "json"), templates=False)
@pass_session
def steps(session: Session, name: str, follow: bool, output: formats.Format) -> None:
    """List what a run did, in order.

    \b
      nodus agentrun steps hello-agent-run
      nodus agentrun steps hello-agent-run --follow
      nodus agentrun steps hello-agent-run -o wide
      nodus agentrun steps hello-agent-run -o json

    The wide table adds each step's guarantee, its attempt, and who has resolved it. A cost with a * is a reserve:
    the provider did not say what the call used.

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
        wide = output.word == "wide"
        rows = [step_table.row(step, wide=wide) for step in found]
        click.echo(text.table(step_table.header(wide=wide), rows))
    else:
        click.echo(f"Run {text.line(name)} has no step yet.", err=True)


@agentrun.command(cls=Command)
@run_argument
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
    chosen = os.urandom(16).hex() if key is None else key
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
    return sources.text(source, MOST_BYTES) if source is not None else message or ""


def _resolvable(session: Session, name: str) -> str:
    """Which steps of a run may be resolved, for one who has named none of them."""
    steps = ", ".join(_unresolved(session.client.agentruns.get(name))) or "none"
    return f"\nunresolved: {steps}; all steps: nodus agentrun steps {name}"


def _unresolved(run: Record) -> list[str]:
    """The steps of a run that somebody is asked about."""
    entries: list[Any] = picking.pick(run.to_dict(), "status.unresolved") or []
    return [str(picking.pick(entry, "step")) for entry in entries]


@agentrun.command(cls=Command)
@run_argument
@click.argument("step")
@click.option("--happened", is_flag=True, help="It took effect.")
@click.option("--did-not-happen", is_flag=True, help="It had no effect: see above what follows.")
@click.option(
    "--result",
    metavar="FILE|-",
    help="If it happened: a command's output, or the text of a model's reply (which a model call needs).",
)
@click.option("--exit-code", type=int, metavar="N", help="How a command or the setup ended, if it happened.")
@click.option("--key", metavar="KEY", help="Request key: the same call again gives the first answer.")
@pass_session
def resolve(
    session: Session,
    name: str,
    step: str,
    *,
    happened: bool,
    did_not_happen: bool,
    result: str | None,
    exit_code: int | None,
    key: str | None,
) -> None:
    """Say what became of a step whose outcome is not known.

    A run that waits with NeedsResolution goes on when every step that status.unresolved names is resolved.
    What happened gets the result given. What did not is made again: a model call always, a command or the setup
    in its sandbox, if that lives. If it is gone, the command is not repeated: the model is told and decides in
    a new sandbox, in which the setup runs.

    \b
      nodus get ar triage -o jsonpath='{.status.unresolved}'
      nodus agentrun resolve triage turn-1.tool.run_command.2 --happened --result out.txt --exit-code 0
      nodus agentrun resolve triage turn-1.tool.run_command.2 --did-not-happen
      nodus agentrun resolve triage turn-1.model.1 --happened --result reply.txt
    """
    if happened == did_not_happen:
        raise usage("say either --happened or --did-not-happen")
    if did_not_happen and (result is not None or exit_code is not None):
        raise usage("--result and --exit-code go only with --happened")
    output = None if result is None else sources.text(result, MOST_BYTES)
    try:
        run = session.client.agentruns.resolve(
            name, step, happened=happened, text=output, exit_code=exit_code, request_key=key
        )
    except NotFoundError as error:
        if error.details.get("kind") == "Step":
            error.message += _resolvable(session, name)
        raise
    click.echo(f"{Target(AGENT_RUN, name)} {text.line(step)} resolved")
    for left in _unresolved(run):
        click.echo(f"still unresolved: {text.line(left)}", err=True)
