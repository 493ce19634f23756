"""Which objects a command line is about: named, read from files, or selected by labels or fields."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from nodus._kinds import Kind
from nodus._record import Record
from nodus.cli import completing, manifests, picking
from nodus.cli.failures import usage
from nodus.cli.kinds import Target, kinds_of, targets_of
from nodus.cli.session import Session

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Subject:
    """One object, and its project where that is not the session's.

    ``uid`` is that of an object that was selected: another that has taken its name since was not.
    """

    target: Target
    project: str | None = None
    uid: str | None = None

    def __str__(self) -> str:
        return str(self.target)


@dataclass(frozen=True)
class Choice:
    """What the command line says about which objects it means."""

    words: tuple[str, ...]
    files: tuple[str, ...] = ()
    labels: str | None = None
    fields: str | None = None
    every: bool = False

    def find(self, session: Session) -> list[Subject]:
        """The objects, in the order in which they were named; selected ones are asked for.

        Raises:
            Failure: nothing is named, or in two ways at once.
        """
        selecting = self.labels is not None or self.fields is not None or self.every
        if self.files:
            if self.words or selecting:
                raise usage("give KIND/NAME, -f FILE or a selector: one of them")
            return [Subject(one.target, one.project) for one in manifests.read(self.files, session.project)]
        if not selecting:
            return [Subject(target) for target in targets_of(self.words)]
        if len(self.words) != 1 or "/" in self.words[0]:
            raise usage("with a selector or --all give one KIND and no name")
        return [
            _selected(kind, thing)
            for kind in kinds_of(self.words[0])
            for thing in session.resource(kind).list(label_selector=self.labels, field_selector=self.fields)
        ]


def _selected(kind: Kind, thing: Record) -> Subject:
    name, uid = (picking.pick(thing.to_dict(), f"metadata.{field}") for field in ("name", "uid"))
    return Subject(Target(kind, str(name)), uid=uid)


label_option = click.option(
    "-l", "--selector", "labels", metavar="LABEL=VALUE", help="Only objects with these labels."
)
field_option = click.option(
    "--field-selector", "fields", metavar="FIELD=VALUE", help="Only objects with this value."
)


def filename_option(*, required: bool) -> Callable[[F], F]:
    """The option ``-f``, which may be given several times."""
    return click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        required=required,
        metavar="FILE|DIR|URL|-",
        help="A file of objects, a folder of such files, an address, or standard input (-).",
    )


def choice_options(command: F) -> F:
    """Give a command the argument ``KIND/NAME…`` and the options that choose otherwise, as ``choice``."""

    @click.argument("words", nargs=-1, metavar="KIND/NAME…", shell_complete=completing.objects)
    @filename_option(required=False)
    @label_option
    @field_option
    @click.option("--all", "every", is_flag=True, help="All objects of the kind in the project.")
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        words: tuple[str, ...],
        files: tuple[str, ...],
        labels: str | None,
        fields: str | None,
        every: bool,
        **rest: Any,
    ) -> Any:
        return command(*args, choice=Choice(words, files, labels, fields, every), **rest)

    return wrapped  # type: ignore[return-value]
