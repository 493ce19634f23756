"""Spans of time as people write them: `90s`, `30m`, `1d12h`."""

import re
from datetime import timedelta
from typing import Any

from nodus_core.resources.checks import Check, check, whole
from nodus_core.resources.fields import problem

DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,7})s)?", re.ASCII)
"""The form of a duration; the empty text has it, too, and is none."""
SAID: dict[str, Any] = {"pattern": whole(DURATION), "minLength": 2, "example": "1h30m"}
"""What the published schema says of durations."""


def duration(text: str) -> timedelta | None:
    """The span that a text means, or None when it is none."""
    spans = DURATION.fullmatch(text) if text else None
    if spans is None:
        return None
    days, hours, minutes, seconds = (int(span or 0) for span in spans.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def between(least: str, most: str) -> Check:
    """A check that a text is a span of at least and at most so much."""
    shortest, longest = duration(least), duration(most)
    if shortest is None or longest is None:
        raise ValueError(f"{least} and {most} must be durations")

    @check(**SAID)
    def lies_between(value: str) -> str:
        span = duration(value)
        if span is None or not shortest <= span <= longest:
            raise problem(f"must be a duration from {least} to {most}, such as 10m or 1h30m")
        return value

    return lies_between
