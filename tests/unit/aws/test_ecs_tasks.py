"""Sandbox tasks in ECS (docs/protocols.md §3)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import ANY
from nodus_core.aws.tasks import EcsSandboxTasks, TaskPlace
from nodus_core.journal.ports import TaskReport, TaskRequest
from nodus_core.kernel.errors import RetryableError, TerminalError

PLACE = TaskPlace("sandboxes", "nodus-sandbox:1", ("subnet-1", "subnet-2"), ("sg-1",))
TASK = "arn:aws:ecs:eu-central-1:123456789012:task/sandboxes/0123456789abcdef"
SANDBOX = "c-1-s1"
EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def _listed(answers: Any, running: list[str]) -> None:
    """ECS refuses `startedBy` beside any other filter, so that nothing but it is expected here."""
    answers.add_response("list_tasks", {"taskArns": running}, {"cluster": "sandboxes", "startedBy": SANDBOX})


def _asked_to_run(**more: Any) -> dict[str, Any]:
    return {
        "cluster": "sandboxes",
        "taskDefinition": "nodus-sandbox:1",
        "count": 1,
        "startedBy": SANDBOX,
        "clientToken": ANY,
        "launchType": "FARGATE",
        "networkConfiguration": {
            "awsvpcConfiguration": {
                "subnets": ["subnet-1", "subnet-2"],
                "securityGroups": ["sg-1"],
                "assignPublicIp": "ENABLED",
            }
        },
        "overrides": {
            "containerOverrides": [
                {"name": "sandbox", "environment": [{"name": "NODUS_SANDBOX_ID", "value": SANDBOX}]}
            ]
        },
        "tags": [{"key": "nodus:sandbox", "value": SANDBOX}],
        **more,
    }


def _run(tasks: EcsSandboxTasks, **more: Any) -> str:
    tags = {"nodus:sandbox": SANDBOX}
    return tasks.run(TaskRequest(SANDBOX, {"NODUS_SANDBOX_ID": SANDBOX}, tags=tags, **more))


def test_place_comes_from_the_environment() -> None:
    environment = {
        "NODUS_CLUSTER": "sandboxes",
        "NODUS_TASK_DEFINITION": "nodus-sandbox:1",
        "NODUS_SUBNETS": "subnet-1,subnet-2",
        "NODUS_SECURITY_GROUP": "sg-1",
    }

    assert TaskPlace.from_environment(environment) == PLACE
    without = {**environment, "NODUS_GPU_PROVIDER": "", "NODUS_GPU_SUBNETS": ""}
    assert TaskPlace.from_environment(without) == PLACE
    with_gpus = TaskPlace.from_environment(
        {**environment, "NODUS_GPU_PROVIDER": "nodus-gpu", "NODUS_GPU_SUBNETS": "subnet-3,subnet-4"}
    )
    assert (with_gpus.gpu_provider, with_gpus.gpu_subnets) == ("nodus-gpu", ("subnet-3", "subnet-4"))


def test_a_task_is_started_with_what_the_daemon_needs(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    _listed(answers, [])
    answers.add_response("run_task", {"tasks": [{"taskArn": TASK}], "failures": []}, _asked_to_run())

    assert _run(EcsSandboxTasks(client, PLACE)) == TASK


def test_size_and_capacity_provider_are_passed_on(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    _listed(answers, [])
    expected = _asked_to_run(capacityProviderStrategy=[{"capacityProvider": "FARGATE_SPOT", "weight": 1}])
    del expected["launchType"]
    expected["overrides"] |= {"cpu": "2048", "memory": "4096"}
    answers.add_response("run_task", {"tasks": [{"taskArn": TASK}]}, expected)
    place = TaskPlace("sandboxes", "nodus-sandbox:1", ("subnet-1", "subnet-2"), ("sg-1",), "FARGATE_SPOT")

    assert _run(EcsSandboxTasks(client, place), cpu=2048, memory=4096) == TASK


@pytest.mark.req("NODQ-63")
def test_with_gpus_it_runs_where_they_are_without_a_public_address(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    _listed(answers, [])
    described = {"taskDefinitionArn": "arn:aws:ecs:eu-central-1:123456789012:task-definition/nodus-sandbox:1"}
    own = {
        "family": "nodus-sandbox",
        "containerDefinitions": [{"name": "sandbox", "image": "own"}],
        **described,
    }
    answers.add_response("describe_task_definition", {"taskDefinition": own})
    answers.add_response("describe_task_definition", {"taskDefinition": {"status": "ACTIVE"}})
    expected = _asked_to_run(
        taskDefinition=ANY,
        capacityProviderStrategy=[{"capacityProvider": "nodus-gpu", "weight": 1}],
        networkConfiguration={
            "awsvpcConfiguration": {"subnets": ["subnet-3", "subnet-4"], "securityGroups": ["sg-1"]}
        },
    )
    del expected["launchType"]
    expected["overrides"] |= {"cpu": "4096", "memory": "14336"}
    answers.add_response("run_task", {"tasks": [{"taskArn": TASK}]}, expected)
    place = replace(
        PLACE,
        capacity_provider="FARGATE_SPOT",
        gpu_provider="nodus-gpu",
        gpu_subnets=("subnet-3", "subnet-4"),
    )

    assert _run(EcsSandboxTasks(client, place), cpu=4096, memory=14336, gpus=1) == TASK


def test_a_deployment_that_has_lost_its_gpus_starts_nothing_in_their_place(
    stub: Callable[[str], Any],
) -> None:
    client, answers = stub("ecs")
    _listed(answers, [])
    with pytest.raises(TerminalError, match="none any more"):
        _run(EcsSandboxTasks(client, PLACE), gpus=1)


def test_a_task_that_runs_already_is_the_sandboxes(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    _listed(answers, [TASK])

    assert _run(EcsSandboxTasks(client, PLACE)) == TASK


@pytest.mark.parametrize(("running", "found"), [([TASK], TASK), ([], None)])
def test_a_task_is_found_by_its_sandbox_alone(
    stub: Callable[[str], Any], running: list[str], found: str | None
) -> None:
    client, answers = stub("ecs")
    _listed(answers, running)

    assert EcsSandboxTasks(client, PLACE).find(SANDBOX) == found


def test_the_task_behind_the_client_token_is_the_one(stub: Callable[[str], Any]) -> None:
    """ListTasks lags, and does not list what has stopped: ECS itself knows that this sandbox has its task."""
    client, answers = stub("ecs")
    _listed(answers, [])
    answers.add_client_error(
        "run_task", "ConflictException", response_meta=None, modeled_fields={"resourceIds": [TASK]}
    )

    assert _run(EcsSandboxTasks(client, PLACE)) == TASK


def test_no_capacity_may_come_later(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    _listed(answers, [])
    failure = {"reason": "RESOURCE:CPU", "detail": "Capacity is unavailable at this time"}
    answers.add_response("run_task", {"tasks": [], "failures": [failure]})

    with pytest.raises(RetryableError, match=r"c-1-s1.*RESOURCE:CPU Capacity is unavailable"):
        _run(EcsSandboxTasks(client, PLACE))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ThrottlingException", RetryableError),
        ("ServerException", RetryableError),
        ("ClusterNotFoundException", TerminalError),
    ],
)
def test_errors_of_run_say_whether_to_try_again(
    stub: Callable[[str], Any], code: str, expected: type[Exception]
) -> None:
    client, answers = stub("ecs")
    answers.add_client_error("list_tasks", code)

    with pytest.raises(expected, match=f"c-1-s1.*{code}"):
        _run(EcsSandboxTasks(client, PLACE))


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"lastStatus": "PROVISIONING"}, TaskReport("pending")),
        ({"lastStatus": "PENDING"}, TaskReport("pending")),
        ({"lastStatus": "ACTIVATING"}, TaskReport("pending")),
        ({"lastStatus": "RUNNING"}, TaskReport("running")),
        ({"lastStatus": "STOPPING", "stoppedReason": "bye"}, TaskReport("running")),
        (
            {"lastStatus": "STOPPED", "stoppedReason": "bye", "stopCode": "UserInitiated"},
            TaskReport("stopped", "bye"),
        ),
        (
            {"lastStatus": "STOPPED", "stopCode": "SpotInterruption"},
            TaskReport("stopped", "SpotInterruption"),
        ),
        ({"lastStatus": "STOPPED"}, TaskReport("stopped")),
        (
            {"lastStatus": "STOPPED", "pullStartedAt": EARLY, "startedAt": LATE, "stoppedAt": LATE},
            TaskReport("stopped", None, LATE, EARLY),
        ),
        (
            {"lastStatus": "STOPPED", "createdAt": EARLY, "stoppedAt": LATE},
            TaskReport("stopped", None, LATE, LATE),
        ),
        ({"lastStatus": "RUNNING", "startedAt": EARLY}, TaskReport("running", began=EARLY)),
        (None, TaskReport("missing")),
    ],
)
def test_states(stub: Callable[[str], Any], task: dict[str, Any] | None, expected: TaskReport) -> None:
    client, answers = stub("ecs")
    answer = (
        {"tasks": [{"taskArn": TASK, **task}]}
        if task
        else {"tasks": [], "failures": [{"arn": TASK, "reason": "MISSING"}]}
    )
    answers.add_response("describe_tasks", answer, {"cluster": "sandboxes", "tasks": [TASK]})

    assert EcsSandboxTasks(client, PLACE).state(TASK) == expected


def test_a_state_that_is_not_known_is_an_error(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    answers.add_response("describe_tasks", {"tasks": [{"taskArn": TASK, "lastStatus": "DREAMING"}]})

    with pytest.raises(TerminalError, match="DREAMING"):
        EcsSandboxTasks(client, PLACE).state(TASK)


def test_a_task_that_runs_gets_tags(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    expected = {"resourceArn": TASK, "tags": [{"key": "nodus:run", "value": "conv"}]}
    answers.add_response("tag_resource", {}, expected)

    EcsSandboxTasks(client, PLACE).tag(TASK, {"nodus:run": "conv"})


def test_stopping_gives_the_reason_and_may_be_repeated(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    expected = {"cluster": "sandboxes", "task": TASK, "reason": "r" * 255}
    answers.add_response("stop_task", {}, expected)
    answers.add_client_error(
        "stop_task",
        "InvalidParameterException",
        "The referenced task was not found.",
        expected_params=expected,
    )
    tasks = EcsSandboxTasks(client, PLACE)

    tasks.stop(TASK, "r" * 300)
    tasks.stop(TASK, "r" * 300)


def test_other_refusals_to_stop_are_errors(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    answers.add_client_error(
        "stop_task", "InvalidParameterException", "taskId length should be one of [32,36]"
    )

    with pytest.raises(TerminalError, match="length"):
        EcsSandboxTasks(client, PLACE).stop("x", "released")
