"""One-off schedules: kicks at deadlines (docs/protocols.md §5)."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from nodus_core.aws.schedules import EventBridgeSchedules, SchedulePlace
from nodus_core.kernel.errors import RetryableError, TerminalError

AT = datetime(2030, 1, 1, 3, 15, tzinfo=UTC)
PLACE = SchedulePlace(
    "nodus-kicks",
    "arn:aws:lambda:eu-central-1:123456789012:function:nodus-reactor",
    "arn:aws:iam::123456789012:role/kicks",
)


def test_a_schedule_calls_the_reactor_once_and_goes(moto: Callable[..., Any]) -> None:
    client = moto("scheduler")
    client.create_schedule_group(Name="nodus-kicks")
    schedules = EventBridgeSchedules(lambda: client, PLACE)
    schedules.kick_at("run-1", AT)
    schedules.kick_at("run-1", AT)  # a second time is fine
    found = client.get_schedule(Name="run-1", GroupName="nodus-kicks")
    assert found["ScheduleExpression"] == "at(2030-01-01T03:15:00)"
    assert found["ScheduleExpressionTimezone"] == "UTC"
    assert found["ActionAfterCompletion"] == "DELETE"
    assert (found["Target"]["Arn"], found["Target"]["RoleArn"]) == (PLACE.target, PLACE.role)
    assert json.loads(found["Target"]["Input"]) == {"source": "nodus.schedules", "detail": {"line": "run-1"}}


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (AT + timedelta(microseconds=1), "at(2030-01-01T03:15:01)"),
        (AT + timedelta(seconds=59, milliseconds=999), "at(2030-01-01T03:16:00)"),
        (AT.astimezone(timezone(timedelta(hours=5, minutes=45))), "at(2030-01-01T03:15:00)"),
    ],
)
def test_a_kick_comes_never_before_its_moment(stub: Callable[[str], Any], at: datetime, shown: str) -> None:
    client, answers = stub("scheduler")
    answers.add_response("create_schedule", {"ScheduleArn": "arn:aws:scheduler:eu-central-1:1:schedule/a/b"})
    asked: list[dict[str, Any]] = []
    client.meta.events.register(
        "provide-client-params.scheduler.CreateSchedule", lambda params, **_: asked.append(params)
    )
    EventBridgeSchedules(lambda: client, PLACE).kick_at("run-1", at)
    assert asked[0]["ScheduleExpression"] == shown


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ThrottlingException", 429, RetryableError),
        ("InternalServerException", 500, RetryableError),
        ("ServiceQuotaExceededException", 402, TerminalError),
        ("AccessDeniedException", 403, TerminalError),
    ],
)
def test_errors_say_whether_to_try_again(
    stub: Callable[[str], Any], code: str, status: int, expected: type[Exception]
) -> None:
    client, answers = stub("scheduler")
    answers.add_client_error("create_schedule", code, http_status_code=status)
    with pytest.raises(expected):
        EventBridgeSchedules(lambda: client, PLACE).kick_at("run-1", AT)
