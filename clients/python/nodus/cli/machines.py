"""`nodus start` and `nodus stop`: the machines of sandboxes."""

from __future__ import annotations

import click

from nodus._kinds import SANDBOX
from nodus.cli import changing, text
from nodus.cli.failures import usage
from nodus.cli.picking import pick
from nodus.cli.selection import Choice, Subject, choice_options
from nodus.cli.session import Command, Session, pass_session


@click.command(cls=Command)
@choice_options
@pass_session
def start(session: Session, choice: Choice) -> int:
    """Start stopped sandboxes.

    Each gets a new machine: of the files of the one before only the saved folder (--state-dir) comes back.

    \b
      nodus start sandbox/dev
      nodus wait sandbox/dev --for=jsonpath='{.status.phase}'=Running
    """
    return changing.each(choice.find(session), lambda subject: _ask(session, subject, "start"))


@click.command(cls=Command)
@choice_options
@pass_session
def stop(session: Session, choice: Choice) -> int:
    """Stop running sandboxes.

    A stopped one costs nothing and can be started again. Its processes are gone, and its files but for the saved
    folder (--state-dir).

    \b
      nodus stop sandbox/dev
      nodus stop sb -l team=web
    """
    return changing.each(choice.find(session), lambda subject: _ask(session, subject, "stop"))


def _ask(session: Session, subject: Subject, verb: str) -> None:
    if subject.target.kind is not SANDBOX:
        word = subject.target.kind.word
        raise usage(
            f"{word} objects have no machine that could be {'started' if verb == 'start' else 'stopped'}; give sandbox/NAME"
        )
    sandboxes = session.client.in_project(subject.project).sandboxes
    ask = sandboxes.start if verb == "start" else sandboxes.stop
    shown = ask(subject.target.name).to_dict()
    phase = pick(shown, "status.phase")
    click.echo(f"{text.line(subject)} {_said(verb, phase)}")


def _said(verb: str, phase: object) -> str:
    if verb == "start":
        return "runs already" if phase == "Running" else "starting"
    return "stands still already" if phase == "Paused" else "stopping"
