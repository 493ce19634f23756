"""`nodus apply`, `nodus replace` and `nodus diff`: bring objects to what manifests say, in the order of the files."""

from __future__ import annotations

import difflib
from typing import Any

import click

from nodus._record import Record
from nodus._resources import Resource
from nodus.cli import changing, failures, formats, manifests, sending, text
from nodus.cli.changing import Report
from nodus.cli.manifests import Wanted
from nodus.cli.selection import filename_option
from nodus.cli.sending import Done
from nodus.cli.session import Command, Session, pass_session
from nodus.errors import NodusError, NotFoundError

# What every write changes, and nobody asked for.
_UNASKED = ("resourceVersion", "generation", "uid", "creationTimestamp")


@click.command(cls=Command)
@filename_option(required=True)
@changing.change_options
@pass_session
def apply(session: Session, files: tuple[str, ...], report: Report) -> None:
    """Create or update the objects of YAML or JSON files.

    A file may hold several documents, separated by ---; they are applied in their order, and so are the items of a
    list. Of a folder the files *.yaml, *.yml and *.json are taken, sorted by name. Everything is read and checked
    before the first object is sent; the first refusal ends the command. An object whose file carries the
    metadata.resourceVersion or metadata.uid that it was read with is changed only if it still has them (Conflict):
    read it again, or leave them out to change it whatever others did. The token of an ApiKey is printed when the key
    is made, and never again.

    \b
      nodus apply -f agent.yaml
      nodus apply -f agents/ -f budget.yaml --dry-run=server
      cat run.yaml | nodus apply -f -
    """
    sending.one_by_one(session, files, lambda resource, one: _apply(resource, one, report), "applied", report)


@click.command(cls=Command)
@filename_option(required=True)
@changing.change_options
@pass_session
def replace(session: Session, files: tuple[str, ...], report: Report) -> None:
    """Replace objects that exist by those of YAML or JSON files.

    An object is written as the file has it: what the file leaves out is removed, where apply would keep it. A
    metadata.resourceVersion in the file, as `nodus get -o yaml` writes it, must be the stored one: what others have
    changed since is not written over (Conflict). So must a metadata.uid.

    \b
      nodus get agent/hello-agent -o yaml > agent.yaml
      nodus replace -f agent.yaml
    """

    def send(resource: Resource, one: Wanted) -> Done:
        return "replaced", resource.update(one.manifest, dry_run=report.dry_run)

    sending.one_by_one(session, files, send, "replaced", report)


@click.command(cls=Command)
@filename_option(required=True)
@pass_session
def diff(session: Session, files: tuple[str, ...]) -> int:
    """Show what an apply would change.

    Exit code 0: nothing. 2: there are differences. 1: an error.

    \b
      nodus diff -f agent.yaml
    """
    changed = False
    for one in manifests.read(files, session.project):
        resource = session.resource(one.target.kind, one.project)
        try:
            before = _comparable(resource.get(one.target.name).to_dict())
        except NotFoundError:
            before = []
        try:
            after = _comparable(resource.apply(one.manifest, dry_run=True).object.to_dict())
        except NodusError as error:
            failures.show(error, one.document, one.path)
            raise click.exceptions.Exit(failures.FAILED) from error
        names = f"stored/{one.target}", f"applied/{one.target}"
        for line in difflib.unified_diff(before, after, *names, lineterm=""):
            click.echo(text.block(line))
            changed = True
    return failures.OTHERWISE if changed else 0


def _apply(resource: Resource, wanted: Wanted, report: Report) -> Done:
    try:
        before = resource.get(wanted.target.name)
    except NotFoundError:
        before = None
    applied = resource.apply(wanted.manifest, dry_run=report.dry_run)
    if before is None or applied.created:
        return "created", applied.object
    return ("unchanged" if _same(before, applied.object) else "configured"), applied.object


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


def _comparable(thing: dict[str, Any]) -> list[str]:
    """An object's lines without its status and without what every write changes."""
    metadata = {key: value for key, value in thing["metadata"].items() if key not in _UNASKED}
    written = {key: value for key, value in thing.items() if key != "status"} | {"metadata": metadata}
    return formats.to_yaml(written).splitlines()
