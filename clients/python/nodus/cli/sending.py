"""The objects of files on their way to the server, in the order of the files; the first refusal ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from nodus._record import Record
from nodus._resources import Resource
from nodus.cli import failures, manifests, picking, text
from nodus.cli.changing import Report
from nodus.cli.manifests import Wanted
from nodus.cli.session import Session
from nodus.errors import NodusError

Part = Sequence[Wanted]
"""What is sent with one call."""
Done = tuple[str, Record]
"""What was done with an object, and the object afterwards."""


def one_by_one(
    session: Session,
    files: tuple[str, ...],
    send: Callable[[Resource, Wanted], Done],
    word: str,
    report: Report,
) -> None:
    """Send each object of files by itself.

    Args:
        session: where.
        files: names as given to ``-f``.
        send: what is done with each.
        word, report: as of `in_parts`.
    """

    def alone(part: Part) -> list[Done]:
        (one,) = part
        return [send(session.resource(one.target.kind, one.project), one)]

    in_parts([[one] for one in manifests.read(files, session.project)], alone, word, report)


def in_parts(
    parts: Sequence[Part], send: Callable[[Part], Sequence[Done]], word: str, report: Report
) -> None:
    """Send objects part by part.

    Args:
        parts: what is sent together, in order.
        send: what is done with a part; of each of its objects, what came of it.
        word: what is said of an object that is not sent (``--dry-run=client``).
        report: says what became of each, and whether it is sent at all.
    """
    for number, part in enumerate(parts):
        if not report.sends:
            for one in part:
                report.say(one.target, word, one.manifest)
            continue
        try:
            sent = send(part)
        except NodusError as error:
            _say_refused(error, part, left=sum(map(len, parts[number + 1 :])))
            raise click.exceptions.Exit(failures.FAILED) from error
        for one, (done, record) in zip(part, sent, strict=True):
            thing = record.to_dict()
            # Not the name of the file, which may be the beginning of one only.
            report.say(one.target._replace(name=str(picking.pick(thing, "metadata.name"))), done, thing)


def _say_refused(error: NodusError, part: Part, *, left: int) -> None:
    first = part[0]
    failures.show(error, first.document, first.path)
    if left:
        what = text.line(first.target) if len(part) == 1 else f"a list of {len(part)}"
        click.echo(f"{what} was refused; {left} after it not sent", err=True)
