"""All tasks of a cluster in ECS: whose they are, and how they are."""

from collections.abc import Callable
from typing import Any

import pytest
from nodus_core.aws.task_fleet import EcsTaskFleet
from nodus_core.journal.ports import FoundTask
from nodus_core.kernel.errors import RetryableError, TerminalError

ACCOUNT = "arn:aws:ecs:eu-central-1:123456789012"
DEFINITION = f"{ACCOUNT}:task-definition"


def arn(number: int) -> str:
    return f"{ACCOUNT}:task/sandboxes/{number:032x}"


def described(number: int, family: str = "nodus-sandbox", **more: Any) -> dict[str, Any]:
    return {
        "taskArn": arn(number),
        "taskDefinitionArn": f"{DEFINITION}/{family}:7",
        "desiredStatus": "RUNNING",
        "lastStatus": "RUNNING",
        "startedBy": f"c-{number}-s1",
        **more,
    }


def fleet(client: Any) -> EcsTaskFleet:
    return EcsTaskFleet(client, "sandboxes", "nodus-sandbox")


def whose(stub: Callable[[str], Any], *tasks: dict[str, Any]) -> list[FoundTask]:
    client, answers = stub("ecs")
    asked = [task["taskArn"] for task in tasks]
    answers.add_response("describe_tasks", {"tasks": list(tasks)}, {"cluster": "sandboxes", "tasks": asked})
    return fleet(client).whose(asked)


def test_the_list_is_read_to_its_end(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    asked = {"cluster": "sandboxes", "desiredStatus": "RUNNING"}
    first, second = [arn(number) for number in range(100)], [arn(100)]
    answers.add_response("list_tasks", {"taskArns": first, "nextToken": "more"}, asked)
    answers.add_response("list_tasks", {"taskArns": second}, {**asked, "nextToken": "more"})

    assert list(fleet(client).pages()) == [first, second]


@pytest.mark.req("FLD-10")
def test_tasks_of_our_families_that_a_sandbox_has_started_are_ours(stub: Callable[[str], Any]) -> None:
    image = "nodus-sandbox-0123456789abcdef01234567"
    found = whose(stub, described(1), described(2, image))

    assert [(each.task, each.sandbox) for each in found] == [(arn(1), "c-1-s1"), (arn(2), "c-2-s1")]


def test_machines_of_the_pool_are_ours(stub: Callable[[str], Any]) -> None:
    (found,) = whose(stub, described(1, startedBy="warm-0123456789abcdef0123456789abcdef"))

    assert found.sandbox == "warm-0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "task",
    [
        described(1, startedBy="warm-up"),
        described(1, "nodus-sandboxes"),
        described(1, "mine"),
        described(1, startedBy="alice"),
        described(1, startedBy="ecs-svc/123"),
        {name: value for name, value in described(1).items() if name != "startedBy"},
    ],
)
def test_other_tasks_are_others(stub: Callable[[str], Any], task: dict[str, Any]) -> None:
    (found,) = whose(stub, task)

    assert found.sandbox is None
    family = task["taskDefinitionArn"].rpartition("/")[2].partition(":")[0]
    assert found.about == f"{family}, started by {task.get('startedBy')}"


def test_a_task_that_is_to_end_needs_no_owner(stub: Callable[[str], Any]) -> None:
    assert whose(stub, described(1, desiredStatus="STOPPED"), described(2))[0].task == arn(2)


def test_no_tasks_are_no_question(stub: Callable[[str], Any]) -> None:
    client, _ = stub("ecs")

    assert (fleet(client).whose([]), fleet(client).states([])) == ([], {})


def test_tasks_that_ecs_does_not_know_are_missing(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    failures = [{"arn": arn(2), "reason": "MISSING"}]
    answers.add_response("describe_tasks", {"tasks": [described(1)], "failures": failures})

    states = fleet(client).states([arn(1), arn(2)])

    assert {task: report.phase for task, report in states.items()} == {arn(1): "running", arn(2): "missing"}


def test_a_task_that_ecs_cannot_tell_of_is_not_taken_for_gone(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    answers.add_response("describe_tasks", {"tasks": [], "failures": [{"arn": arn(1), "reason": "INTERNAL"}]})

    with pytest.raises(TerminalError, match="INTERNAL"):
        fleet(client).states([arn(1)])


def test_a_throttled_list_may_be_read_later(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    answers.add_client_error("list_tasks", "ThrottlingException")

    with pytest.raises(RetryableError, match=r"sandboxes.*ThrottlingException"):
        list(fleet(client).pages())
