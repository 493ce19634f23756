"""Making organizations, projects and keys (operations of the `admin` function)."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodus_core.access import tokens
from nodus_core.access.door import SYSTEM_ORG, SYSTEM_PROJECT
from nodus_core.access.permissions import EVERYTHING, PLURALS, is_permission
from nodus_core.journal.access import Access, AccessKey, Organization, Project
from nodus_core.journal.ports import Clock
from nodus_core.kernel.errors import Cause, ConditionFailed, Refusal
from nodus_core.kernel.ids import digest
from nodus_core.resources.fields import is_label

_LONGEST_KEY_NAME = 128


@dataclass(frozen=True)
class Directory:
    """Use cases of the operator. `entropy` gives random bytes."""

    access: Access
    clock: Clock
    entropy: Callable[[int], bytes] = secrets.token_bytes

    def create_organization(self, name: str) -> bool:
        """Returns whether it is new. Raises `Refusal` `Invalid` for a name that is no DNS-1123 label."""
        _check_label("organization", name)
        return self.access.create_organization(Organization(name, self.clock.now()))

    def create_project(self, org: str, name: str) -> bool:
        """Returns whether it is new.

        Raises `Refusal`: `Invalid` for a bad name or the templates' name, `NotFound` without the organization.
        """
        _check_label("organization", org)
        _check_label("project", name)
        if name == SYSTEM_PROJECT and org != SYSTEM_ORG:
            raise _invalid("project", f"{SYSTEM_PROJECT} is the templates' project; take another name")
        try:
            return self.access.create_project(Project(org, name, self.clock.now()))
        except ConditionFailed:
            raise _no_organization(org) from None

    def create_key(self, org: str, name: str, projects: Sequence[str], permissions: Sequence[str]) -> str:
        """A new key's token; it is shown this once and never stored.

        Raises `Refusal`: `Invalid` naming the bad argument, `NotFound` without the organization.
        """
        _check_label("organization", org)
        if not name.isprintable() or not 0 < len(name) <= _LONGEST_KEY_NAME:
            raise _invalid("name", f"must be 1 to {_LONGEST_KEY_NAME} printable characters")
        for project in projects:
            if project != EVERYTHING:
                _check_label("projects", project)
        unknown = [word for word in permissions if not is_permission(word)]
        if unknown or not permissions or not projects:
            allowed = f"* or PLURAL:read, PLURAL:write with {', '.join(PLURALS)}"
            field = "permissions" if unknown or not permissions else "projects"
            raise _invalid(field, f"must be {allowed}" if field == "permissions" else "must name one, or *")
        token = tokens.issue(self.entropy)
        key = AccessKey(
            token_hash=digest(token),
            name=name,
            org=org,
            projects=tuple(projects),
            permissions=tuple(permissions),
            created_at=self.clock.now(),
        )
        try:
            self.access.create_key(key)
        except ConditionFailed:
            raise _no_organization(org) from None
        return token


def _check_label(field: str, name: str) -> None:
    if not is_label(name):
        raise _invalid(field, "must be lower case letters, digits and - (at most 63 characters)")


def _invalid(field: str, message: str) -> Refusal:
    return Refusal("Invalid", f"{field} {message}", causes=(Cause(field, message),))


def _no_organization(org: str) -> Refusal:
    message = f"there is no organization {org!r}; make it first with CreateOrganization"
    return Refusal("NotFound", message, kind="Organization", name=org)
