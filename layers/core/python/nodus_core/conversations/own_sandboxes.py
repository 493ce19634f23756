"""Sandboxes of one's own: each has a line, which keeps its machine (`kernel.machines`, decision 20)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.availability import check_sandbox
from nodus_core.conversations.beginnings import begin
from nodus_core.conversations.control import Control
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.images import Images, Pinned
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.machine import CPU_UNITS, Machine
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.races import look_again
from nodus_core.conversations.secret_variables import pinned
from nodus_core.conversations.shelf import Outcome, head_of, scope_of
from nodus_core.journal import lines
from nodus_core.journal.objects import projection as projected
from nodus_core.journal.objects import versioned
from nodus_core.journal.ports import Schedules
from nodus_core.journal.store import Operation
from nodus_core.kernel import ids, machine_status, machines
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.objects import SANDBOX, Conversation, Object
from nodus_core.kernel.sandboxes import SecretVariable
from nodus_core.resources.defaults import DEFAULT_EGRESS
from nodus_core.resources.deletion import ANY, Preconditions
from nodus_core.resources.durations import duration
from nodus_core.resources.manifest import Manifest, check_spec
from nodus_core.resources.refusals import invalid
from nodus_core.resources.sandbox import SandboxSpec
from nodus_core.sandboxes.gpus import Gpus

DELETED = "Deleted"
"""Reason of a Sandbox that is being removed."""

_MIB_PER_GIB = 1024


@dataclass(frozen=True)
class OwnSandboxes(Definitions):
    """Use cases of Sandboxes. What they are is fixed when they are made; they are started, stopped and deleted."""

    kind: str = SANDBOX
    kicks: Kicks = field(kw_only=True)
    schedules: Schedules = field(kw_only=True)
    images: Images = field(kw_only=True)
    gpus: Gpus = field(kw_only=True, default_factory=Gpus)
    """What there is of machines with GPUs."""

    def begun(self, manifest: Manifest) -> dict[str, Any]:
        spec = _spec(manifest)
        return machine_status.made(*spec.size, spec.gpus)

    def added(self, obj: Object, manifest: Manifest) -> Sequence[Operation]:
        """Nothing yet. Raises `Refusal` `NotAvailable` for what cannot be honoured yet, `GPUUnavailable`, `Invalid` for a
        run's name or an image that cannot be used."""
        if ids.is_runs_sandbox(manifest.name):
            cause = Cause("metadata.name", "is how a run's sandbox is called: take another name")
            raise invalid(SANDBOX, manifest.name, (cause,))
        spec = _spec(manifest)
        problem = self.gpus.problem(spec.gpus, *map(Decimal, spec.size))
        if problem is not None:
            cause = Cause("spec.resources.gpu", problem)
            raise invalid(SANDBOX, manifest.name, (cause,), reason="GPUUnavailable")
        check_sandbox(manifest.name, manifest.spec)
        self.images.pinned(obj.key, _spec(manifest).image)
        return ()

    def commit(self, obj: Object, manifest: Manifest, promised: Promise | None, *more: Operation) -> Outcome:
        """The Sandbox comes with its line."""
        line = self._line(obj, manifest)
        outcome = super().commit(obj, manifest, promised, *more, lines.opening(line, obj.created_at))
        begin(self.kicks.executions, self.schedules, line)
        return outcome

    def delete(self, place: Place, name: str, wanted: Preconditions = ANY) -> Outcome:
        """Ends the machine and removes the Sandbox; it is gone when its machine is. `NotFound`, `Conflict`."""
        check_own(self.shelf.find(place, SANDBOX, name))
        return Control(self.shelf, self.kicks, SANDBOX, DELETED).delete(place, name, wanted)

    def patched(self, old: Object, place: Place, patch: Mapping[str, Any]) -> Manifest:
        """What the patch makes of it. `Conflict` for a run's sandbox."""
        check_own(old)
        return super().patched(old, place, patch)

    def revise(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """One try of a change of its labels. `Conflict` for a run's sandbox."""
        check_own(old)
        return super().revise(old, manifest, exact=exact)

    def start(self, place: Place, name: str) -> tuple[Outcome, bool]:
        """Asks for its machine; returns whether it was wanted to run already. `NotFound`, `Conflict` (NOD-411)."""
        return self._want(place, name, None)

    def stop(self, place: Place, name: str) -> tuple[Outcome, bool]:
        """Ends its machine; returns whether it stood still already. `NotFound`, `Conflict`."""
        return self._want(place, name, machines.STOPPED)

    def _want(self, place: Place, name: str, paused: str | None) -> tuple[Outcome, bool]:

        def attempt() -> tuple[Outcome, bool]:
            obj = self.shelf.find(place, SANDBOX, name)
            check_own(obj)
            with self.shelf.reading(obj):
                head = head_of(self.shelf.journal, obj)
            self._check_stays(obj, head)
            if bool(head.paused) == bool(paused):
                return Outcome(obj, self.shelf.spec(obj)), True
            if paused is None and head.paused == machines.COST_REACHED:
                message = f"Sandbox {name!r} has cost its maxCostUSD and starts no more; make a new one"
                raise Refusal("Conflict", message, kind=SANDBOX, name=name)
            shown = self._wanted(obj, head, paused)
            self.kicks.nudge(obj.uid)
            return Outcome(shown, self.shelf.spec(shown)), False

        return look_again(SANDBOX, name, attempt)

    def _check_stays(self, obj: Object, head: Conversation) -> None:
        if obj.deleted_at is not None or head.stop is not None:
            message = f"Sandbox {obj.key.name!r} is being deleted"
            raise Refusal("Conflict", message, kind=SANDBOX, name=obj.key.name)

    def _wanted(self, obj: Object, head: Conversation, paused: str | None) -> Object:
        show, now = machine_status.stopping if paused else machine_status.starting, self.shelf.clock.now()
        shown = versioned(replace(obj, status=show(obj.status)), now)
        self.shelf.journal.machines.want(head, paused, now, projected(shown, now, over=obj.version))
        return shown

    def _line(self, obj: Object, manifest: Manifest) -> Conversation:
        spec = _spec(manifest)
        secrets = pinned(self.shelf.journal, spec.secrets or (), obj.key)
        ttl = duration(spec.ttl) if spec.ttl else None
        image = self.images.pinned(obj.key, spec.image)
        return Conversation(
            id=obj.uid,
            object=obj.key,
            context=self.shelf.payloads.put(
                scope_of(obj), _machine(spec, image, secrets, self.gpus).to_json()
            ),
            line=lines.first(obj.created_at),
            created_at=obj.created_at,
            cap=ZERO,
            kind=machines.MACHINE,
            deadline=obj.created_at + ttl if ttl else None,
        )


def check_own(obj: Object) -> None:
    """Raises `Refusal` `Conflict` for a run's sandbox: only its run starts, changes and ends it."""
    if obj.owner is None:
        return
    run = obj.owner.name
    message = (
        f"Sandbox {obj.key.name!r} belongs to AgentRun {run!r}, which alone starts, changes and ends it: "
        f"cancel or delete the run (nodus cancel agentrun/{run})"
    )
    raise Refusal("Conflict", message, kind=SANDBOX, name=obj.key.name)


def _spec(manifest: Manifest) -> SandboxSpec:
    spec = check_spec(SANDBOX, manifest.name, manifest.spec)
    if not isinstance(spec, SandboxSpec):
        raise TypeError(f"{manifest.kind} is no Sandbox")
    return spec


def _machine(spec: SandboxSpec, image: Pinned, secrets: tuple[SecretVariable, ...], gpus: Gpus) -> Machine:
    cpu, memory = (Decimal(each) for each in spec.size)
    idle = duration(spec.idle_timeout) if spec.idle_timeout else None
    egress = spec.network.egress if spec.network else None
    return Machine(
        image=image.image,
        pull=image.pull,
        cpu=int(cpu * CPU_UNITS),
        memory=int(memory * _MIB_PER_GIB),
        egress=egress.policy if egress else DEFAULT_EGRESS,
        allow=tuple(egress.allow or ()) if egress else (),
        env={variable.name: variable.value for variable in spec.env or []},
        idle_s=idle.total_seconds() if idle else None,
        most_usd=None if spec.max_cost_usd is None else str(spec.max_cost_usd),
        secrets=secrets,
        state_dir=spec.continuity.state_dir if spec.continuity else None,
        gpus=spec.gpus,
        hourly_usd=str(gpus.hourly(spec.gpus, cpu, memory)) if spec.gpus else None,
    )
