"""`nodus apply`: bring objects to what manifests say, in the order of the files."""

from __future__ import annotations

import click

from nodus._record import Record
from nodus.cli import failures, manifests
from nodus.cli.session import Command, Session, pass_session
from nodus.errors import NodusError, NotFoundError


@click.command(cls=Command)
@click.option(
    "-f", "--filename", "sources", multiple=True, required=True, metavar="FILE|-|DIR", help="What to apply."
)
@pass_session
def apply(session: Session, sources: tuple[str, ...]) -> None:
    """Create or update the objects of YAML or JSON files.

    A file may hold several documents, separated by ---; they are applied in their order. Of a folder the files
    *.yaml, *.yml and *.json are taken, sorted by name. Everything is read and checked before the first object is
    sent; the first refusal ends the command.

    \b
      nodus apply -f agent.yaml
      cat run.yaml | nodus apply -f -
    """
    wanted = manifests.read(sources, session.project)
    for count, one in enumerate(wanted):
        try:
            outcome = _apply(session, one)
        except NodusError as error:
            failures.show(error, one.document)
            left = len(wanted) - count - 1
            if left:
                click.echo(f"{one.target} was refused; {left} after it not sent", err=True)
            raise click.exceptions.Exit(failures.FAILED) from error
        click.echo(f"{one.target} {outcome}")


def _apply(session: Session, wanted: manifests.Wanted) -> str:
    resource = session.client.in_project(wanted.project).kind(wanted.target.kind.name)
    try:
        before = resource.get(wanted.target.name)
    except NotFoundError:
        before = None
    applied = resource.apply(wanted.manifest)
    if before is None or applied.created:
        return "created"
    return "unchanged" if _same(before, applied.object) else "configured"


def _same(before: Record, after: Record) -> bool:
    """Whether the apply changed nothing; a run's status moves meanwhile, which is no change by us."""
    old, new = before["metadata"], after["metadata"]
    if old.get("uid") != new.get("uid"):
        return False
    if old.get("resourceVersion") == new.get("resourceVersion"):
        return True
    return all(old.get(field) == new.get(field) for field in ("generation", "labels", "annotations")) and (
        before.get("spec") == after.get("spec")
    )
