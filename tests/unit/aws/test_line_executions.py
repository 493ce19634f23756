"""Executions of the line machine (docs/protocols.md §6)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from nodus_core.aws.executions import StepFunctionsExecutions
from nodus_core.kernel.errors import RetryableError, TerminalError

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:nodus-line"


def test_a_generation_is_started_once(moto: Callable[..., Any]) -> None:
    client = moto("stepfunctions")
    machine = client.create_state_machine(
        name="nodus-line",
        roleArn="arn:aws:iam::123456789012:role/line",
        definition=json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}),
    )["stateMachineArn"]
    executions = StepFunctionsExecutions(client, machine)

    executions.start("c-1", 3)
    executions.start("c-1", 3)
    executions.start("c-1", 4)

    listed = client.list_executions(stateMachineArn=machine)["executions"]
    assert sorted(execution["name"] for execution in listed) == ["c-1-3", "c-1-4"]
    given = {
        execution["name"]: json.loads(
            client.describe_execution(executionArn=execution["executionArn"])["input"]
        )
        for execution in listed
    }
    assert given["c-1-3"] == {"line": "c-1", "generation": 3}


def test_an_execution_that_exists_is_fine(stub: Callable[[str], Any]) -> None:
    client, answers = stub("stepfunctions")
    answers.add_client_error("start_execution", "ExecutionAlreadyExists", http_status_code=400)

    StepFunctionsExecutions(client, MACHINE).start("c-1", 3)


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ThrottlingException", 400, RetryableError),
        ("ExecutionLimitExceeded", 400, RetryableError),
        ("ServiceUnavailable", 503, RetryableError),
        ("StateMachineDoesNotExist", 400, TerminalError),
        ("AccessDeniedException", 400, TerminalError),
    ],
)
def test_errors_say_whether_to_try_again(
    stub: Callable[[str], Any], code: str, status: int, expected: type[Exception]
) -> None:
    client, answers = stub("stepfunctions")
    answers.add_client_error("start_execution", code, http_status_code=status)

    with pytest.raises(expected, match=f"c-1-3.*{code}"):
        StepFunctionsExecutions(client, MACHINE).start("c-1", 3)
