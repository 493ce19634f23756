"""Kind `Sandbox`: a machine of one's own (NODQ-62, NODQ-63, NODQ-66, NODQ-70, NODQ-100)."""

from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nodus_core.resources.columns import AGE, NAME, Column, dollars
from nodus_core.resources.durations import between
from nodus_core.resources.fields import Image, Money, Spec, Str, Whole, as_texts, misplaced, number, problem
from nodus_core.resources.workspace import Continuity, Env, Network, Secrets

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

SMALLEST = Decimal("0.25")
SMALLEST_MEMORIES = (Decimal("0.5"), Decimal(1), Decimal(2))
"""The smallest machine takes memory in steps that grow."""


def _cpu(value: str) -> str:
    if Decimal(value) not in (SMALLEST, *PAIRS):
        raise problem(f"must be one of {', '.join(map(str, (SMALLEST, *PAIRS)))} processors")
    return value


def _no_gpu(value: int) -> int:
    if value:
        raise PydanticCustomError("gpu_unavailable", "must be 0: sandboxes have no GPU")
    return value


Number = Annotated[str, BeforeValidator(number)]


class Resources(Spec):
    """Processors, and memory in GiB, a pair that there is; both or none (1 and 2 without a word)."""

    cpu: Annotated[Number, AfterValidator(_cpu)]
    memory: Number
    gpu: Annotated[Whole, Field(ge=0), AfterValidator(_no_gpu)] | None = None

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
    """`spec` of a Sandbox as written."""

    image: Image | None = None
    resources: Resources | None = None
    idle_timeout: Annotated[Str, AfterValidator(between("1m", "30d"))] | None = None
    ttl: Annotated[Str, AfterValidator(between("1m", "365d"))] | None = None
    network: Network | None = None
    env: Env | None = None
    secrets: Secrets | None = None
    continuity: Continuity | None = None
    max_cost_usd: Money | None = Field(default=None, alias="maxCostUSD")

    @classmethod
    def as_stored(cls, spec: dict[str, Any]) -> dict[str, Any]:
        stored = as_texts(spec, "maxCostUSD")
        if "resources" in stored:
            stored = {**stored, "resources": as_texts(stored["resources"], "cpu", "memory")}
        return stored


COLUMNS = (
    NAME,
    Column("Status", "status.phase", "Pending, Running, Paused or Deleted."),
    Column("CPU", "spec.resources.cpu", "Processors."),
    Column("Memory", "spec.resources.memory", "GiB of memory."),
    Column("Disk", "status.disk", "Size of the disk and what is used of it."),
    Column("Idle-Timeout", "spec.idleTimeout", "After how much idle time it is stopped."),
    Column("Cost", dollars("status.costUSD"), "What it has cost."),
    AGE,
    Column("Image", "spec.image", "Image of the sandbox.", priority=1),
    Column("Egress", "spec.network.egress.policy", "What commands may reach.", priority=1),
)
