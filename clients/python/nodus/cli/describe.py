"""`nodus describe`: everything about an object that a person looks for, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import click

from nodus._kinds import AGENT_RUN, Kind
from nodus.cli import changing, picking, step_table, text, waits
from nodus.cli.kinds import kind_of
from nodus.cli.selection import Choice, Subject, choice_options
from nodus.cli.session import Command, Session, pass_session

INDENT = "  "
MOST_STEPS = 50
# Shown in a form of their own, or of no use to a person.
_OWN_FORM = {"conditions", "turns", "cost", "unresolved", "answer"}
_NOT_SHOWN = {"managedFields", "name", "namespace", "labels", "annotations"}


@click.command(cls=Command)
@choice_options
@pass_session
def describe(session: Session, choice: Choice) -> int:
    """Show objects in full, and what to do next.

    \b
      nodus describe agentrun/triage
      nodus describe budgets
    """
    if not choice.files and len(choice.words) == 1 and "/" not in choice.words[0]:
        choice = Choice((kind_of(choice.words[0]).word,), (), choice.labels, choice.fields, every=True)
    shown = 0

    def show(subject: Subject) -> None:
        nonlocal shown
        kind, name = subject.target
        thing = session.resource(kind, subject.project).get(name).to_dict()
        lines = [*head(kind, thing), *body(thing)]
        if kind is AGENT_RUN:
            runs = session.client.in_project(subject.project).agentruns
            lines += [
                *run(thing),
                *unresolved(thing),
                *steps_of([step.to_dict() for step in runs.steps(name)]),
            ]
        lines += next_of(thing, kind)
        click.echo(("\n\n" if shown else "") + "\n".join(lines))
        shown += 1

    return changing.each(choice.find(session), show)


def head(kind: Kind, thing: dict[str, Any]) -> Iterator[str]:
    """Name, place, labels and the server's own fields."""
    metadata: dict[str, Any] = thing.get("metadata") or {}
    yield _field("Name", metadata.get("name"))
    if metadata.get("namespace"):
        yield _field("Project", metadata["namespace"])
    yield _field("Kind", kind.name)
    for field in ("labels", "annotations"):
        labels: dict[str, Any] = metadata.get(field) or {}
        words = [f"{key}={value}" for key, value in labels.items()]
        if words:
            yield _field(field.capitalize(), words[0])
            yield from (f"{'':<16}{text.line(word)}" for word in words[1:])
    names = {"creationTimestamp": "Created", "deletionTimestamp": "Deleting since", "uid": "UID"}
    for field, value in metadata.items():
        if field == "ownerReferences":
            owners: list[dict[str, Any]] = value
            yield _field("Owner", ", ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in owners))
        elif field not in _NOT_SHOWN:
            yield _field(names.get(field, _words(field)), value)


def body(thing: dict[str, Any]) -> Iterator[str]:
    """``spec`` and ``status``, field by field."""
    for part in ("spec", "status"):
        value = thing.get(part)
        if isinstance(value, dict) and value:
            yield f"{part.capitalize()}:"
            fields = cast("dict[str, Any]", value)
            yield from _tree({k: v for k, v in fields.items() if part == "spec" or k not in _OWN_FORM}, 1)
    conditions = cast("list[dict[str, Any]]", picking.pick(thing, "status.conditions") or [])
    if conditions:
        yield "Conditions:"
        rows = [
            [str(entry.get(field) or "") for field in ("type", "status", "reason", "message")]
            for entry in conditions
        ]
        yield from _table(["TYPE", "STATUS", "REASON", "MESSAGE"], rows)


def run(thing: dict[str, Any]) -> Iterator[str]:
    """A run's costs, its turns and the beginning of its answer."""
    cost: dict[str, Any] = picking.pick(thing, "status.cost") or {}
    if cost:
        yield "Cost:"
        yield f"{INDENT}models ${cost.get('totalUSD')} of ${cost.get('limitUSD')}, sandbox ${cost.get('computeUSD')}"
    turns = cast("list[dict[str, Any]]", picking.pick(thing, "status.turns") or [])
    if turns:
        yield "Turns:"
        fields = ("turn", "phase", "model", "chosenBy", "costUSD", "prompt")
        rows = [[text.cut(text.line(turn.get(field) or ""), 60) for field in fields] for turn in turns]
        yield from _table(["TURN", "PHASE", "MODEL", "CHOSEN-BY", "USD", "PROMPT"], rows)
    answer = picking.pick(thing, "status.answer.preview")
    if answer:
        yield "Answer:"
        yield from _block(str(answer), 1)


def unresolved(thing: dict[str, Any]) -> Iterator[str]:
    """What a person is asked about a run: the steps whose outcome is not known, and what each was to do."""
    entries = cast("list[dict[str, Any]]", picking.pick(thing, "status.unresolved") or [])
    if entries:
        yield "Unresolved:"
    for entry in entries:
        yield f"{INDENT}{text.line(entry.get('step'))}  since {text.line(entry.get('since'))}"
        for field in ("what", "input"):
            if entry.get(field):
                yield f"{INDENT * 2}{field}:"
                yield from _block(str(entry[field]), 3)


def steps_of(found: list[dict[str, Any]]) -> Iterator[str]:
    """The last steps."""
    if not found:
        return
    left_out = len(found) - MOST_STEPS
    yield f"Steps:{f'  (the last {MOST_STEPS} of {len(found)})' if left_out > 0 else ''}"
    rows = [step_table.row(step, wide=False) for step in found[-MOST_STEPS:]]
    yield from _table(step_table.header(wide=False), rows)


def next_of(thing: dict[str, Any], kind: Kind) -> list[str]:
    """What a person can do now."""
    name = text.line(picking.pick(thing, "metadata.name"))
    lines = waits.told(thing) if kind is AGENT_RUN else []
    phase = picking.pick(thing, "status.phase")
    if kind is AGENT_RUN and not lines:
        ended = {"Succeeded": f"nodus agentrun answer {name}", "Failed": f"nodus logs agentrun/{name}"}
        if phase in kind.finished:
            lines = [ended[phase]] if phase in ended else []
        else:
            lines = [f"nodus logs -f agentrun/{name}"]
    return ["Next:", *(INDENT + line for line in lines)] if lines else []


def _field(name: str, value: Any) -> str:
    return f"{name + ':':<15} {text.line(value)}"


def _words(field: str) -> str:
    """``resourceVersion`` as ``Resource version``."""
    spaced = "".join(f" {char.lower()}" if char.isupper() else char for char in field)
    return spaced[:1].upper() + spaced[1:]


def _tree(value: dict[str, Any], depth: int) -> Iterator[str]:
    for key, below in value.items():
        name = f"{INDENT * depth}{text.line(key)}:"
        if isinstance(below, dict) and below:
            yield name
            yield from _tree(cast("dict[str, Any]", below), depth + 1)
        elif isinstance(below, list) and any(isinstance(item, dict) for item in cast("list[Any]", below)):
            yield name
            for item in cast("list[Any]", below):
                inner = (
                    list(_tree(cast("dict[str, Any]", item), depth + 2))
                    if isinstance(item, dict)
                    else [text.line(item)]
                )
                yield f"{INDENT * (depth + 1)}- {inner[0].lstrip()}" if inner else f"{INDENT * (depth + 1)}-"
                yield from inner[1:]
        elif isinstance(below, str) and "\n" in below:
            yield name
            yield from _block(below, depth + 1)
        else:
            yield f"{name}  {_scalar(below)}"


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(text.line(item) for item in cast("list[Any]", value)) or "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    return "(none)" if value in (None, {}) else text.line(value)


def _block(value: str, depth: int) -> Iterator[str]:
    return (f"{INDENT * depth}{line}" for line in text.block(value.rstrip("\n")).split("\n"))


def _table(header: list[str], rows: list[list[str]]) -> Iterator[str]:
    return (INDENT + line for line in text.table(header, rows).splitlines())
