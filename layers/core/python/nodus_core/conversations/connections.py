"""Connections: which one reads a repository, whether it can, and by what right (NOD-151, NODQ-102).

looked for when a run is admitted ──► its name is pinned ──► read again when the source is copied: a token that was
changed counts at once, and a connection that is gone reads nothing any more
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from nodus_core.conversations.conditions import Said, shown
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.secrets import KIND as SECRET
from nodus_core.conversations.secrets import fields_of, vault_place
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.sources import Allowed, Remote, SourceRefused, SourceUnavailable
from nodus_core.journal.journal import Journal
from nodus_core.journal.vault import ValueGone, Vault
from nodus_core.kernel.errors import Cause, Refusal, RetryableError
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.resources.columns import READY
from nodus_core.resources.connection import GITHUB, ConnectionSpec, GitHost, GitHub, Local

KIND = "Connection"
MOST_TOKEN = 4096
"""Characters of a token; a longer one is none."""


@dataclass(frozen=True)
class Problem:
    """Why nothing can be read through a connection: a word, and what to do."""

    reason: str
    message: str


@dataclass(frozen=True)
class Connections(Definitions):
    """Use cases of Connections. To make one asks its host nothing."""

    kind: str = KIND

    def status(self, old: Object) -> Mapping[str, Any]:
        """Whether it can be used, as far as is known without asking its host."""
        return status_of(self.shelf, old, self.shelf.spec(old))


def status_of(shelf: Shelf, obj: Object, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a connection as it is now: it changes with the project's Secrets and the operator's settings."""
    found = problem(shelf.journal, shelf.allowed, obj.key, ConnectionSpec.model_validate(spec))
    said = Said(READY, True, "Accepted", "Repositories are read through it.")
    if found is not None:
        said = Said(READY, False, found.reason, found.message)
    return {"conditions": [shown(obj, said)]}


def problem(journal: Journal, allowed: Allowed, key: ObjectKey, spec: ConnectionSpec) -> Problem | None:
    """What keeps a connection from being used; None: nothing that is known here."""
    place = spec.place
    if isinstance(place, GitHub) and place.installation_id is not None and not allowed.app:
        return Problem(
            "GitHubAppMissing", "The operator has set up no GitHub App: give a token by tokenSecret."
        )
    if isinstance(place, GitHost) and urlsplit(place.url).hostname not in allowed.git_hosts:
        return Problem("HostNotAllowed", "The operator has not allowed the host of spec.git.url.")
    if isinstance(place, Local):
        message = "The operator has allowed no folder of repositories; only a local cloud has one."
        return None if allowed.folder else Problem("FolderNotAllowed", message)
    if place.token_secret is None:
        return None
    secret = _secret(journal, key, place.token_secret)
    if secret is None:
        message = f"There is no Secret {place.token_secret!r} in this project, which holds its token."
        return Problem("SecretMissing", message)
    return None if _field(secret, place.token_field) else Problem("SecretFieldMissing", _which_field(secret))


def connection_for(shelf: Shelf, run: ObjectKey, agent: str, repository: str) -> str:
    """The name of the project's Connection that reads a repository for a new run.

    One that names the repository comes before one that names none. Raises `Refusal`: `NotFound` where there is none,
    `Invalid` where two are as good as each other, or the one cannot be used.
    """
    readers = [
        (obj, spec) for obj, spec in _all(shelf, run) if obj.deleted_at is None and spec.reads(repository)
    ]
    named = [each for each in readers if each[1].place.repositories is not None]
    best = named or readers
    what = f"AgentRun {run.name!r} cannot be run: agent {agent!r} takes its files from {repository}"
    if not best:
        cause = Cause("spec.agent", f"names agent {agent!r}, whose spec.source.git.repo is not connected")
        message = (
            f"{what}, and no Connection of this project reads it: make one, or name it in one's repositories"
        )
        raise Refusal("NotFound", message, causes=(cause,), kind=KIND)
    if len(best) > 1:
        names = ", ".join(obj.key.name for obj, _ in best[:5])
        raise _unusable(
            run, agent, f"{what}, which several Connections read ({names}): name it in one of them only"
        )
    obj, spec = best[0]
    found = problem(shelf.journal, shelf.allowed, obj.key, spec)
    if found is not None:
        raise _unusable(
            run, agent, f"{what}, and Connection {obj.key.name!r} cannot be used: {found.message}"
        )
    return obj.key.name


def _unusable(run: ObjectKey, agent: str, message: str) -> Refusal:
    cause = Cause("spec.agent", f"names agent {agent!r}, whose spec.source.git.repo cannot be read")
    return Refusal("Invalid", message, causes=(cause,), kind=run.kind, name=run.name)


def _all(shelf: Shelf, run: ObjectKey) -> Iterator[tuple[Object, ConnectionSpec]]:
    after: str | None = None
    while True:
        objects, after = shelf.journal.objects_of(run.org, run.project, KIND, after=after)
        for obj, texts in zip(objects, shelf.texts(objects), strict=True):
            if texts is not None:
                yield obj, ConnectionSpec.model_validate(texts[0])
        if after is None:
            return


@dataclass(frozen=True)
class Rights:
    """What a connection gives to whoever copies a source."""

    shelf: Shelf
    vault: Vault

    def remote(self, run: ObjectKey, connection: str, repository: str) -> Remote:
        """Where a repository is read, with the token that the project's Secret holds now.

        Raises `SourceRefused` where the connection gives the right no more, `SourceUnavailable` where that cannot be
        found out now.
        """
        key = ObjectKey(run.org, run.project, KIND, connection)
        obj = self.shelf.journal.object(key)
        if obj is None:
            raise SourceRefused(f"there is no Connection {connection!r} in this project any more")
        spec = ConnectionSpec.model_validate(self.shelf.spec(obj))
        if not spec.reads(repository):
            raise SourceRefused(f"Connection {connection!r} does not name {repository} any more")
        found = problem(self.shelf.journal, self.shelf.allowed, key, spec)
        if found is not None:
            raise SourceRefused(f"Connection {connection!r} cannot be used: {found.message}")
        match spec.place:
            case Local():
                return Remote("Local", repository)
            case GitHost() as host:
                return Remote("Git", repository, host.url, host.user, self._token(key, host))
            case GitHub() as github:
                token, installation = self._token(key, github), github.installation_id
                return Remote("GitHub", repository, GITHUB, token=token, installation=installation)

    def _token(self, key: ObjectKey, place: GitHub | GitHost) -> str | None:
        if place.token_secret is None:
            return None
        secret = _secret(self.shelf.journal, key, place.token_secret)
        field = secret and _field(secret, place.token_field)
        if secret is None or secret.value is None or not field:
            raise SourceRefused(f"there is no Secret {place.token_secret!r} with a token any more")
        try:
            token = self.vault.read(vault_place(secret), secret.value.version).get(field, "").strip()
        except ValueGone:
            raise SourceRefused(f"the values of Secret {place.token_secret!r} were removed") from None
        except RetryableError as error:
            raise SourceUnavailable(
                f"Secret {place.token_secret!r} cannot be read now", error.retry_after
            ) from error
        if not (0 < len(token) <= MOST_TOKEN and token.isascii() and token.isprintable()) or " " in token:
            raise SourceRefused(
                f"field {field} of Secret {place.token_secret!r} is no token: it must be one word"
            )
        return token


def _secret(journal: Journal, key: ObjectKey, name: str) -> Object | None:
    return journal.object(ObjectKey(key.org, key.project, SECRET, name))


def _field(secret: Object, wanted: str | None) -> str | None:
    """The field that holds the token: the one that is named, or the only one."""
    fields = fields_of(secret)
    if wanted is not None:
        return wanted if wanted in fields else None
    return fields[0] if len(fields) == 1 else None


def _which_field(secret: Object) -> str:
    listed = ", ".join(_fields_shown(fields_of(secret)))
    return f"Secret {secret.key.name!r} has the fields {listed}: say by tokenField which one is the token."


def _fields_shown(fields: Sequence[str]) -> list[str]:
    return sorted(fields)[:10]
