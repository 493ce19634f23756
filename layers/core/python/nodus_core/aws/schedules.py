"""One-off schedules of EventBridge Scheduler: kicks at deadlines, each gone once it was made."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated

SOURCE = "nodus.schedules"
"""`source` of the events that the reactor is invoked with."""

MOST_RETRIES = 3
OLDEST_S = 3600
"""A kick that could not be made for so long has been made up for by the sweeper."""


@dataclass(frozen=True)
class SchedulePlace:
    """Where schedules stand and what they call: group, the function's ARN, and the role that may invoke it."""

    group: str
    target: str
    role: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """The place that the variables of docs/protocols.md §5 describe. Raises `KeyError`."""
        return cls(
            environment["NODUS_SCHEDULE_GROUP"],
            environment["NODUS_SCHEDULE_TARGET"],
            environment["NODUS_SCHEDULE_ROLE"],
        )


class EventBridgeSchedules:
    """`Schedules` of one group. `client` gives botocore's for EventBridge Scheduler: few calls need one."""

    def __init__(self, client: Callable[[], Any], place: SchedulePlace) -> None:
        self._client = client
        self._place = place

    def kick_at(self, line: str, at: datetime) -> None:
        with translated(f"scheduling a kick of line {line}"):
            try:
                self._client().create_schedule(**self._request(line, at))
            except ClientError as error:
                # The name is the line's: whoever asked first has asked for the same moment.
                if code_of(error) != "ConflictException":
                    raise

    def _request(self, line: str, at: datetime) -> dict[str, Any]:
        # Whole seconds, rounded up: before its moment a kick would find nothing to do.
        whole = (at + timedelta(microseconds=999_999)).astimezone(UTC)
        return {
            "Name": line,
            "GroupName": self._place.group,
            "ScheduleExpression": f"at({whole:%Y-%m-%dT%H:%M:%S})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": self._place.target,
                "RoleArn": self._place.role,
                "Input": json.dumps({"source": SOURCE, "detail": {"line": line}}),
                "RetryPolicy": {
                    "MaximumRetryAttempts": MOST_RETRIES,
                    "MaximumEventAgeInSeconds": OLDEST_S,
                },
            },
        }
