"""The cluster's tasks, as ECS tells them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

_DESCRIBE_AT_ONCE = 100  # the API's limit
_REASON_CHARACTERS = 1024  # AWS takes no more
SANDBOX_ID = "NODUS_SANDBOX_ID"


class CloudUnreachableError(Exception):
    """The emulator does not answer, or not as it should; looking again later may help."""


@dataclass(frozen=True)
class Task:
    """One task.

    Args:
        arn: of the task.
        stopped: it is to end, or has ended.
        variables: NODUS_… variables of its overrides.
        cpu_units: 1024 are one processor; None: not said.
        memory_mib: None: not said.
    """

    arn: str
    stopped: bool
    variables: Mapping[str, str]
    cpu_units: int | None
    memory_mib: int | None

    @property
    def sandbox_id(self) -> str | None:
        """Which sandbox it holds; None: it is no sandbox."""
        return self.variables.get(SANDBOX_ID)


class Cluster:
    """The tasks of one cluster, over boto3's ECS client."""

    def __init__(self, client: Any, name: str) -> None:
        """Keep the client; nothing is asked.

        Args:
            client: `boto3.client("ecs")`.
            name: name or ARN.
        """
        self._client = client
        self.name = name

    def running(self) -> set[str]:
        """ARNs of all tasks that are meant to run.

        Raises:
            CloudUnreachableError: ECS does not answer.
        """
        return {arn for page in self._pages() for arn in page}

    def describe(self, arns: Iterable[str]) -> list[Task]:
        """Those of the tasks that ECS knows.

        Raises:
            CloudUnreachableError: ECS does not answer.
        """
        wanted = list(arns)
        found: list[Task] = []
        for start in range(0, len(wanted), _DESCRIBE_AT_ONCE):
            part = wanted[start : start + _DESCRIBE_AT_ONCE]
            answer = self._ask("describe_tasks", tasks=part)
            found += [_task(item) for item in answer["tasks"]]
        return found

    def stop(self, arn: str, reason: str) -> None:
        """Stop a task; one that has stopped, or that nobody knows any more, is left as it is.

        Raises:
            CloudUnreachableError: ECS does not answer.
        """
        try:
            self._ask("stop_task", task=arn, reason=reason[:_REASON_CHARACTERS])
        except _TaskUnknownError:
            return

    def _pages(self) -> Iterator[list[str]]:
        token: dict[str, str] = {}
        while True:
            answer = self._ask("list_tasks", desiredStatus="RUNNING", **token)
            yield answer["taskArns"]
            if not answer.get("nextToken"):
                return
            token = {"nextToken": answer["nextToken"]}

    def _ask(self, operation: str, **arguments: Any) -> Any:
        try:
            return getattr(self._client, operation)(cluster=self.name, **arguments)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "InvalidParameterException":
                raise _TaskUnknownError(str(error)) from error
            raise CloudUnreachableError(f"{operation} in cluster {self.name}: {error}") from error
        except BotoCoreError as error:
            raise CloudUnreachableError(f"{operation} in cluster {self.name}: {error}") from error


class _TaskUnknownError(CloudUnreachableError):
    """The task that was named is not there."""


def _task(item: Mapping[str, Any]) -> Task:
    return Task(
        arn=item["taskArn"],
        stopped="STOPPED" in (item.get("desiredStatus"), item.get("lastStatus")),
        variables=_variables(item.get("overrides", {}).get("containerOverrides") or ()),
        cpu_units=_number(item.get("cpu")),
        memory_mib=_number(item.get("memory")),
    )


def _variables(overrides: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """NODUS_… variables of the one container that is the sandbox; others are not the daemon's."""
    for container in overrides:
        variables = {entry["name"]: entry["value"] for entry in container.get("environment") or ()}
        if SANDBOX_ID in variables:
            return {name: value for name, value in variables.items() if name.startswith("NODUS_")}
    return {}


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
