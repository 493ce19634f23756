"""What every command that changes objects has: ``--dry-run``, ``-o``, its report, and going on after a refusal."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import click

from nodus.cli import failures, formats, picking, printing, text
from nodus.cli.failures import Failure
from nodus.cli.formats import Format
from nodus.cli.kinds import Target
from nodus.cli.selection import Subject
from nodus.errors import ApiError, UnauthorizedError, WaitTimeoutError

F = TypeVar("F", bound=Callable[..., Any])
Mode = Literal["none", "client", "server"]
_MARKS: dict[Mode, str] = {"none": "", "client": " (dry run)", "server": " (server dry run)"}


class Report:
    """Says what became of each object: a line, or at the end all of them in the format asked for.

    ``sends``: whether anything is sent at all; ``dry_run``: whether what is sent is only to be checked.
    """

    def __init__(self, output: Format | None, mode: Mode) -> None:
        self.sends = mode != "client"
        self.dry_run = mode == "server"
        self._output = output
        self._mark = _MARKS[mode]
        self._things: list[dict[str, Any]] = []

    def say(self, target: Target, word: str, thing: dict[str, Any]) -> None:
        """One object and what was done; with the token of a key that was made, which is shown now or never."""
        token = picking.pick(thing, "status.token") if target.kind.shows_once else None
        if self._output is None:
            click.echo(f"{text.line(target)} {word}{self._mark}")
            if token:
                click.echo(text.line(token))
        elif self._output.word == "name":
            click.echo(text.line(target))
            if token:
                shown = f"{text.line(target)} token, shown now and never again: {text.line(token)}"
                click.echo(shown, err=True)
        else:
            self._things.append(thing)

    def close(self) -> None:
        """Print the objects, if they were asked for."""
        if self._output is not None and len(self._things) == 1:
            printing.value(self._things[0], self._output)
        elif self._output is not None and self._things:
            printing.value({"apiVersion": "v1", "kind": "List", "items": self._things}, self._output)


def change_options(command: F) -> F:
    """Give a command ``--dry-run`` and ``-o``, and what came of them as ``report``."""

    @click.option(
        "--dry-run",
        "mode",
        type=click.Choice(["none", "client", "server"]),
        default="none",
        metavar="client|server",
        help="Change nothing: client sends nothing, server checks everything and stores nothing.",
    )
    @formats.output_option(formats.CHANGED, default=None, what="Print the objects instead of a line for each")
    @functools.wraps(command)
    def wrapped(*args: Any, mode: Mode, output: Format | None, **rest: Any) -> Any:
        report = Report(output, mode)
        try:
            return command(*args, report=report, **rest)
        finally:
            report.close()

    return wrapped  # type: ignore[return-value]


def each(subjects: Iterable[Subject], do: Callable[[Subject], None]) -> int:
    """Do something with every object; one that is refused does not keep the others from it.

    Returns:
        The exit code: 0, or the highest of the refusals, which have been shown.
    """
    code = 0
    for subject in subjects:
        try:
            do(subject)
        except UnauthorizedError:
            raise  # no other object would fare better
        except (ApiError, Failure, WaitTimeoutError) as error:
            failures.show(error)
            code = max(code, getattr(error, "exit_code", failures.FAILED))
    return code
