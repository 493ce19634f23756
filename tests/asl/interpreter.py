"""A state machine run by moto's interpreter of the Amazon States Language, without AWS and without waiting.

The Lambda function is a list of answers. Only JSONPath is interpreted; retries are counted as Step Functions
counts them, and the seconds that they would wait are kept instead of being slept.
"""

from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from moto.stepfunctions.parser.api import StateMachineType
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.common.retry.jitter_strategy_decl import JitterStrategyDecl
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.eval.evaluation_details import (
    AWSExecutionDetails,
    EvaluationDetails,
    ExecutionDetails,
    StateMachineDetails,
)
from moto.stepfunctions.parser.asl.eval.program_state import ProgramEnded
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.backend.execution_worker import SyncExecutionWorker
from moto.stepfunctions.parser.backend.execution_worker_comm import ExecutionWorkerCommunication
from moto.stepfunctions.parser.mocking.mock_config import MockedResponseReturn, MockedResponseThrow

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:line"
ROLE = "arn:aws:iam::123456789012:role/states"


@dataclass(frozen=True)
class Returns:
    value: Any


@dataclass(frozen=True)
class Raises:
    """`error` is the name that Step Functions reports."""

    error: str


Answer = Returns | Raises


@dataclass(frozen=True)
class History:
    """What an execution did. `entered` holds each state with its input, `calls` the function's payloads."""

    status: str
    entered: list[tuple[str, str]]
    calls: list[str]
    failures: list[str]
    waits: list[float]
    error: str | None
    cause: str | None
    unplayed: int
    events: int


@dataclass
class _Answers:
    """The function's answers in order; the interpreter asks for one with each call, whatever its number."""

    left: list[Answer]
    failures: list[str] = field(default_factory=list[str])

    def __len__(self) -> int:
        return 1_000_000  # the interpreter compares it with its count of retries

    def __getitem__(self, _: int) -> MockedResponseReturn | MockedResponseThrow:
        if not self.left:
            raise AssertionError("a call of the function that the case does not answer")
        answer = self.left.pop(0)
        if isinstance(answer, Returns):
            return MockedResponseReturn(0, 0, {"StatusCode": 200, "Payload": answer.value})
        self.failures.append(answer.error)
        if answer.error == "States.Timeout":
            raise TimeoutError  # a reserved name: the interpreter gives it by itself
        return MockedResponseThrow(0, 0, answer.error, "said by the case")


class _Worker(SyncExecutionWorker):
    def _get_evaluation_entrypoint(self) -> EvalComponent:
        return _parsed(self._evaluation_details.state_machine_details.definition)


@cache
def _parsed(definition: str) -> EvalComponent:
    """Parsing takes a second; what it gives holds no state of an execution."""
    return AmazonStateLanguageParser.parse(definition)[0]


class _Nobody(ExecutionWorkerCommunication):
    def terminated(self) -> None:
        """Nobody waits."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds before each retry; nothing sleeps, and jitter counts with its longest wait."""
    found: list[float] = []
    monkeypatch.setattr(retrier_decl, "time", SimpleNamespace(sleep=found.append))
    monkeypatch.setattr(JitterStrategyDecl, "_eval_body", lambda self, env: None)
    return found


def run(definition: str, task: str, answers: list[Answer], payload: Any, waits: list[float]) -> History:
    """Runs a definition whose state `task` calls the function."""
    played = _Answers(list(answers))
    worker = _Worker(
        evaluation_details=EvaluationDetails(
            aws_execution_details=AWSExecutionDetails("123456789012", "us-east-1", ROLE),
            execution_details=ExecutionDetails(
                "arn:aws:states:us-east-1:123456789012:execution:line:conv-1",
                "conv-1",
                ROLE,
                payload,
                "2030-01-01T00:00:00Z",
            ),
            state_machine_details=StateMachineDetails(
                "arn:aws:states:us-east-1:123456789012:stateMachine:line",
                "line",
                StateMachineType.STANDARD,
                definition,
            ),
        ),
        exec_comm=_Nobody(),
        cloud_watch_logging_session=None,
        activity_store={},
        mock_test_case=SimpleNamespace(  # type: ignore[arg-type] - only its answers are asked for
            state_mocked_responses={task: SimpleNamespace(mocked_responses=played)}
        ),
    )
    worker.start()
    return _history(worker, played, waits)


def _history(worker: SyncExecutionWorker, played: _Answers, waits: list[float]) -> History:
    assert worker.env is not None
    state = worker.env.program_state()
    events = worker.env.event_manager.get_event_history()
    entered = [event["stateEnteredEventDetails"] for event in events if "stateEnteredEventDetails" in event]
    scheduled = "lambdaFunctionScheduledEventDetails"
    failed: dict[str, Any] = getattr(state, "error", None) or {}
    return History(
        status="SUCCEEDED" if isinstance(state, ProgramEnded) else "FAILED",
        entered=[(details["name"], details["input"]) for details in entered],
        calls=[event[scheduled]["input"] for event in events if scheduled in event],
        failures=played.failures,
        waits=list(waits),
        error=failed.get("error"),
        cause=failed.get("cause"),
        unplayed=len(played.left),
        events=len(events),
    )
