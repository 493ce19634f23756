"""All the tasks of one ECS cluster: which are meant to run, whose they are, how they are, and their end."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.aws.task_reports import report_of
from nodus_core.journal.ports import FoundTask, TaskReport
from nodus_core.kernel.errors import TerminalError
from nodus_core.kernel.ids import is_warm_machine, owner_of_sandbox

REASON_LIMIT = 255


class EcsTaskFleet:
    """`TaskFleet` of one cluster. `client` is botocore's for ECS.

    `definition` is the deployment's own, by family or ARN: this and the families below its name are started by it
    alone, under a sandbox's id.
    """

    def __init__(self, client: Any, cluster: str, definition: str) -> None:
        self._client = client
        self._cluster = cluster
        self._family = _family(definition)

    def pages(self) -> Iterator[Sequence[str]]:
        more: dict[str, str] = {}
        while True:
            with translated(f"listing the tasks of cluster {self._cluster}"):
                answer = self._client.list_tasks(cluster=self._cluster, desiredStatus="RUNNING", **more)
            yield [str(arn) for arn in answer["taskArns"]]
            if not answer.get("nextToken"):
                return
            more = {"nextToken": answer["nextToken"]}

    def whose(self, tasks: Sequence[str]) -> list[FoundTask]:
        return [
            self._found(arn, described)
            for arn, described in self._described(tasks).items()
            if described.get("desiredStatus") != "STOPPED"
        ]

    def states(self, tasks: Sequence[str]) -> dict[str, TaskReport]:
        described = self._described(tasks)
        return {task: report_of(task, described.get(task)) for task in tasks}

    def stop(self, task: str, reason: str) -> None:
        with translated(f"stopping task {task}"):
            try:
                self._client.stop_task(cluster=self._cluster, task=task, reason=reason[:REASON_LIMIT])
            except ClientError as error:
                if not _is_unknown_task(error):
                    raise

    def _described(self, tasks: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        if not tasks:
            return {}
        with translated(f"asking for {len(tasks)} tasks, {tasks[0]} first"):
            answer = self._client.describe_tasks(cluster=self._cluster, tasks=list(tasks))
        strange = [each for each in answer.get("failures") or () if each.get("reason") != "MISSING"]
        if strange:
            # Not known is not gone: nobody may take such a task for one that has ended.
            raise TerminalError(
                f"ECS does not say how {strange[0].get('arn')} is: {strange[0].get('reason')}"
            )
        return {str(each["taskArn"]): each for each in answer.get("tasks") or ()}

    def _found(self, arn: str, described: Mapping[str, Any]) -> FoundTask:
        family, started_by = _family(str(described.get("taskDefinitionArn", ""))), described.get("startedBy")
        ours = family == self._family or family.startswith(f"{self._family}-")
        sandbox = str(started_by or "")
        is_sandbox = ours and (owner_of_sandbox(sandbox) is not None or is_warm_machine(sandbox))
        return FoundTask(arn, sandbox if is_sandbox else None, f"{family}, started by {started_by}")


def _family(definition: str) -> str:
    """That of a task definition, by its family, with or without a revision, or its ARN."""
    return definition.rpartition("/")[2].partition(":")[0]


def _is_unknown_task(error: ClientError) -> bool:
    return code_of(error) == "InvalidParameterException" and "not found" in str(error)
