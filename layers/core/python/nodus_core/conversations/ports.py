"""What the worker of a line needs from outside, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from nodus_core.conversations.context import ModelChoice
from nodus_core.conversations.sources import NOTHING_ALLOWED, Allowed, Downloads, Repositories
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.target import Target
from nodus_core.journal.archives import Archives
from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads
from nodus_core.journal.ports import Bell, Clock, Ids, SandboxTasks
from nodus_core.journal.vault import Vault
from nodus_core.resources.families import Family


class Models(Protocol):
    """The models that the operator offers, and the calls to them."""

    def target(self, choice: ModelChoice, family: str | None) -> Target:
        """Where a turn's calls go; `family` is the router's choice for managed models. Raises `ModelNotOffered`."""
        ...

    def families(self, choice: ModelChoice) -> tuple[Family, ...]:
        """Managed families that the choice allows and the operator has configured."""
        ...

    def router(self) -> Target:
        """Where routing calls go."""
        ...

    def gate(self, target: Target) -> str:
        """A name of the endpoint and key that the target's calls share: those wait together (FLD-04)."""
        ...

    def call(self, request: ModelRequest, key: str | None = None) -> ModelReply:
        """One call; with the user's own `key` where the target asks for one. Raises the errors of `inference.errors`."""
        ...


@dataclass(frozen=True)
class Ports:
    """`link` holds the variables that tell a sandbox's daemon where the link is (docs/protocols.md §2), `allowed` is what
    the operator lets projects read."""

    journal: Journal
    payloads: Payloads
    archives: Archives
    models: Models
    tasks: SandboxTasks
    bell: Bell
    clock: Clock
    ids: Ids
    vault: Vault
    repositories: Repositories
    downloads: Downloads
    link: Mapping[str, str]
    allowed: Allowed = NOTHING_ALLOWED


@dataclass(frozen=True)
class Directive:
    """What the line machine does next. `again`: at once. `soon`: at `at`. `rest`, `done`: the execution ends."""

    next: Literal["again", "soon", "rest", "done"]
    at: datetime | None = None


AGAIN = Directive("again")
REST = Directive("rest")
DONE = Directive("done")
