"""Kind `AgentGroup`: many runs of one agent under common limits (catalogue: *AgentGroup*, *Evaluation of an agent*)."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

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
    """How much of the group is at work."""

    max_active: Annotated[Whole, Field(ge=1, le=MOST_ACTIVE)] | None = Field(
        default=None,
        description="Members that work at the same time; can be changed while they do. Left out: 10.",
    )
    max_pending: Annotated[Whole, Field(ge=1, le=MOST_PENDING)] | None = Field(
        default=None,
        description="Unfinished members that the group takes; runs beyond are refused. Left out: 10,000.",
    )
    max_cost_usd: Money | None = Field(
        default=None,
        alias="maxCostUSD",
        description="The same as `spec.maxCostUSD`, where it is stored; another amount beside that one is refused.",
    )


class EnvironmentVersion(Spec):
    """An Environment as it was published under one version."""

    name: Name = Field(description="Name of the Environment, of the same project.")
    version: Revision = Field(description="The version, which must be the one that is published.")


class Evaluation(Spec):
    """A fixed batch of tasks of an Environment, run and graded by the server."""

    environment: EnvironmentVersion = Field(description="Where the tasks come from, and their grader.")
    split: Label | None = Field(
        default=None, description=f"The split that the tasks are taken from. Left out: {DEFAULT_SPLIT}."
    )
    tasks: Annotated[Whole, Field(ge=1, le=MOST_CASES)] | None = Field(
        default=None,
        description=f"How many of its tasks are run; more than it has are refused. Left out: {DEFAULT_TASKS}.",
    )
    repetitions: Annotated[Whole, Field(ge=1, le=MOST_CASES)] | None = Field(
        default=None,
        description="How often each task is run; tasks times repetitions are 100 at most. Left out: 1.",
    )
    seed: Annotated[Whole, Field(ge=0, le=MOST_SEED)] | None = Field(
        default=None,
        description="What the choice of tasks follows from: the same one, the same. Left out: 0.",
    )
    timeout: Annotated[Str, between("1m", "24h")] | None = Field(
        default=None,
        description="How long all of it may take from the group's creation on, grading included: from 1m to 24h. "
        "Left out: 30m.",
    )

    @model_validator(mode="after")
    def _cases(self) -> Self:
        cases = (self.tasks or DEFAULT_TASKS) * (self.repetitions or 1)
        if cases > MOST_CASES:
            raise problem(f"asks for {cases} cases (tasks times repetitions), at most {MOST_CASES} are taken")
        return self


class AgentGroupSpec(Spec):
    """Many runs of one agent under common limits."""

    agent: Name = Field(
        description="Name of the Agent of all members, of the same project; it must be there, and never changes."
    )
    limits: Limits | None = Field(default=None, description="How many members work, and how many may wait.")
    max_cost_usd: Money | None = Field(
        default=None,
        alias="maxCostUSD",
        description="What all members together may spend on models of Nodus, in US dollars: more than 0, at most "
        "100,000, six decimals. It can be raised or removed, not lowered. Left out: there is no cap.",
    )
    sealed: bool | None = Field(
        default=None,
        description="`true`: the group takes no more runs and ends with its last member; this cannot be undone. Left "
        "out: false.",
    )
    evaluation: Evaluation | None = Field(
        default=None,
        description="Makes the group an evaluation, whose members the server makes of an Environment's tasks; it "
        "never changes.",
    )

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
