"""`nodus label` and `nodus annotate`: words on objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from nodus.cli import changing, picking
from nodus.cli.changing import Report
from nodus.cli.failures import usage
from nodus.cli.selection import Choice, Subject, choice_options
from nodus.cli.session import Command, Session, pass_session

overwrite_option = click.option("--overwrite", is_flag=True, help="Also change one that has another value.")


@click.command(cls=Command)
@choice_options
@overwrite_option
@changing.change_options
@pass_session
def label(session: Session, choice: Choice, *, overwrite: bool, report: Report) -> int:
    """Set or remove labels: KEY=VALUE sets, KEY- removes.

    \b
      nodus label agent/hello-agent team=web
      nodus label ar --all team-
    """
    return _write(session, "labels", choice, overwrite, report)


@click.command(cls=Command)
@choice_options
@overwrite_option
@changing.change_options
@pass_session
def annotate(session: Session, choice: Choice, *, overwrite: bool, report: Report) -> int:
    """Set or remove annotations: KEY=VALUE sets, KEY- removes.

    \b
      nodus annotate agent/hello-agent owner="Ada Lovelace"
      nodus annotate agent/hello-agent owner-
    """
    return _write(session, "annotations", choice, overwrite, report)


_DONE = {"labels": "labeled", "annotations": "annotated"}


def _write(session: Session, field: str, choice: Choice, overwrite: bool, report: Report) -> int:
    wanted = _wanted(choice.words)
    objects = replace(choice, words=tuple(word for word in choice.words if not _is_pair(word)))

    def change(subject: Subject) -> None:
        resource = session.resource(subject.target.kind, subject.project)
        thing = resource.get(subject.target.name).to_dict()
        now: dict[str, Any] = picking.pick(thing, f"metadata.{field}") or {}
        changes = {key: value for key, value in wanted.items() if now.get(key) != value}
        taken = [f"{key}={now[key]}" for key, value in changes.items() if value and key in now]
        if taken and not overwrite:
            raise usage(f"{subject} has {', '.join(taken)}; --overwrite changes it", "AlreadyExists")
        if changes and report.sends:
            metadata = {
                field: changes,
                "resourceVersion": picking.pick(thing, "metadata.resourceVersion"),
            }
            patch = {"metadata": metadata}
            thing = resource.patch(subject.target.name, patch, dry_run=report.dry_run).to_dict()
        report.say(subject.target, _DONE[field] if changes else f"not {_DONE[field]}", thing)

    return changing.each(objects.find(session), change)


def _is_pair(word: str) -> bool:
    return "=" in word or word.endswith("-")


def _wanted(words: tuple[str, ...]) -> dict[str, str | None]:
    """The values to set; ``None`` removes one."""
    wanted: dict[str, str | None] = {}
    for word in filter(_is_pair, words):
        key, equals, value = word.partition("=")
        key = key if equals else word.removesuffix("-")
        if not key or key in wanted:
            raise usage(f"{word!r}: write each key once, KEY=VALUE or KEY-")
        wanted[key] = value if equals else None
    if not wanted:
        raise usage("nothing to set: give KEY=VALUE or KEY-")
    return wanted
