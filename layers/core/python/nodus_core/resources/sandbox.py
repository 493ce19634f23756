"""Kind `Sandbox`: a machine of one's own (NODQ-62, NODQ-63, NODQ-66, NODQ-70, NODQ-100)."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from nodus_core.kernel.errors import Cause
from nodus_core.resources.columns import AGE, NAME, Column, Shown, dollars, pick
from nodus_core.resources.durations import between
from nodus_core.resources.fields import Image, Money, Number, Spec, Str, Whole, as_texts, misplaced, problem
from nodus_core.resources.patch import same
from nodus_core.resources.workspace import Continuity, Env, Network, Secrets, check_variables

_STEP = Decimal(1)
PAIRS: dict[Decimal, tuple[Decimal, Decimal, Decimal]] = {
    Decimal("0.5"): (Decimal(1), Decimal(4), _STEP),
    Decimal(1): (Decimal(2), Decimal(8), _STEP),
    Decimal(2): (Decimal(4), Decimal(16), _STEP),
    Decimal(4): (Decimal(8), Decimal(30), _STEP),
    Decimal(8): (Decimal(16), Decimal(60), Decimal(4)),
    Decimal(16): (Decimal(32), Decimal(120), Decimal(8)),
}
"""Processors, and the memory in GiB that goes with them on Fargate: least, most, step."""

DEFAULT_SIZE = ("1", "2")
"""Processors, and memory in GiB, of a Sandbox that says nothing."""

SMALLEST = Decimal("0.25")
SMALLEST_MEMORIES = (Decimal("0.5"), Decimal(1), Decimal(2))
"""The smallest machine takes memory in steps that grow."""


def _cpu(value: str) -> str:
    if Decimal(value) not in (SMALLEST, *PAIRS):
        raise problem(f"must be one of {', '.join(map(str, (SMALLEST, *PAIRS)))} processors")
    return value


MOST_GPUS = 16
"""Of one machine, whichever a deployment has."""


class Resources(Spec):
    """The size of a machine: processors, and memory that goes with them."""

    cpu: Annotated[Number, AfterValidator(_cpu)] = Field(
        description="Processors, as a text or a number: 0.25, 0.5, 1, 2, 4, 8 or 16."
    )
    memory: Number = Field(
        description="Memory in GiB, as a text or a number: two to eight times the processors (30, 60 and 120 at most "
        "with 4, 8 and 16), in steps of 1, of 4 with 8 processors, of 8 with 16; 0.5, 1 or 2 with 0.25 processors."
    )
    gpu: Annotated[Whole, Field(ge=0, le=MOST_GPUS)] | None = Field(
        default=None,
        description="How many GPUs. 0, also when left out, where the deployment has none; more than its machines have are "
        "refused with GPUUnavailable.",
    )

    @model_validator(mode="after")
    def _pair(self) -> Self:
        cpu, memory = Decimal(self.cpu), Decimal(self.memory)
        if cpu == SMALLEST:
            if memory not in SMALLEST_MEMORIES:
                raise misplaced("memory", "must be 0.5, 1 or 2 GiB with 0.25 processors")
            return self
        least, most, step = PAIRS[cpu]
        if not least <= memory <= most or memory % step:
            raise misplaced(
                "memory", f"must be {least} to {most} GiB in steps of {step} with {cpu} processors"
            )
        return self


class SandboxSpec(Spec):
    """A machine of one's own."""

    image: Image | None = Field(default=None, description="Image of the sandbox.")
    resources: Resources | None = Field(
        default=None, description="Its size. Left out: 1 processor and 2 GiB of memory."
    )
    idle_timeout: Annotated[Str, between("1m", "30d")] | None = Field(
        default=None, description="After how much time without use it is stopped: from 1m to 30d."
    )
    ttl: Annotated[Str, between("1m", "365d")] | None = Field(
        default=None, description="After how much time from its creation it is deleted: from 1m to 365d."
    )
    network: Network | None = Field(
        default=None, description="What commands in it may reach. Left out: nothing."
    )
    env: Env | None = Field(
        default=None,
        description="Environment variables of its commands, each named once; at most 128 KiB together.",
    )
    secrets: Secrets | None = Field(
        default=None,
        description="Fields of the project's Secrets that commands see as environment variables, each named once. "
        "The Sandbox keeps the values that they have when it is made.",
    )
    continuity: Continuity | None = Field(
        default=None, description="What of its files is saved. Left out: nothing."
    )
    max_cost_usd: Money | None = Field(
        default=None,
        alias="maxCostUSD",
        description="What it may cost in all, in US dollars: more than 0, at most 100,000, six decimals; at that it is "
        "stopped. Left out: there is no cap.",
    )

    @model_validator(mode="after")
    def _variables(self) -> Self:
        check_variables(self.env, self.secrets)
        return self

    @classmethod
    def changed(cls, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Cause]:
        """A machine is what it was asked for as: another one is another Sandbox."""
        for field in sorted(old.keys() | new.keys()):
            if not same({field: old.get(field)}, {field: new.get(field)}):
                yield Cause(f"spec.{field}", "is immutable: delete the Sandbox and make a new one")

    @property
    def size(self) -> tuple[str, str]:
        """Processors, and memory in GiB."""
        return (self.resources.cpu, self.resources.memory) if self.resources else DEFAULT_SIZE

    @property
    def gpus(self) -> int:
        """How many GPUs it asks for."""
        return (self.resources.gpu or 0) if self.resources else 0

    @classmethod
    def as_stored(cls, spec: dict[str, Any]) -> dict[str, Any]:
        stored = as_texts(spec, "maxCostUSD")
        if "resources" in stored:
            stored = {**stored, "resources": as_texts(stored["resources"], "cpu", "memory")}
        return stored


def _run(shown: Shown) -> str | None:
    """The name of the run that a sandbox belongs to."""
    owners = pick(shown, "metadata.ownerReferences")
    return pick(owners[0], "name") if owners else None


COLUMNS = (
    NAME,
    Column(
        "Status", "status.phase", "Pending, Running, Paused, or Deleted for one that a run has let go of."
    ),
    Column("CPU", "status.resources.cpu", "Processors."),
    Column("Memory", "status.resources.memory", "GiB of memory."),
    Column("Disk", "status.disk", "Size of the disk and what is used of it."),
    Column("Idle-Timeout", "spec.idleTimeout", "After how much idle time it is stopped."),
    Column("Cost", dollars("status.costUSD"), "What it has cost."),
    Column("Run", _run, "The run that it belongs to; none for one's own.", priority=1),
    AGE,
    Column("Image", "spec.image", "Image of the sandbox.", priority=1),
    Column("Egress", "spec.network.egress.policy", "What commands may reach.", priority=1),
    Column("Last-Save", "status.lastSave.state", "Saved, Saving or Incomplete.", priority=1),
    Column("Saved", "status.lastSave.savedAt", "When the last complete save was made.", "date", priority=1),
)
