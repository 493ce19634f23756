"""The use cases behind the API, built once per process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from nodus_core.access.door import Door, Place
from nodus_core.access.grant import DEFAULT_RATE, Rate
from nodus_core.access.identities import Identities
from nodus_core.access.limits import Limits
from nodus_core.access.signed_calls import Judge
from nodus_core.conversations.admission import Admission
from nodus_core.conversations.api_keys import ApiKeys
from nodus_core.conversations.asking import Asking
from nodus_core.conversations.batches import Batches
from nodus_core.conversations.budgets import Budgets
from nodus_core.conversations.connections import Connections
from nodus_core.conversations.control import Control
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.environment_images import EnvironmentImages
from nodus_core.conversations.groups import Groups
from nodus_core.conversations.images import Images, ImageSources
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.listing import Listing
from nodus_core.conversations.logins import Logins
from nodus_core.conversations.machines_seen import MachinesSeen
from nodus_core.conversations.messages import Messages
from nodus_core.conversations.own_sandboxes import OwnSandboxes
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.reading import Reading
from nodus_core.conversations.rehearsal import Rehearsal
from nodus_core.conversations.resolving import Resolving
from nodus_core.conversations.sandbox_commands import SandboxCommands
from nodus_core.conversations.sandbox_files import SandboxFiles
from nodus_core.conversations.sandbox_output import SandboxOutput
from nodus_core.conversations.sandbox_previews import SandboxPreviews
from nodus_core.conversations.sandbox_terminals import SandboxTerminals
from nodus_core.conversations.secrets import Secrets
from nodus_core.conversations.shelf import Outcome, Shelf
from nodus_core.conversations.stepping import Stepping
from nodus_core.conversations.team import Team
from nodus_core.conversations.tenancy import Organizations, Projects
from nodus_core.conversations.watching import LONGEST_WINDOW_S, Watching
from nodus_core.journal.access import Access
from nodus_core.journal.identities import IdentityRows
from nodus_core.journal.ports import Bell, Clock, Ids, Schedules
from nodus_core.journal.rates import Rates
from nodus_core.journal.transfers import Transfers
from nodus_core.journal.vault import Vault
from nodus_core.resources.deletion import Preconditions
from nodus_core.resources.kinds import KINDS
from nodus_core.resources.manifest import Manifest
from nodus_core.sandboxes.gpus import Gpus


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
class Callers:
    """Who may call: AWS's word on identities, what may be asked of it, and the rate of a key that names none."""

    identities: Identities
    judge: Judge
    rate: Rate = DEFAULT_RATE


@dataclass(frozen=True)
class Service:
    """What the routes call."""

    door: Door
    verbs: Mapping[str, Verbs]
    logins: Logins
    admission: Admission
    batches: Batches
    control: Control
    sandboxes: OwnSandboxes
    environment_images: EnvironmentImages
    machines: MachinesSeen
    commands: SandboxCommands
    output: SandboxOutput
    files: SandboxFiles
    terminals: SandboxTerminals
    previews: SandboxPreviews
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
        bell: Bell,
        transfers: Transfers,
        callers: Callers,
        wires: str,
        address: str,
        images: ImageSources | None = None,
        gpus: Gpus | None = None,
        watch_window_s: float = LONGEST_WINDOW_S,
        rehearsed: bool = False,
    ) -> Self:
        """The use cases over these ports.

        `wires`: address of the WebSocket API. `address`: of the HTTP API. `images`: what sandboxes are made of here
        (None: the machine's own tools). `gpus`: what they may have of GPUs (None: nothing). `watch_window_s`: how long the
        answer to a watch may wait. `rehearsed`: the ports keep nothing, so a token that is made works nowhere.
        """
        journal, clock, reading = shelf.journal, shelf.clock, Reading(shelf)
        limits = Limits(Rates(journal.writer), clock)
        keys = ApiKeys(shelf, ids, rate=callers.rate, shows_tokens=not rehearsed)
        pins = Images(shelf, images or ImageSources())
        environment_images = EnvironmentImages(shelf, ids, images=pins)
        gpus = gpus or Gpus()
        sandboxes = OwnSandboxes(shelf, ids, kicks=kicks, schedules=schedules, images=pins, gpus=gpus)
        asking = Asking(journal, bell, clock)
        commands = SandboxCommands(shelf, kicks, asking)
        admission, control = Admission(shelf, kicks.executions, schedules, ids, pins), Control(shelf, kicks)
        door = Door(Access(journal.writer), clock, limits, callers.rate)
        return cls(
            door=door,
            verbs={
                **_definitions(shelf, ids, vault, keys),
                "AgentRun": Verbs.of_runs(admission, control),
                "Sandbox": Verbs.of(sandboxes),
                "EnvironmentImage": Verbs.of(environment_images),
            },
            logins=Logins(keys, IdentityRows(journal.writer), callers.identities, callers.judge, limits),
            admission=admission,
            batches=Batches(admission),
            control=control,
            sandboxes=sandboxes,
            environment_images=environment_images,
            machines=MachinesSeen(shelf),
            commands=commands,
            output=SandboxOutput(commands, asking),
            files=SandboxFiles(MachinesSeen(shelf), asking, transfers, clock, ids),
            terminals=SandboxTerminals(shelf, commands, wires),
            previews=SandboxPreviews(shelf, door, MachinesSeen(shelf), asking, transfers, ids, address),
            messages=Messages(shelf, kicks),
            resolving=Resolving(shelf, kicks),
            reading=reading,
            listing=Listing(reading),
            watching=Watching(reading, watch_window_s),
            stepping=Stepping(shelf),
            team=Team(reading),
            clock=clock,
            rehearse=lambda: cls._rehearsed(
                shelf, ids, callers, wires=wires, address=address, images=pins.sources, gpus=gpus
            ),
        )

    @classmethod
    def _rehearsed(
        cls,
        shelf: Shelf,
        ids: Ids,
        callers: Callers,
        *,
        wires: str,
        address: str,
        images: ImageSources,
        gpus: Gpus,
    ) -> Self:
        ports = Rehearsal.of(shelf, ids)
        return cls.over(
            ports.shelf,
            ports.vault,
            ports.kicks,
            ports.schedules,
            ids,
            bell=ports.bell,
            transfers=ports.transfers,
            callers=callers,
            images=images,
            gpus=gpus,
            wires=wires,
            address=address,
            rehearsed=True,
        )


def _definitions(shelf: Shelf, ids: Ids, vault: Vault, keys: ApiKeys) -> dict[str, Verbs]:
    """The verbs of every kind whose objects only say something."""
    cases: tuple[Definitions, ...] = (
        *(Definitions(shelf, ids, kind.name) for kind in KINDS),
        # Those that keep something beside their objects take the place of the plain ones.
        *(
            Groups(shelf, ids),
            Budgets(shelf, ids),
            Connections(shelf, ids),
            Secrets(shelf, ids, vault=vault),
            keys,
        ),
        *(Organizations(shelf, ids), Projects(shelf, ids, access=Access(shelf.journal.writer))),
    )
    return {each.kind: Verbs.of(each) for each in cases}
