"""Organizations and projects: their objects, each with the row that the door reads, in one commit (NOD-003)."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nodus_core.access.door import SYSTEM_ORG, SYSTEM_PROJECT
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.shelf import missing
from nodus_core.journal.access import (
    Access,
    Organization,
    Project,
    organization_row,
    project_gone,
    project_row,
)
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.objects import Object
from nodus_core.resources.fields import is_label
from nodus_core.resources.kinds import KINDS
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.refusals import invalid

ORGANIZATION = "Organization"
PROJECT = "Project"
_NAMED = 5
"""Objects of a kind that a refusal to delete their project names."""

log = logging.getLogger(__name__)


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

    def end(self, old: Object) -> None:
        """Removes a project that holds nothing. Raises `Refusal` `Conflict` naming what it holds.

        A look comes first, so that one that is in use is not closed. Then it is closed, so that nothing is made in it
        between the second look and the commit.
        """
        self._look_first(old.key.org, old.key.name)
        self._close_and_remove(old)

    def _look_first(self, org: str, name: str) -> None:
        """Raises `Refusal` `Conflict` for a project that holds something, and opens it where a call has left it closed.

        That call may be at work still: it then finds its word gone, and looks again.
        """
        held = list(self._held(org, name))
        if not held:
            return
        project = self.access.project(org, name)
        if project is not None and project.closing is not None:
            self.access.reopen_project(org, name, project.closing)
        raise _not_empty(name, held)

    def _close_and_remove(self, old: Object) -> None:
        """Closes the project, looks, and removes it. Raises `Refusal` `Conflict`, `ConditionFailed`.

        On every other way out it is opened again; only a call that dies leaves it closed.
        """
        org, name, word = old.key.org, old.key.name, self.ids.fresh("closing")
        try:
            self.access.close_project(org, name, word)
            held = list(self._held(org, name))
            if held:
                raise _not_empty(name, held)
            project = Project(org, name, old.created_at)
            self.remove(old, project_gone(project, word, self.shelf.clock.now()))
        except Exception:
            self._reopen(org, name, word)
            raise

    def _reopen(self, org: str, name: str, word: str) -> None:
        try:
            self.access.reopen_project(org, name, word)
        except Exception:  # what the caller is told is why the project is not deleted
            log.exception("project %s of %s is closed; its next deletion decides", name, org)

    def _held(self, org: str, name: str) -> Iterator[str]:
        """What a project holds, in words."""
        for kind in KINDS:
            if not kind.namespaced:
                continue
            found, more, unseen = self.shelf.journal.first_of(org, name, kind.name, limit=_NAMED)
            if found:
                names = ", ".join(obj.key.name for obj in found)
                yield f"{kind.plural} {names}{', …' if more else ''}"
            elif unseen:
                yield f"{kind.plural} that are being created together (try again in a minute)"


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
