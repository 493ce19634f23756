"""Kind `AgentGroup`: many runs of one agent under common limits (catalogue: *AgentGroup*, *Evaluation of an agent*)."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from nodus_core.kernel.errors import Cause
from nodus_core.resources.columns import AGE, NAME, Column, Shown, dollars, pick
from nodus_core.resources.durations import between
from nodus_core.resources.fields import (
    Label,
    Money,
    Name,
    Revision,
    Spec,
    Str,
    Whole,
    as_texts,
    misplaced,
    money,
    problem,
)
from nodus_core.resources.patch import same

LONGEST_NAME = 189
"""Characters of a group's name: its members are called `<group>-<taskKey>` and fit into 253 (NODQ-40)."""

MOST_ACTIVE = 1_000
MOST_PENDING = 10_000
"""Members at work at once, and unfinished ones, that a group may allow (NOD-310, NODQ-06)."""

MOST_CASES = 100
"""Cases of one evaluation, repetitions included (NOD-372)."""

DEFAULT_SPLIT = "test"
DEFAULT_TASKS = 10
MOST_SEED = 2**31 - 1


class Limits(Spec):
    """How much of the group is at work. Without a word: 10 members at once, 10,000 unfinished ones (NODQ-06)."""

    max_active: Annotated[Whole, Field(ge=1, le=MOST_ACTIVE)] | None = None
    max_pending: Annotated[Whole, Field(ge=1, le=MOST_PENDING)] | None = None
    max_cost_usd: Money | None = Field(default=None, alias="maxCostUSD")


class EnvironmentVersion(Spec):
    """An Environment as it was published under one version."""

    name: Name
    version: Revision


class Evaluation(Spec):
    """A fixed batch of tasks of an Environment (NODQ-07, NODQ-09); 30 minutes without a word."""

    environment: EnvironmentVersion
    split: Label | None = None
    tasks: Annotated[Whole, Field(ge=1, le=MOST_CASES)] | None = None
    repetitions: Annotated[Whole, Field(ge=1, le=MOST_CASES)] | None = None
    seed: Annotated[Whole, Field(ge=0, le=MOST_SEED)] | None = None
    timeout: Annotated[Str, AfterValidator(between("1m", "24h"))] | None = None

    @model_validator(mode="after")
    def _cases(self) -> Self:
        cases = (self.tasks or DEFAULT_TASKS) * (self.repetitions or 1)
        if cases > MOST_CASES:
            raise problem(f"asks for {cases} cases (tasks times repetitions), at most {MOST_CASES} are taken")
        return self


class AgentGroupSpec(Spec):
    """`spec` of an AgentGroup as written; defaults are never stored."""

    agent: Name
    limits: Limits | None = None
    max_cost_usd: Money | None = Field(default=None, alias="maxCostUSD")
    sealed: bool | None = None
    evaluation: Evaluation | None = None

    @model_validator(mode="after")
    def _one_cap(self) -> Self:
        other = self.limits.max_cost_usd if self.limits else None
        if other is not None and self.max_cost_usd is not None and money(other) != money(self.max_cost_usd):
            raise misplaced("maxCostUSD", "differs from spec.limits.maxCostUSD: give one of them")
        return self

    @classmethod
    def as_stored(cls, spec: dict[str, Any]) -> dict[str, Any]:
        """The cap stands in `spec.maxCostUSD`, wherever it was written (NODQ-05)."""
        limits: dict[str, Any] = dict(spec.get("limits") or {})
        cap = limits.pop("maxCostUSD", None)
        stored = (
            spec if cap is None else {**spec, "limits": limits, "maxCostUSD": spec.get("maxCostUSD", cap)}
        )
        if cap is not None and not limits:
            stored = {name: value for name, value in stored.items() if name != "limits"}
        return as_texts(stored, "maxCostUSD")

    @classmethod
    def changed(cls, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Cause]:
        """The agent and the tasks stay (NODQ-38), a seal stays (NOD-352), the cap may only grow (NOD-346)."""
        for field in ("agent", "evaluation"):
            if not same(old.get(field), new.get(field)):
                yield Cause(f"spec.{field}", "cannot change once the group exists: make another group")
        if old.get("sealed") and not new.get("sealed"):
            yield Cause("spec.sealed", "cannot be undone: a sealed group takes no more runs")
        before, after = old.get("maxCostUSD"), new.get("maxCostUSD")
        if after is not None and (before is None or money(after) < money(before)):
            least = "there is none" if before is None else f"it is {before}"
            yield Cause("spec.maxCostUSD", f"can be raised or removed, not lowered: {least}")


def _runs(shown: Shown) -> str | None:
    counts = pick(shown, "status.counts")
    return None if counts is None else f"{counts.get('succeeded', 0)}/{sum(counts.values())}"


COLUMNS = (
    NAME,
    Column("Phase", "status.phase", "Running, Succeeded, Failed, Cancelling or Cancelled."),
    Column("Runs", _runs, "Members that succeeded, out of all."),
    Column("Active", "status.counts.active", "Members at work.", "integer"),
    Column("Cost", dollars("status.cost.totalUSD"), "What its members have spent on models."),
    AGE,
    Column("Agent", "spec.agent", "The agent of all members.", priority=1),
    Column("Cap", dollars("spec.maxCostUSD"), "What the group may spend on models.", priority=1),
)
