"""Rows of organizations, projects and bearer keys. A key's token is never stored, only its sha256.

Organizations, projects and keys are objects that people see; these rows are what the door reads of them, written
in the commits of their objects.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nodus_core.journal.codec import from_row
from nodus_core.journal.keys import access_key, organization_key, project_key
from nodus_core.journal.lines import due
from nodus_core.journal.store import (
    Absent,
    Check,
    Delete,
    Either,
    Equals,
    Key,
    Operation,
    Present,
    Put,
    Row,
    Update,
    both,
)
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.objects import ObjectKey

TOMBSTONE = timedelta(hours=1)
"""How long the row of a deleted project goes on refusing objects: longer than any call that knew it can last."""

SHOWN_AFTER_EXPIRY = timedelta(days=7)
"""How long a key that has expired is still listed."""

_THERE = Either((Absent("gone"), Equals("gone", False)))


@dataclass(frozen=True)
class Organization:
    name: str
    created_at: datetime


@dataclass(frozen=True)
class Project:
    """A namespace of an organization. `closing` names the call that is deleting it: nothing is made in it from
    then on; `gone`: it is deleted."""

    org: str
    name: str
    created_at: datetime
    closing: str | None = None
    gone: bool = False


@dataclass(frozen=True)
class AccessKey:
    """A bearer key by the sha256 (hex) of its token.

    `projects` are names or `*` for all of the organization; `permissions` are scopes, roles or `*` (NODQ-96).
    Without `expires_at` it works until it is deleted; without a rate it has the deployment's.
    """

    token_hash: str
    name: str
    org: str
    projects: tuple[str, ...]
    permissions: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    requests_per_second: int | None = None
    burst: int | None = None


class Access:
    """Reads and commits of who may use the API."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def key(self, token_hash: str) -> AccessKey | None:
        row = self._read(access_key(token_hash))
        return None if row is None else from_row(AccessKey, row)

    def organization(self, name: str) -> Organization | None:
        row = self._read(organization_key(name))
        return None if row is None else from_row(Organization, row)

    def project(self, org: str, name: str) -> Project | None:
        """The project, unless it was deleted."""
        row = self._read(project_key(org, name))
        found = None if row is None else from_row(Project, row)
        return None if found is None or found.gone else found

    def close_project(self, org: str, name: str, word: str) -> None:
        """From now on nothing is made in the project, by this word or a later one.

        Condition: it is there, and not deleted. Raises `ConditionFailed`.
        """
        key = project_key(org, name)
        self._writer.commit(
            "close-project", Update(key, when=both(Present(), _THERE), assign={"closing": word})
        )

    def reopen_project(self, org: str, name: str, word: str) -> None:
        """Takes a closing back, unless another call has closed the project since, or it is deleted."""
        key = project_key(org, name)
        try:
            self._writer.commit(
                "reopen-project",
                Update(key, when=both(Equals("closing", word), _THERE), remove=("closing",)),
            )
        except ConditionFailed:
            return

    def _read(self, key: Key) -> Row | None:
        return self._writer.store.get([key])[0]


def organization_row(org: Organization) -> Operation:
    """Part of the commit that makes an organization's object."""
    return Put(stored(organization_key(org.name), org))


def project_row(project: Project) -> Operation:
    """Part of the commit that makes a project's object: one that was deleted is another one from here on."""
    return Put(stored(project_key(project.org, project.name), project))


def project_gone(project: Project, word: str, now: datetime) -> Operation:
    """Part of the commit that deletes a project's object. Condition: it is closed by this word still."""
    key = project_key(project.org, project.name)
    row = stored(key, replace(project, closing=word, gone=True), ttl=int((now + TOMBSTONE).timestamp()))
    return Put(row, when=Equals("closing", word))


def key_row(key: AccessKey) -> Operation:
    """Part of the commit that makes a key's object. Condition: the hash is new.

    One that expires is due some days after that: people see for a while what has expired.
    """
    place = access_key(key.token_hash)
    end = {} if key.expires_at is None else due(place.pk, key.expires_at + SHOWN_AFTER_EXPIRY)
    return Put(stored(place, key, **end), when=Absent())


def key_gone(token_hash: str) -> Operation:
    """Part of the commit that deletes a key's object."""
    return Delete(access_key(token_hash))


def making(writer: Writer, name: str, key: ObjectKey, *operations: Operation) -> None:
    """A commit that makes objects in a project.

    Condition beside those of the operations: the project, if there is one, is not being deleted. Raises
    `ConditionFailed`, and for the project `Refusal` `Conflict`.
    """
    guard = (Check(project_key(key.org, key.project), Absent("closing")),) if key.project else ()
    try:
        writer.commit(name, *operations, *guard)
    except ConditionFailed as lost:
        if guard and len(operations) in lost.current:
            raise _closed(key) from None
        raise


def _closed(key: ObjectKey) -> Refusal:
    message = (
        f"project {key.project!r} is being deleted, and nothing was stored; "
        "delete it again to see what it still holds"
    )
    return Refusal("Conflict", message, kind="Project", name=key.project)
