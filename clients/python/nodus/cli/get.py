"""`nodus get`: show objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from nodus._kinds import Kind
from nodus._reading import ALL_PROJECTS
from nodus._resources import Resource
from nodus.cli import completing, failures, formats, printing, sorting, text
from nodus.cli.failures import usage
from nodus.cli.kinds import kind_of, kinds_of, targets_of
from nodus.cli.selection import Choice, Subject, field_option, filename_option, label_option
from nodus.cli.session import Command, Session, pass_session
from nodus.errors import NodusError, NotFoundError


@click.command(cls=Command)
@click.argument("words", nargs=-1, metavar="KIND[/NAME]…", shell_complete=completing.objects)
@formats.output_option()
@filename_option(required=False)
@label_option
@field_option
@click.option("--sort-by", type=sorting.KEY, help="Order of a list, such as .metadata.creationTimestamp.")
@click.option("-A", "--all-projects", is_flag=True, help="List the objects of every project.")
@click.option("-w", "--watch", is_flag=True, help="Go on showing what changes, until interrupted.")
@click.option("--no-headers", is_flag=True, help="Tables without their headings.")
@click.option("--ignore-not-found", is_flag=True, help="An object that does not exist is no error.")
@pass_session
def get(
    session: Session,
    words: tuple[str, ...],
    *,
    output: formats.Format,
    files: tuple[str, ...],
    labels: str | None,
    fields: str | None,
    sort_by: sorting.Key | None,
    all_projects: bool,
    watch: bool,
    no_headers: bool,
    ignore_not_found: bool,
) -> None:
    """List objects of a kind, or show those that are named.

    \b
      nodus get agent/hello-agent -o yaml
      nodus get ar
      nodus get agents,budgets
      nodus get ar --field-selector spec.agent=hello-agent -l team=web
      nodus get ar --sort-by .status.cost.totalUSD
      nodus get ar triage -o jsonpath='{.status.phase}'
      nodus get ar -o custom-columns=NAME:.metadata.name,PHASE:.status.phase
      nodus get ar --all-projects
      nodus get ar --watch

    With --watch a line is printed whenever an object changes; -o json prints the changed object in one line.
    """
    if not words and not files:
        raise click.UsageError("which kind? `nodus get KIND` lists, `nodus get KIND/NAME` shows one")
    choice, header = Choice(words, files, labels, fields), not no_headers
    if watch:
        if files or sort_by or all_projects:
            raise usage("--watch shows changes as they come, of one project; leave out -f, --sort-by and -A")
        _show_changes(session, choice, output, header=header)
    elif not files and len(words) == 1 and "/" not in words[0]:
        output = replace(output, projects=all_projects)
        _show_lists(session, _lists(session, choice, output, sort_by), output, header=header)
    elif labels or fields or sort_by or all_projects:
        raise usage("selectors, --sort-by and -A are for lists; leave out the names")
    else:
        subjects = choice.find(session)
        _show_named(session, subjects, output, header=header, missing_is_fine=ignore_not_found)


def _show_changes(session: Session, choice: Choice, output: formats.Format, *, header: bool) -> None:
    from nodus.cli.watching import follow  # noqa: PLC0415 (only a watcher pays for it)

    kind, name = _watched(choice.words)
    follow(session, kind, name, output, labels=choice.labels, fields=choice.fields, header=header)


def _watched(words: tuple[str, ...]) -> tuple[Kind, str | None]:
    if len(words) == 1 and "/" not in words[0]:
        return kind_of(words[0]), None
    targets = targets_of(words)
    if len(targets) > 1:
        raise usage("--watch follows one object, or all of a kind; use --field-selector or -l to choose")
    return targets[0].kind, targets[0].name


def _lists(
    session: Session, choice: Choice, output: formats.Format, sort_by: sorting.Key | None
) -> list[tuple[Kind, list[dict[str, Any]]]]:
    """The objects of each kind that is listed, in the order that is asked for."""
    project = ALL_PROJECTS if output.projects else None

    def listed(kind: Kind) -> list[dict[str, Any]]:
        things = _readable(session, kind, project, output, whole=sort_by is not None).list(
            label_selector=choice.labels, field_selector=choice.fields
        )
        return [thing.to_dict() for thing in things]

    lists = [(kind, listed(kind)) for kind in kinds_of(choice.words[0])]
    return [(kind, sort_by.sorted(things) if sort_by else things) for kind, things in lists]


def _readable(
    session: Session, kind: Kind, project: str | None, output: formats.Format, *, whole: bool = False
) -> Resource:
    """Where objects are read as they are shown: as rows of the server's tables, or whole."""
    return session.rows(kind, project, whole=whole) if output.of_server else session.resource(kind, project)


def _show_lists(
    session: Session,
    lists: list[tuple[Kind, list[dict[str, Any]]]],
    output: formats.Format,
    *,
    header: bool,
) -> None:
    if len(lists) == 1:
        [(kind, things)] = lists
        if things or not output.tabular:
            printing.objects(kind, things, output, header=header)
    else:
        printing.mixed([(kind, thing) for kind, things in lists for thing in things], output, header=header)
    if output.tabular and output.word != "name":
        for kind, things in lists:
            if not things:
                click.echo(f"No {kind.plural} in {_place(session, kind, output)}.", err=True)


def _place(session: Session, kind: Kind, output: formats.Format) -> str:
    if kind.namespaced and output.projects:
        return "any project"
    return f"project {text.line(session.client.project)}" if kind.namespaced else "this organization"


def _show_named(
    session: Session,
    subjects: list[Subject],
    output: formats.Format,
    *,
    header: bool,
    missing_is_fine: bool,
) -> None:
    """What was found; then the errors of those that were not, and exit code 1, as kubectl does."""
    found: list[tuple[Kind, dict[str, Any]]] = []
    errors: list[NodusError] = []
    for subject in subjects:
        resource = _readable(session, subject.target.kind, subject.project, output)
        try:
            found.append((subject.target.kind, resource.get(subject.target.name).to_dict()))
        except NotFoundError as error:
            if not missing_is_fine:
                errors.append(error)
    if len(subjects) == 1 and found and not output.tabular:
        printing.value(found[0][1], output)
    elif found:
        printing.mixed(found, output, header=header)
    for error in errors[:-1]:
        failures.show(error)
    if errors:
        raise errors[-1]
