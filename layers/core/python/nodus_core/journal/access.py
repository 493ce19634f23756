"""Rows of organizations, projects and bearer keys. A key's token is never stored, only its sha256."""

from dataclasses import dataclass
from datetime import datetime

from nodus_core.journal.codec import from_row
from nodus_core.journal.keys import access_key, organization_key, project_key
from nodus_core.journal.store import Absent, Check, Key, Present, Put, Row
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.errors import ConditionFailed


@dataclass(frozen=True)
class Organization:
    name: str
    created_at: datetime


@dataclass(frozen=True)
class Project:
    """A namespace of an organization."""

    org: str
    name: str
    created_at: datetime


@dataclass(frozen=True)
class AccessKey:
    """A bearer key by the sha256 (hex) of its token.

    `projects` are names or `*` for all of the organization; `permissions` are `<plural>:read`,
    `<plural>:write` or `*` (NODQ-96).
    """

    token_hash: str
    name: str
    org: str
    projects: tuple[str, ...]
    permissions: tuple[str, ...]
    created_at: datetime


class Access:
    """Reads and commits of who may use the API."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def key(self, token_hash: str) -> AccessKey | None:
        row = self._read(access_key(token_hash))
        return None if row is None else from_row(AccessKey, row)

    def project(self, org: str, name: str) -> Project | None:
        row = self._read(project_key(org, name))
        return None if row is None else from_row(Project, row)

    def create_organization(self, org: Organization) -> bool:
        """Returns whether it is new; one that exists stays as it is."""
        return self._create("create-organization", organization_key(org.name), org)

    def create_project(self, project: Project) -> bool:
        """Returns whether it is new. Condition: its organization exists. Raises `ConditionFailed`."""
        owner = Check(organization_key(project.org), Present())
        return self._create("create-project", project_key(project.org, project.name), project, owner)

    def create_key(self, key: AccessKey) -> None:
        """Condition: the organization exists, the hash is new. Raises `ConditionFailed`."""
        self._writer.commit(
            "create-key",
            Put(stored(access_key(key.token_hash), key), when=Absent()),
            Check(organization_key(key.org), Present()),
        )

    def _create(self, name: str, key: Key, thing: Organization | Project, *more: Check) -> bool:
        try:
            self._writer.commit(name, Put(stored(key, thing), when=Absent()), *more)
        except ConditionFailed as lost:
            if set(lost.current) != {0}:
                raise
            return False
        return True

    def _read(self, key: Key) -> Row | None:
        return self._writer.store.get([key])[0]
