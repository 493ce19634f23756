"""The use cases behind the API, built once per process."""

from dataclasses import dataclass
from typing import Self

from nodus_core.access.door import Door
from nodus_core.conversations.admission import Admission
from nodus_core.conversations.budgets import Budgets
from nodus_core.conversations.control import Control
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.messages import Messages
from nodus_core.conversations.reading import Reading
from nodus_core.conversations.resolving import Resolving
from nodus_core.conversations.secrets import Secrets
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.stepping import Stepping
from nodus_core.journal.access import Access
from nodus_core.journal.ports import Clock, Ids, Schedules
from nodus_core.journal.vault import Vault


@dataclass(frozen=True)
class Service:
    """What the routes call."""

    door: Door
    agents: Definitions
    budgets: Budgets
    secrets: Secrets
    admission: Admission
    control: Control
    messages: Messages
    resolving: Resolving
    reading: Reading
    stepping: Stepping
    clock: Clock

    @classmethod
    def over(cls, shelf: Shelf, vault: Vault, kicks: Kicks, schedules: Schedules, ids: Ids) -> Self:
        """The use cases over these ports."""
        journal, clock = shelf.journal, shelf.clock
        return cls(
            door=Door(Access(journal.writer), clock),
            agents=Definitions(shelf, ids, "Agent"),
            budgets=Budgets(shelf, ids),
            secrets=Secrets(shelf, ids, vault=vault),
            admission=Admission(shelf, kicks.executions, schedules, ids),
            control=Control(shelf, kicks),
            messages=Messages(shelf, kicks),
            resolving=Resolving(shelf, kicks),
            reading=Reading(shelf),
            stepping=Stepping(shelf),
            clock=clock,
        )
