"""`nodus logs`: what a run did and what came out, as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from nodus._kinds import AGENT_RUN
from nodus.cli import completing, follow, step_table, text
from nodus.cli.failures import usage
from nodus.cli.kinds import targets_of
from nodus.cli.session import Command, Session, pass_session


@click.command(cls=Command)
@click.argument(
    "words", nargs=-1, required=True, metavar="[agentrun/]NAME", shell_complete=completing.objects
)
@click.option("-f", "--follow", "following", is_flag=True, help="Go on until the run has finished or rests.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Begin with the last N steps.")
@pass_session
def logs(session: Session, words: tuple[str, ...], *, following: bool, tail: int | None) -> None:
    """Print a run's steps and their output.

    Each step has a line with its name, state, time and cost, below it the command that it ran, and the
    beginning of its output (4 KiB). With --follow a step is
    printed when it has ended; the run's end is said on stderr. The whole answer: `nodus agentrun answer NAME`.

    \b
      nodus logs agentrun/triage
      nodus logs -f triage
      nodus logs triage --tail 3
    """
    name = _run_name(words)
    if following:
        follow.follow(session.client, name, Texts(tail))
        return
    found = [step.to_dict() for step in session.client.agentruns.steps(name)]
    if not found:
        click.echo(f"Run {text.line(name)} has no step yet.", err=True)
    for line in _lines(found if tail is None else found[max(0, len(found) - tail) :]):
        click.echo(line)


def _run_name(words: tuple[str, ...]) -> str:
    """The run that is meant: `NAME`, `agentrun/NAME` or `agentrun NAME`."""
    if len(words) == 1 and "/" not in words[0]:
        return words[0]
    targets = targets_of(words)
    if len(targets) > 1 or targets[0].kind is not AGENT_RUN:
        raise usage("only runs have logs, one at a time: give agentrun/NAME")
    return targets[0].name


def _lines(steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        yield follow.plain(step, detail=False)
        error = step_table.error_text(step.get("error"))
        given = step.get("input")
        for part in (f"$ {given}" if given else None, error, step.get("preview"), _cut(step)):
            if part:
                yield from (f"    {line}" for line in text.block(str(part).rstrip("\n")).split("\n"))


def _cut(step: dict[str, Any]) -> str | None:
    """Says of an output that was shown in part how much there was."""
    came, shown = step.get("rawBytes"), len(str(step.get("preview") or "").encode())
    if not isinstance(came, int) or came <= shown:
        return None
    return f"… the first {shown} of {came} bytes"


class Texts(follow.Telling):
    """The screen of one who follows: each step with its output when it has ended."""

    def __init__(self, tail: int | None) -> None:
        self._tail = tail

    def show(self, run: dict[str, Any], changed: list[dict[str, Any]], running: list[dict[str, Any]]) -> None:
        """Print what has ended since."""
        ended = [step for step in changed if step.get("state") != follow.RUNNING]
        if self._tail is not None:
            ended, self._tail = ended[max(0, len(ended) - self._tail) :], None
        for line in _lines(ended):
            click.echo(line)

    def end(self, run: dict[str, Any]) -> None:
        """Say how the run ended."""
        click.echo(follow.end_of(run), err=True)
