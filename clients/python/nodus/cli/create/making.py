"""One object from the options of a command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nodus._kinds import API_VERSION, Kind
from nodus.cli.changing import Report
from nodus.cli.kinds import Target
from nodus.cli.session import Session

F = TypeVar("F", bound=Callable[..., Any])


def money_option(option: str, what: str) -> Callable[[F], F]:
    """An option that takes an amount of US dollars."""
    return click.option(option, metavar="USD", help=what)


def make(session: Session, kind: Kind, name: str, spec: dict[str, Any], report: Report) -> None:
    """Create one object, and say so."""
    if not report.sends:
        thing: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": kind.name,
            "metadata": {"name": name},
            "spec": spec,
        }
    else:
        thing = session.resource(kind).create(name, spec, dry_run=report.dry_run).to_dict()
    report.say(Target(kind, name), "created", thing)


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are given."""
    return {name: value for name, value in fields.items() if value is not None}
