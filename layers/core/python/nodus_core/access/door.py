"""The door of the API: from a bearer token, an organization and a namespace to a place where work may be done.

Refusals tell nothing about what the caller may not see: another organization's projects are `Forbidden`
whether they exist or not (NOD-004).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from nodus_core.access.grant import DEFAULT_RATE, NOTHING, Grant, Rate
from nodus_core.access.limits import Limits
from nodus_core.access.permissions import AGENTS_READ, allows
from nodus_core.access.tokens import bearer, is_token
from nodus_core.journal.access import Access, AccessKey, Project
from nodus_core.journal.ports import Clock
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.times import stamp
from nodus_core.resources.fields import is_label

SYSTEM_ORG = "nodus"
SYSTEM_PROJECT = "nodus"
"""Home of the templates; every key with `agents:read` may read its agents (NODQ-22)."""

KEPT = timedelta(seconds=30)
"""How long a process may go on believing in a key or project; a withdrawn key works no longer than this."""

_MOST_KEPT = 1000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True)
class Place:
    """Where a call works: organization and project (empty for what belongs to no project).

    `caller` is the name of the key, `grant` what it may give to others, `key` the hash of its token.
    """

    org: str
    project: str
    caller: str
    grant: Grant = NOTHING
    key: str = ""


class _Kept(Generic[K, V]):
    """What was read lately. Only what exists is kept: something new works at once."""

    def __init__(self, read: Callable[[K], V | None], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._known: OrderedDict[K, tuple[datetime, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        now = self._clock.now()
        known = self._known.get(key)
        if known is not None and timedelta(0) <= now - known[0] < KEPT:
            return known[1]
        found = self._read(key)
        if found is None:
            self._known.pop(key, None)
            return None
        self._known[key] = (now, found)
        self._known.move_to_end(key)
        while len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)
        return found


class Door:
    """Checks callers. One per process: it keeps what it has read for 30 s."""

    def __init__(self, access: Access, clock: Clock, limits: Limits, rate: Rate = DEFAULT_RATE) -> None:
        self._clock = clock
        self._limits = limits
        self._rate = rate
        self._keys: _Kept[str, AccessKey] = _Kept(access.key, clock)
        self._projects: _Kept[tuple[str, str], Project] = _Kept(lambda pair: access.project(*pair), clock)

    def caller(self, authorization: str | None, org: str | None, *, counts: bool = True) -> AccessKey:
        """The key that a call carries.

        Args:
            authorization: the `Authorization` header.
            org: the `Nodus-Org` header; it may be left out, since a key belongs to one organization (NODQ-97).
            counts: the call is a use of the key; else it is part of one that was counted.

        Raises `Refusal`: `Unauthorized` for a missing, wrong or expired token (a wrong one costs a hash and a
        read, and one that is no token at all not even that), `TooManyRequests`, `Forbidden` for another
        organization.
        """
        token = bearer(authorization)
        if token is None:
            raise Refusal("Unauthorized", "send a key as Authorization: Bearer TOKEN")
        key = self._keys.get(digest(token)) if is_token(token) else None
        if key is None:
            raise Refusal("Unauthorized", "the key is wrong or was withdrawn")
        if key.expires_at is not None and key.expires_at <= self._clock.now():
            raise Refusal("Unauthorized", f"the key expired at {stamp(key.expires_at)}; log in again")
        if counts:
            self._limits.spend(key.token_hash, self._rate_of(key))
        if org is not None and org != key.org:
            raise Refusal("Forbidden", "the key does not belong to the organization of header Nodus-Org")
        return key

    def enter(self, key: AccessKey, project: str, permission: str) -> Place:
        """The place that the call asks for.

        Raises `Refusal`: `Forbidden` when the key lacks the permission or the project, `NotFound` when its
        organization has no such project.
        """
        grant = self._granted(key, permission)
        if project == SYSTEM_PROJECT and key.org != SYSTEM_ORG:
            if permission != AGENTS_READ:
                message = f"project {SYSTEM_PROJECT} holds templates: its agents can be read, nothing else"
                raise Refusal("Forbidden", message)
            return Place(SYSTEM_ORG, SYSTEM_PROJECT, key.name)
        if not grant.is_of_all_projects and project not in key.projects:
            raise Refusal("Forbidden", "the key may not use this project")
        if not is_label(project) or self._projects.get((key.org, project)) is None:
            raise Refusal("NotFound", "there is no such project", kind="Project", name=project[:63])
        return Place(key.org, project, key.name, grant, key.token_hash)

    def enter_again(
        self, token_hash: str, project: str, permission: str, use: str, most: Rate
    ) -> Place | None:
        """The place of a key that has given somebody something to use, such as a preview; None: it works no more.

        `use` names what was given, which has a rate of its own: as much as the key's, and no more than `most`. Raises
        `Refusal` `TooManyRequests`, and what `enter` does.
        """
        key = self._keys.get(token_hash)
        if key is None or (key.expires_at is not None and key.expires_at <= self._clock.now()):
            return None
        self._limits.spend(use, self._rate_of(key).at_most(most), whose="requests by this address")
        return self.enter(key, project, permission)

    def enter_organization(self, key: AccessKey, permission: str) -> Place:
        """The place of what belongs to the key's organization as a whole.

        Raises `Refusal` `Forbidden` when the key lacks the permission, or is one of single projects.
        """
        grant = self._granted(key, permission)
        if not grant.is_of_all_projects:
            message = "the key is for single projects; what belongs to the organization needs one for all (*)"
            raise Refusal("Forbidden", message)
        return Place(key.org, "", key.name, grant)

    def enter_projects(self, key: AccessKey, permission: str) -> Place:
        """The place of a list through all projects of the key; its grant says which those are.

        Raises `Refusal` `Forbidden` when the key lacks the permission.
        """
        return Place(key.org, "", key.name, self._granted(key, permission))

    def _granted(self, key: AccessKey, permission: str) -> Grant:
        if not allows(key.permissions, permission):
            raise Refusal("Forbidden", f"the key lacks the permission {permission}")
        return Grant(key.permissions, key.projects, key.expires_at, self._rate_of(key))

    def _rate_of(self, key: AccessKey) -> Rate:
        return Rate(key.requests_per_second or self._rate.per_second, key.burst or self._rate.burst)
