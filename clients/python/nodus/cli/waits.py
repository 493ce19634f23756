"""What is said of a run that waits: for what, and what to do; the same to `wait` and to `steps --follow`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from nodus._kinds import SANDBOX
from nodus._runs import FOR_A_PERSON
from nodus.cli import picking, text

BY_ITSELF = {
    "BudgetBlocked": "a Budget of its project is used up; it goes on when the limit is raised: nodus get budgets",
    "InsufficientCredits": "the organization's credits are used up; it goes on when credits are added",
    "ModelUnavailable": "its model's provider takes no call now; it is asked again by itself",
}
"""Waits that end without anybody acting on the run."""


def told(run: Mapping[str, Any]) -> list[str]:
    """The lines that say what a run waits for and what to do, or why a sandbox stands still; none where neither is so."""
    name, status = text.line(picking.pick(run, "metadata.name")), picking.pick(run, "status")
    phase, reason = picking.pick(status, "phase"), picking.pick(status, "reason")
    if picking.pick(run, "kind") == SANDBOX.name:
        message = picking.pick(status, "message")
        said = f": {text.line(str(message))}" if message else ""
        return [f"sandbox/{name} stands still ({reason}){said}"] if phase == "Paused" else []
    target = f"agentrun/{name}"
    if reason in BY_ITSELF and phase in {"Queued", "Running", "Waiting"}:
        return [f"{target} waits ({reason}): {BY_ITSELF[reason]}"]
    if phase != "Waiting":
        return []
    if reason == "MessageWait":
        return [f'{target} waits for a message ({reason}): nodus agentrun send {name} "TEXT"']
    if reason in FOR_A_PERSON:
        return [f"{target} waits for a person ({reason}): {FOR_A_PERSON[reason]}", *_commands(name, status)]
    return []


def _commands(name: str, status: Any) -> list[str]:
    """The command lines that move the run on."""
    entries: list[Any] = picking.pick(status, "unresolved") or []
    steps = [text.line(picking.pick(entry, "step")) for entry in entries]
    return [
        *(f"  nodus agentrun resolve {name} {step} --happened | --did-not-happen" for step in steps),
        f"  nodus cancel agentrun/{name}",
    ]


def to_stderr(line: str) -> None:
    """Say it beside the data."""
    click.echo(line, err=True)


class Teller:
    """Says what a run waits for, each thing once.

    Args:
        say: shows a line; a live region on the screen has to do it itself, else the two overwrite each other.
    """

    def __init__(self, say: Callable[[str], None] = to_stderr) -> None:
        self._say = say
        self._told: set[str] = set()

    def tell(self, run: Mapping[str, Any]) -> None:
        """Say what is new."""
        for line in told(run):
            if line not in self._told:
                self._told.add(line)
                self._say(line)
