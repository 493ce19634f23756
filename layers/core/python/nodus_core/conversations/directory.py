"""Making organizations, projects and keys (operations of the `admin` function): the operator's own use cases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from nodus_core.access.door import Place
from nodus_core.access.grant import Grant
from nodus_core.access.identities import normalised
from nodus_core.conversations.api_keys import ApiKeys, check_words
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.tenancy import Organizations, Projects, check_label, check_organization
from nodus_core.journal.access import Access
from nodus_core.journal.identities import Identity, IdentityRows
from nodus_core.journal.ports import Ids
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.resources.api_key import ApiKeySpec
from nodus_core.resources.fields import is_name
from nodus_core.resources.manifest import Manifest, check_spec
from nodus_core.resources.metadata import Metadata
from nodus_core.resources.refusals import invalid

OPERATOR = "operator"
"""Who has made a key that no other key made."""


@dataclass(frozen=True)
class Directory:
    """Use cases of the operator."""

    access: Access
    organizations: Organizations
    projects: Projects
    keys: ApiKeys
    identities: IdentityRows

    @classmethod
    def over(cls, shelf: Shelf, ids: Ids) -> Self:
        writer = shelf.journal.writer
        access = Access(writer)
        projects = Projects(shelf, ids, access=access)
        return cls(access, Organizations(shelf, ids), projects, ApiKeys(shelf, ids), IdentityRows(writer))

    def create_organization(self, name: str) -> bool:
        """Returns whether it is new. Raises `Refusal` `Invalid` for a name that is no DNS-1123 label."""
        return _is_new(self.organizations, name, name)

    def create_project(self, org: str, name: str) -> bool:
        """Returns whether it is new.

        Raises `Refusal`: `Invalid` for a bad name or the templates' name, `NotFound` without the organization.
        """
        check_label("Organization", org, "organization")
        return _is_new(self.projects, org, name)

    def create_key(self, org: str, name: str, projects: Sequence[str], permissions: Sequence[str]) -> str:
        """A new key's token; it is shown this once and never stored.

        Raises `Refusal`: `Invalid` naming the bad argument, `AlreadyExists`, `NotFound` without the organization.
        """
        check_label("Organization", org, "organization")
        check_organization(self.access, org)
        spec = {"projects": list(projects), "permissions": list(permissions)}
        outcome = self.keys.create(_everywhere(org), _manifest("ApiKey", name, spec))
        return str(outcome.object.status["token"])

    def map_identity(self, org: str, arn: str, projects: Sequence[str], permissions: Sequence[str]) -> str:
        """Says what whoever is `arn` in AWS may do in an organization, in the place of what was said before.

        Returns the ARN as it is mapped. Raises `Refusal` `Invalid`, `NotFound` without the organization.
        """
        check_label("Organization", org, "organization")
        check_organization(self.access, org)
        spec = check_spec("ApiKey", arn, {"projects": list(projects), "permissions": list(permissions)})
        if isinstance(spec, ApiKeySpec):
            check_words(arn, spec)
        now = self.keys.shelf.clock.now()
        identity = Identity(_mappable(arn), org, tuple(projects), tuple(permissions), now)
        self.identities.keep(identity)
        return identity.arn

    def unmap_identity(self, org: str, arn: str) -> bool:
        """Returns whether it was mapped. Its keys live on until they expire. Raises `Refusal` `Invalid`."""
        return self.identities.forget(_mappable(arn), org)

    def identity(self, arn: str) -> list[Identity]:
        """What an AWS identity may do, and where. Raises `Refusal` `Invalid`."""
        return self.identities.of(_mappable(arn))


def _mappable(arn: str) -> str:
    found = normalised(arn)
    if found is None:
        message = "must be the ARN of a role, a user, a session or the root of an account"
        raise invalid("Identity", None, (Cause("arn", message),))
    return found


def _is_new(cases: Definitions, org: str, name: str) -> bool:
    check_label(cases.kind, name, cases.kind.lower())
    try:
        cases.create(_everywhere(org), _manifest(cases.kind, name, {}))
    except Refusal as refusal:
        if refusal.reason != "AlreadyExists":
            raise
        return False
    return True


def _everywhere(org: str) -> Place:
    return Place(org, "", OPERATOR, Grant.everything())


def _manifest(kind: str, name: str, spec: dict[str, Any]) -> Manifest:
    if not is_name(name):
        message = "must be lower case letters, digits, - and . (at most 253 characters)"
        raise invalid(kind, None, (Cause("metadata.name", message),))
    check_spec(kind, name, spec)
    return Manifest(kind, Metadata(name), spec)
