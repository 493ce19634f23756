"""The use cases behind the API, built once per process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from nodus_core.access.door import Door, Place
from nodus_core.conversations.admission import Admission
from nodus_core.conversations.batches import Batches
from nodus_core.conversations.budgets import Budgets
from nodus_core.conversations.control import Control
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.groups import Groups
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.listing import Listing
from nodus_core.conversations.messages import Messages
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.reading import Reading
from nodus_core.conversations.rehearsal import Rehearsal
from nodus_core.conversations.resolving import Resolving
from nodus_core.conversations.secrets import Secrets
from nodus_core.conversations.shelf import Outcome, Shelf
from nodus_core.conversations.stepping import Stepping
from nodus_core.conversations.team import Team
from nodus_core.conversations.watching import LONGEST_WINDOW_S, Watching
from nodus_core.journal.access import Access
from nodus_core.journal.ports import Clock, Ids, Schedules
from nodus_core.journal.vault import Vault
from nodus_core.resources.deletion import Preconditions
from nodus_core.resources.kinds import KINDS
from nodus_core.resources.manifest import Manifest


@dataclass(frozen=True)
class Verbs:
    """What can be done with the objects of one kind, whatever it is."""

    create: Callable[[Place, Manifest, Promise | None], Outcome]
    apply: Callable[[Place, Manifest], Outcome]
    update: Callable[[Place, Manifest], Outcome]
    patch: Callable[[Place, str, Mapping[str, Any]], Outcome]
    delete: Callable[[Place, str, Preconditions], Outcome]

    @classmethod
    def of(cls, cases: Definitions) -> Self:
        return cls(cases.create, cases.apply, cases.update, cases.patch, cases.delete)

    @classmethod
    def of_runs(cls, admission: Admission, control: Control) -> Self:
        return cls(admission.admit_run, admission.apply, admission.update, admission.patch, control.delete)


@dataclass(frozen=True)
class Service:
    """What the routes call."""

    door: Door
    verbs: Mapping[str, Verbs]
    admission: Admission
    batches: Batches
    control: Control
    messages: Messages
    resolving: Resolving
    reading: Reading
    listing: Listing
    watching: Watching
    stepping: Stepping
    team: Team
    clock: Clock
    rehearse: Callable[[], "Service"]
    """The same use cases over ports that keep nothing, for one call."""

    @classmethod
    def over(
        cls,
        shelf: Shelf,
        vault: Vault,
        kicks: Kicks,
        schedules: Schedules,
        ids: Ids,
        *,
        watch_window_s: float = LONGEST_WINDOW_S,
    ) -> Self:
        """The use cases over these ports. `watch_window_s`: how long the answer to a watch may wait."""
        journal, clock, reading = shelf.journal, shelf.clock, Reading(shelf)
        admission, control = Admission(shelf, kicks.executions, schedules, ids), Control(shelf, kicks)

        def rehearse() -> "Service":
            ports = Rehearsal.of(shelf, ids)
            return cls.over(ports.shelf, ports.vault, ports.kicks, ports.schedules, ids)

        return cls(
            door=Door(Access(journal.writer), clock),
            verbs={
                **{kind.name: Verbs.of(Definitions(shelf, ids, kind.name)) for kind in KINDS},
                "AgentGroup": Verbs.of(Groups(shelf, ids)),
                "AgentRun": Verbs.of_runs(admission, control),
                "Budget": Verbs.of(Budgets(shelf, ids)),
                "Secret": Verbs.of(Secrets(shelf, ids, vault=vault)),
            },
            admission=admission,
            batches=Batches(admission),
            control=control,
            messages=Messages(shelf, kicks),
            resolving=Resolving(shelf, kicks),
            reading=reading,
            listing=Listing(reading),
            watching=Watching(reading, watch_window_s),
            stepping=Stepping(shelf),
            team=Team(reading),
            clock=clock,
            rehearse=rehearse,
        )
