"""Kind `Environment`: versioned tasks and their grader, for evaluations (NODQ-08, NODQ-104)."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from nodus_core.kernel.errors import Cause
from nodus_core.resources.columns import AGE, NAME, Column, Shown, pick
from nodus_core.resources.fields import (
    Image,
    Label,
    Prompt,
    Revision,
    Script,
    Spec,
    Str,
    at_most,
    not_blank,
    problem,
)
from nodus_core.resources.patch import same

MOST_SPLITS = 20
MOST_ANSWER = 4_096
MOST_TASKS = 2_500
"""Tasks of one split: with their answers, they stay below the values that a request's body may have."""


class EnvironmentTask(Spec):
    """One task: what the agent is asked, and what only the grader is told of the answer."""

    id: Label = Field(description="Name of the task, which no other of its split has.")
    prompt: Annotated[Prompt, not_blank] = Field(
        description="What the agent is asked; not blank, at most 256 KiB."
    )
    answer: Annotated[Str, at_most(MOST_ANSWER)] | None = Field(
        default=None,
        description="What only the grader is told of the right answer; at most 4 KiB. Left out: nothing.",
    )


class Grader(Spec):
    """The program that judges an answer, in a sandbox of its own."""

    image: Image = Field(description="Image of the grader's sandbox.")
    command: Script = Field(
        description="Shell command that judges: it is given the task's id, the agent's answer and the task's own, and "
        "prints a verdict, a reward and the evidence as JSON. At most 64 KiB."
    )


def _distinct(tasks: list[EnvironmentTask]) -> list[EnvironmentTask]:
    if len({task.id for task in tasks}) < len(tasks):
        raise problem("names a task twice")
    return tasks


Tasks = Annotated[
    list[EnvironmentTask], Field(min_length=1, max_length=MOST_TASKS), AfterValidator(_distinct)
]


class EnvironmentSpec(Spec):
    """Tasks and their grader under a version, for evaluations."""

    version: Revision = Field(
        description="Name of this content. What is published under it never changes: what changes gets another version."
    )
    image: Image | None = Field(
        default=None, description="Image of the sandboxes in which the agent works on the tasks."
    )
    splits: Annotated[dict[Label, Tasks], Field(min_length=1, max_length=MOST_SPLITS)] = Field(
        description="The tasks, by the name of their split (a label, for instance `test`)."
    )
    grader: Grader = Field(description="What judges the answers.")

    @classmethod
    def changed(cls, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Cause]:
        """What is published under a version never changes."""
        if old.get("version") == new.get("version") and not same(old, new):
            yield Cause(
                "spec.version", "is published and its content is fixed: give what changed another version"
            )


def _splits(shown: Shown) -> str:
    splits: dict[str, list[Any]] = pick(shown, "spec.splits") or {}
    return ",".join(f"{name}={len(tasks)}" for name, tasks in splits.items())


COLUMNS = (
    NAME,
    Column("Version", "spec.version", "Under which its tasks are published."),
    Column("Tasks", _splits, "Tasks of each split."),
    Column("Image", "spec.image", "Image of the sandboxes in which the agent works."),
    AGE,
    Column("Grader", "spec.grader.image", "Image of the grader's sandbox.", priority=1),
)
