"""What `nodus create -f` sends with one call: the runs of an `AgentRunList`, all of them or none (NOD-361)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NoReturn

from nodus._agentruns import LARGEST_BATCH
from nodus._kinds import AGENT_RUN
from nodus.cli.manifests import Wanted
from nodus.cli.sending import Part
from nodus.errors import ManifestError

LIST = f"{AGENT_RUN.name}List"


def is_of_batch(one: Wanted) -> bool:
    """Whether an object is created together with the others of its document."""
    return one.document.value.get("kind") == LIST


def parts(wanted: Sequence[Wanted], project: str | None) -> list[Part]:
    """The objects in their order, those that are created together as one part.

    Args:
        wanted: the objects.
        project: that of those that name none; ``None``: the configured one.

    Raises:
        ManifestError: a list that cannot be created together.
    """
    found: list[Part] = []
    for _, group in groupby(wanted, lambda one: id(one.document) if is_of_batch(one) else id(one)):
        part = list(group)
        found.append(_batch(part, project) if is_of_batch(part[0]) else part)
    return found


def _batch(runs: Sequence[Wanted], project: str | None) -> Part:
    if len(runs) > LARGEST_BATCH:
        problem = (
            f"{len(runs)} runs: at most {LARGEST_BATCH} are created together; make several lists of them"
        )
        _refuse(runs[0], "items", problem)
    place = runs[0].project or project
    for one in runs:
        if one.target.kind is not AGENT_RUN:
            _refuse(one, f"{one.path}.kind", f"must be {AGENT_RUN.name} in an {LIST}")
        if (one.project or project) != place:
            there = place or "the configured one"
            problem = f"must be {there} as of the runs before: a list is created in one project"
            _refuse(one, f"{one.path}.metadata.namespace", problem)
    # What the server refuses of a list it names by its place in the list.
    return [replace(one, path="") for one in runs]


def _refuse(one: Wanted, path: str, problem: str) -> NoReturn:
    document = one.document
    raise ManifestError(problem, source=document.source, line=document.line_of(path), field=path)
