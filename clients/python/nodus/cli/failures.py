"""Errors as the command line shows them, and the exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nodus.cli import text
from nodus.errors import ApiError, NodusError, UnauthorizedError

if TYPE_CHECKING:
    from nodus._manifest import Document

FAILED = 1
OTHERWISE = 2  # `wait`: the object ended otherwise (NODQ-73); `diff`: it is otherwise
INTERRUPTED = 130


class Failure(NodusError):
    """A command cannot do what it was asked; ``exit_code`` is the program's."""

    def __init__(self, message: str, *, reason: str, exit_code: int = FAILED) -> None:
        super().__init__(message, reason=reason)
        self.exit_code = exit_code


def usage(message: str, reason: str = "Usage") -> Failure:
    """The failure of a command line that has no meaning."""
    return Failure(message, reason=reason)


def _once(error: NodusError) -> str:
    """The message without the fields that stand below it anyway."""
    causes = error.causes if isinstance(error, ApiError) else ()
    listed = "; ".join(f"{cause.field} {cause.message}" for cause in causes)
    return error.message.removesuffix(f": {listed}") if listed else error.message


def show(error: NodusError, document: Document | None = None, path: str = "") -> None:
    """Print ``Error (<reason>): message`` and a line per refused field on stderr (NODQ-01, NOD-500).

    Args:
        error: what happened.
        document: the manifest that was refused; its file and lines are named beside the fields (FLD-17).
        path: where in the document the object stands that was refused, such as ``items[3]``.
    """
    message = text.block(_once(error))
    if isinstance(error, UnauthorizedError):
        message += "\nsign in with `nodus login`"
    click.echo(f"Error ({text.line(error.reason)}): {message}", err=True)
    if not isinstance(error, ApiError):
        return
    for cause in error.causes:
        place = ""
        if document is not None:
            found = document.line_of(f"{path}.{cause.field}".strip("."))
            place = f" ({document.source} line {found})" if found else f" ({document.source})"
        click.echo(f"  {text.line(cause.field)}: {text.line(cause.message)}{text.line(place)}", err=True)
