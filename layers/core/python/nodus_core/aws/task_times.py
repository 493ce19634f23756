"""When an ECS task's time began to cost, as `DescribeTasks` and the events of its end tell it."""

from collections.abc import Mapping
from typing import Any


def began_of(task: Mapping[str, Any]) -> Any:
    """The moment, as it is written there: Fargate counts from the pull of a task's image on, to its end.

    One that stopped before its image was pulled has cost nothing. None: it is not told.
    """
    return task.get("pullStartedAt") or task.get("startedAt") or task.get("stoppedAt")
