"""Organizations and projects: their objects, each with the row that the door reads, in one commit (NOD-003)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nodus_core.access.door import SYSTEM_ORG, SYSTEM_PROJECT, Place
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.shelf import MOST_TRIES, Outcome, contested, missing
from nodus_core.journal.access import (
    Access,
    Organization,
    Project,
    organization_row,
    project_gone,
    project_row,
)
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import Cause, ConditionFailed, Refusal
from nodus_core.kernel.objects import Object
from nodus_core.resources.deletion import ANY, Preconditions
from nodus_core.resources.fields import is_label
from nodus_core.resources.kinds import KINDS
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.refusals import invalid

ORGANIZATION = "Organization"
PROJECT = "Project"
_NAMED = 5
"""Objects of a kind that a refusal to delete their project names."""


@dataclass(frozen=True)
class Organizations(Definitions):
    """Use cases of organizations. A caller reaches his own only: it is the one that his place names."""

    kind: str = ORGANIZATION

    def added(self, obj: Object, manifest: Manifest) -> Sequence[Operation]:
        """The row of a new organization, which holds its own object: `NotFound` for any other name."""
        if obj.key.name != obj.key.org:
            raise missing(ORGANIZATION, obj.key.name)
        return (organization_row(Organization(obj.key.name, obj.created_at)),)


@dataclass(frozen=True)
class Projects(Definitions):
    """Use cases of projects."""

    kind: str = PROJECT
    access: Access = field(kw_only=True)

    def added(self, obj: Object, manifest: Manifest) -> Sequence[Operation]:
        """The row of a new project. Raises `Refusal`: `Invalid` for its name, `NotFound` without the organization."""
        org, name = obj.key.org, obj.key.name
        check_label(PROJECT, name)
        if name == SYSTEM_PROJECT and org != SYSTEM_ORG:
            message = f"{SYSTEM_PROJECT} is the templates' project; take another name"
            raise invalid(PROJECT, name, (Cause("metadata.name", message),))
        check_organization(self.access, org)
        return (project_row(Project(org, name, obj.created_at)),)

    def delete(self, place: Place, name: str, wanted: Preconditions = ANY) -> Outcome:
        """Removes a project that holds nothing. `NotFound`, `Conflict` naming what it holds.

        It is closed first, so that nothing is made in it between the look and the commit; a call that dies in
        between leaves it closed, and the next one decides anew.
        """
        for _ in range(MOST_TRIES):
            old = self.shelf.find(place, PROJECT, name)
            wanted.check(old)
            try:
                word = self.access.close_project(place.org, name)
                held = list(self._held(place.org, name))
                if held:
                    self.access.reopen_project(place.org, name, word)
                    raise _not_empty(name, held)
                project = Project(place.org, name, old.created_at)
                self.remove(old, project_gone(project, word, self.shelf.clock.now()))
            except ConditionFailed:
                continue
            self.clear(old)
            return Outcome(old, {}, removed=True)
        raise contested(PROJECT, name)

    def _held(self, org: str, name: str) -> Iterator[str]:
        """What a project holds, in words."""
        for kind in KINDS:
            if not kind.namespaced:
                continue
            found, more = self.shelf.journal.objects_of(org, name, kind.name, limit=_NAMED)
            if found:
                names = ", ".join(obj.key.name for obj in found)
                yield f"{kind.plural} {names}{', …' if more else ''}"


def check_organization(access: Access, name: str) -> None:
    """Raises `Refusal` `NotFound` where there is no such organization."""
    if access.organization(name) is None:
        message = f"there is no organization {name!r}; make it first with CreateOrganization"
        raise Refusal("NotFound", message, kind=ORGANIZATION, name=name)


def check_label(kind: str, name: str, field: str = "metadata.name") -> None:
    """Raises `Refusal` `Invalid` for what can name neither an organization nor a project; `field` says it."""
    if not is_label(name):
        message = "must be lower case letters, digits and - (at most 63 characters)"
        raise invalid(kind, name, (Cause(field, message),))


def _not_empty(name: str, held: Sequence[str]) -> Refusal:
    message = f"project {name!r} is not empty; delete what it holds first: {'; '.join(held)}"
    return Refusal("Conflict", message, kind=PROJECT, name=name)
