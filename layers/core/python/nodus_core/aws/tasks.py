"""The tasks that hold sandboxes, in ECS (docs/protocols.md §3)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.aws.task_definitions import TaskDefinitions
from nodus_core.aws.task_fleet import EcsTaskFleet
from nodus_core.journal.ports import TaskReport, TaskRequest
from nodus_core.kernel.errors import RetryableError, TerminalError

CONTAINER = "sandbox"
"""The container of the task definition that runs the daemon."""


@dataclass(frozen=True)
class TaskPlace:
    """Where and as what sandboxes run. `capacity_provider` None: plain Fargate. `runtime_image` brings the daemon
    into images that have not got it; None: only the deployment's own is run. `gpu_provider`: of machines with GPUs, in
    `gpu_subnets`; None: there are none."""

    cluster: str
    task_definition: str
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    capacity_provider: str | None = None
    container: str = CONTAINER
    runtime_image: str | None = None
    gpu_provider: str | None = None
    gpu_subnets: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "TaskPlace":
        """From the variables of docs/protocols.md §5. Raises KeyError for one that is missing."""
        return cls(
            environment["NODUS_CLUSTER"],
            environment["NODUS_TASK_DEFINITION"],
            tuple(environment["NODUS_SUBNETS"].split(",")),
            tuple(environment["NODUS_SECURITY_GROUP"].split(",")),
            environment.get("NODUS_CAPACITY_PROVIDER"),
            environment.get("NODUS_SANDBOX_CONTAINER", CONTAINER),
            environment.get("NODUS_RUNTIME_IMAGE") or None,
            environment.get("NODUS_GPU_PROVIDER") or None,
            tuple(filter(None, environment.get("NODUS_GPU_SUBNETS", "").split(","))),
        )


class EcsSandboxTasks:
    """`SandboxTasks` in one cluster. `client` is botocore's for ECS."""

    def __init__(self, client: Any, place: TaskPlace) -> None:
        self._client = client
        self._place = place
        self._fleet = EcsTaskFleet(client, place.cluster, place.task_definition)
        self._definitions = TaskDefinitions(
            client, place.task_definition, place.container, place.runtime_image
        )

    def run(self, request: TaskRequest) -> str:
        sandbox = request.sandbox
        with translated(f"starting the task of sandbox {sandbox}"):
            known = self._running(sandbox)
            if known is not None:
                return known
            arguments = {
                **self._arguments(request),
                **(self._with_gpus(sandbox) if request.gpus else self._on_fargate()),
                "taskDefinition": self._definitions.of_image(request.image, request.gpus),
            }
            try:
                answer = self._client.run_task(**arguments)
            except ClientError as error:
                return _already_started(error)
        return _started(answer, sandbox)

    def find(self, sandbox: str) -> str | None:
        with translated(f"looking for the task of sandbox {sandbox}"):
            return self._running(sandbox)

    def _running(self, sandbox: str) -> str | None:
        # `startedBy` must be the only filter, and alone it lists the tasks that are meant to run: ECS refuses a
        # search for stopped ones by it. Of those `run` learns by its client token.
        answer = self._client.list_tasks(cluster=self._place.cluster, startedBy=sandbox)
        return str(answer["taskArns"][0]) if answer["taskArns"] else None

    def stop(self, task: str, reason: str) -> None:
        self._fleet.stop(task, reason)

    def state(self, task: str) -> TaskReport:
        return self._fleet.states([task])[task]

    def tag(self, task: str, tags: Mapping[str, str]) -> None:
        pairs = [{"key": key, "value": value} for key, value in tags.items()]
        with translated(f"tagging task {task}"):
            self._client.tag_resource(resourceArn=task, tags=pairs)

    def _arguments(self, request: TaskRequest) -> dict[str, Any]:
        environment = [{"name": name, "value": value} for name, value in request.variables.items()]
        container: dict[str, Any] = {"name": self._place.container, "environment": environment}
        overrides: dict[str, Any] = {"containerOverrides": [container]}
        if request.cpu is not None:
            overrides["cpu"] = str(request.cpu)
        if request.memory is not None:
            overrides["memory"] = str(request.memory)
        return {
            "cluster": self._place.cluster,
            "count": 1,
            "startedBy": request.sandbox,
            # ListTasks lags behind and knows no stopped task; this token makes ECS itself refuse a second one.
            "clientToken": hashlib.sha256(request.sandbox.encode()).hexdigest()[:36],
            "overrides": overrides,
            "tags": [{"key": key, "value": value} for key, value in request.tags.items()],
        }

    def _on_fargate(self) -> dict[str, Any]:
        provider = self._place.capacity_provider
        return {
            **(_by(provider) if provider else {"launchType": "FARGATE"}),
            "networkConfiguration": self._network(self._place.subnets, assignPublicIp="ENABLED"),
        }

    def _with_gpus(self, sandbox: str) -> dict[str, Any]:
        """On a machine of EC2. ECS gives its tasks no public address: their subnets have another way out."""
        provider = self._place.gpu_provider
        if provider is None:
            raise TerminalError(f"sandbox {sandbox} needs a GPU, and this deployment has none any more")
        return {**_by(provider), "networkConfiguration": self._network(self._place.gpu_subnets)}

    def _network(self, subnets: Sequence[str], **more: str) -> dict[str, Any]:
        groups = list(self._place.security_groups)
        return {"awsvpcConfiguration": {"subnets": list(subnets), "securityGroups": groups, **more}}


def _by(provider: str) -> dict[str, Any]:
    return {"capacityProviderStrategy": [{"capacityProvider": provider, "weight": 1}]}


def _started(answer: dict[str, Any], sandbox: str) -> str:
    if answer.get("tasks"):
        return str(answer["tasks"][0]["taskArn"])
    reasons = "; ".join(
        f"{failure.get('reason')} {failure.get('detail') or ''}".strip()
        for failure in answer.get("failures", [])
    )
    raise RetryableError(f"no task for sandbox {sandbox} now: {reasons or 'ECS gave no reason'}")


def _already_started(error: ClientError) -> str:
    """The task that the client token stands for already; raises the error when it is about anything else."""
    tasks = error.response.get("resourceIds") or []
    if code_of(error) != "ConflictException" or not tasks:
        raise error
    return str(tasks[0])
