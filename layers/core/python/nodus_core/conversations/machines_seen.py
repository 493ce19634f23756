"""The machine behind a name: that of a Sandbox, or one of a run, which is called by its id, RUN_UID-sN.

Everything that people do in a machine finds it here: commands, files, a terminal, a preview.
"""

from dataclasses import dataclass

from nodus_core.access.door import Place
from nodus_core.access.permissions import AGENTRUNS_WRITE, allows
from nodus_core.conversations.context import Context
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.shelf import Shelf, head_of, missing, scope_of
from nodus_core.journal.payloads import Scope
from nodus_core.kernel import ids
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.machine_status import PENDING, STOPPING
from nodus_core.kernel.machines import COST_REACHED
from nodus_core.kernel.objects import AGENT_RUN, SANDBOX, Conversation, Object
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState


@dataclass(frozen=True)
class Seen:
    """What a name stands for.

    `owner` is the Sandbox, or the AgentRun that the sandbox belongs to; `head` is that of the line which keeps its
    machine. `first` and `last` number the machines that the name stands for: all of a Sandbox's, and one of a run's.
    """

    name: str
    owner: Object
    head: Conversation
    first: int
    last: int

    @property
    def scope(self) -> Scope:
        """Where long texts of its machines stand."""
        return scope_of(self.owner)

    @property
    def is_a_runs(self) -> bool:
        """Whether it belongs to a run, which starts and ends it."""
        return self.owner.key.kind == AGENT_RUN

    @property
    def current(self) -> str | None:
        """Id of the machine that its line keeps now; None when none of the name's machines is."""
        kept = self.head.sandbox
        owner = kept and ids.owner_of_sandbox(kept)
        return kept if owner and owner[1] in self.ordinals else None

    @property
    def ordinals(self) -> range:
        """The numbers of its machines, the newest first."""
        return range(self.last, self.first - 1, -1)

    def machine(self, ordinal: int) -> str:
        """Id of one of its machines."""
        return ids.sandbox_id(self.owner.uid, ordinal)


@dataclass(frozen=True)
class MachinesSeen:
    """Finds machines by the names under which people know them."""

    shelf: Shelf

    def find(self, place: Place, name: str) -> Seen:
        """What that name stands for in a project. Raises `Refusal` `NotFound`."""
        of_a_run = ids.owner_of_sandbox(name)
        found = of_a_run and self._of_a_run(place, name, *of_a_run)
        if found:
            return found
        obj = self.shelf.find(place, SANDBOX, name)
        with self.shelf.reading(obj):
            head = head_of(self.shelf.journal, obj)
        return Seen(name, obj, head, 1, head.sandboxes)

    def to_change(self, place: Place, name: str) -> Seen:
        """The same, for who does something in it.

        Raises `Refusal` `Forbidden` where it is a run's and the key may not write runs: what is done there steers the
        run, and can read what it was given.
        """
        seen = self.find(place, name)
        if seen.is_a_runs and not allows(place.grant.permissions, AGENTRUNS_WRITE):
            message = f"Sandbox {name!r} is a run's: the key needs the permission {AGENTRUNS_WRITE}, too"
            raise Refusal("Forbidden", message, kind=SANDBOX, name=name)
        return seen

    def running(self, seen: Seen) -> Sandbox:
        """The machine that runs and takes work. Raises `Refusal` `SandboxNotRunning` (NOD-410, NOD-438)."""
        current = None if seen.head.paused or seen.head.stop else seen.current
        machine = self.shelf.journal.sandbox(current) if current else None
        if machine is None or machine.state is not SandboxState.RUNNING or machine.restore is not None:
            raise Refusal("SandboxNotRunning", _not_running(seen, machine), kind=SANDBOX, name=seen.name)
        return machine

    def settings(self, seen: Seen) -> Machine:
        """What its machine was asked for as."""
        with self.shelf.reading(seen.owner):
            text = self.shelf.payloads.get(seen.scope, seen.head.context)
        return Context.from_json(text).machine if seen.is_a_runs else Machine.from_json(text)

    def _of_a_run(self, place: Place, name: str, conversation: str, ordinal: int) -> Seen | None:
        """A sandbox that a run of the project has or had; None where no run says so."""
        head = self.shelf.journal.conversation(conversation)
        if head is None or head.object.kind != AGENT_RUN or not 0 < ordinal <= head.sandboxes:
            return None
        if (head.object.org, head.object.project) != (place.org, place.project):
            return None
        run = self.shelf.journal.object(head.object)
        if run is None or run.uid != conversation:
            raise missing(SANDBOX, name)
        return Seen(name, run, head, ordinal, ordinal)


def _not_running(seen: Seen, machine: Sandbox | None) -> str:
    if seen.is_a_runs:
        run = f"AgentRun {seen.owner.key.name!r}"
        if machine is not None and (machine.state is SandboxState.REQUESTED or machine.restore is not None):
            return (
                f"Sandbox {seen.name!r} of {run} is Pending and takes nothing yet; wait until it is Running"
            )
        return f"Sandbox {seen.name!r} of {run} is released: nothing can be done in it any more"
    status = seen.owner.status
    phase, reason = status.get("phase", "Pending"), status.get("reason")
    said = f"Sandbox {seen.name!r} is {phase}{f' ({reason})' if reason else ''} and can be asked nothing"
    if reason == COST_REACHED:
        return f"{said}; it has cost its maxCostUSD and starts no more: make a new one"
    if phase == PENDING:
        awaited = f"nodus wait sandbox/{seen.name} --for=phase=Running"
        return f"{said} yet; wait until it is Running ({awaited})"
    if reason == STOPPING:
        return f"{said} any more; wait until it is Paused, then start it (nodus start sandbox/{seen.name})"
    return f"{said}; start it (nodus start sandbox/{seen.name}), and wait until it is Running"
