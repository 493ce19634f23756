"""Kind `AgentRun`: one task with an agent (catalogue: *AgentRun admission and lifecycle*)."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from nodus_core.kernel.times import stamp
from nodus_core.resources.agent import LARGEST_COUNT
from nodus_core.resources.checks import check, whole
from nodus_core.resources.columns import AGE, NAME, Column, Shown, dollars, pick, preview
from nodus_core.resources.durations import DURATION, duration
from nodus_core.resources.fields import Label, Name, Prompt, Spec, Str, Whole, misplaced, not_blank, problem
from nodus_core.resources.inference_source import ModelSpec

MOST_DEPENDENCIES = 100

INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def deadline(text: str, now: datetime) -> datetime:
    """The moment that `spec.deadline` means: an instant with a zone, or a duration from `now` (NODQ-21).

    Raises `ValueError` with words for people.
    """
    span = duration(text)
    if span is not None:
        return now + span
    if INSTANT.fullmatch(text) is None:
        raise ValueError(
            "must be a time with a zone such as 2030-01-01T00:00:00Z, or a duration such as 2h or 30m"
        )
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is no date and time that exists") from None


def with_moment(spec: dict[str, Any], admitted: datetime) -> dict[str, Any]:
    """A checked spec whose deadline is a moment in UTC, counted from the run's admission (NODQ-21, FLD-17)."""
    if "deadline" not in spec:
        return spec
    text = stamp(deadline(spec["deadline"], admitted))
    return {**spec, "deadline": text.replace(".000Z", "Z")}


@check(pattern=whole(DURATION, INSTANT), minLength=2, example="2h")
def _deadline(value: str) -> str:
    try:
        deadline(value, datetime(2000, 1, 1, tzinfo=UTC))
    except ValueError as error:
        raise problem(str(error)) from None
    return value


class AgentRunSpec(Spec):
    """One task with an agent; it never changes once it is admitted."""

    agent: Name = Field(
        description="Name of the Agent that works, of the same project. The run keeps the settings that the agent "
        "has when the run is created."
    )
    input: Annotated[Prompt, not_blank] = Field(
        description="The task, which is the run's first prompt; not blank, at most 256 KiB."
    )
    model: ModelSpec | None = Field(
        default=None,
        description="Where the run's inference comes from, instead of all that the agent's `model` says. The agent's "
        "cost cap stays. Left out: the agent's.",
    )
    keep_alive: bool | None = Field(
        default=None,
        description="Whether the run waits for messages after each turn instead of ending; its sandbox stays, and "
        "costs. Left out: false.",
    )
    deadline: Annotated[Str, _deadline] | None = Field(
        default=None,
        description="When a run that is not done is stopped and fails with DeadlineExceeded: a moment with a zone, or "
        "a duration from the run's creation, which is stored as a moment. It lies ahead, by ten years at most. "
        "Left out: never.",
    )
    parallelism: Annotated[Whole, Field(ge=0, le=LARGEST_COUNT)] | None = Field(
        default=None,
        description="Subagents that work at the same time, within the agent's `maxParallelAgents`. 0 or left out: as "
        "many as the sandbox and the cost cap bear. Runs have no subagents yet.",
    )
    group: Name | None = Field(
        default=None,
        description="Name of the AgentGroup whose member the run is. Not available yet: such a run is refused.",
    )
    task_key: Label | None = Field(
        default=None,
        description="Name of the run's task in its group, where no other has it. Only with `group`.",
    )
    depends_on: Annotated[list[Label], Field(max_length=MOST_DEPENDENCIES)] | None = Field(
        default=None,
        description="Task keys of members of the group that must have succeeded before the run starts. Only with "
        "`group`.",
    )

    @model_validator(mode="after")
    def _in_a_group(self) -> Self:
        if self.group is None:
            for field, value in (("taskKey", self.task_key), ("dependsOn", self.depends_on)):
                if value is not None:
                    raise misplaced(field, "goes only with spec.group")
        return self


def _latest_model(shown: Shown) -> str:
    turns: list[Any] = pick(shown, "status.turns") or []
    model = pick(turns[-1], "model") if turns else None
    return str(model or pick(shown, "spec.model.name") or "")


COLUMNS = (
    NAME,
    Column("Phase", "status.phase", "Queued, Running, Waiting, Succeeded, Failed or Cancelled."),
    Column("Reason", "status.reason", "Why it waits or how it ended."),
    Column("Model", _latest_model, "Model of the latest turn."),
    Column("Cost", dollars("status.cost.totalUSD"), "What it has spent on models."),
    Column("Cap", dollars("status.cost.limitUSD"), "What it may spend on models."),
    AGE,
    Column("Compute", dollars("status.cost.computeUSD"), "What its sandboxes have cost.", priority=1),
    Column("Agent", "spec.agent", "The agent that works.", priority=1),
    Column("Sandbox", "status.sandbox.phase", "Phase of its sandbox.", priority=1),
    Column("Input", preview("spec.input"), "The beginning of the task.", priority=1),
)
