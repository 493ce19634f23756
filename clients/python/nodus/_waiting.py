"""Waiting by short reads with a growing interval (NODQ-79)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from nodus.errors import (
    OutcomeUnknownError,
    ServerError,
    ServerUnreachableError,
    ServiceUnavailableError,
    TooManyRequestsError,
    WaitTimeoutError,
)

FIRST_INTERVAL_SECONDS = 0.2
LONGEST_INTERVAL_SECONDS = 2.0
GROWTH = 1.3
LONGEST_READ_SECONDS = 25.0
# A read gets so long however little time is left: a wait of no time at all is a look, and one look is answered.
FIRST_READ_SECONDS = 5.0
LATER_READ_SECONDS = 1.0
# A wait that has seen its object outlives a server that restarts, but not one that stays away this long.
SERVER_AWAY_SECONDS = 120.0
_PASSING = (
    OutcomeUnknownError,
    ServerError,
    ServerUnreachableError,
    ServiceUnavailableError,
    TooManyRequestsError,
)

T = TypeVar("T")


def poll(
    read: Callable[[float], T],
    done: Callable[[T], bool],
    *,
    timeout: float | None,
    describe: Callable[[T | None], str],
    longest: float = LONGEST_INTERVAL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Read until it is as wanted, at least once.

    Args:
        read: reads the state; its argument is the seconds that one read may take.
        done: whether the state is the wanted one.
        timeout: seconds from now on; ``None``: for ever.
        describe: the message of the time-out, from the state seen last.
        longest: the interval between two reads grows up to so many seconds.

    Raises:
        WaitTimeoutError: not reached in time, or not even read in it.
    """
    answered = clock()
    until = float("inf") if timeout is None else answered + timeout
    interval = FIRST_INTERVAL_SECONDS
    seen: T | None = None
    while True:
        try:
            least = FIRST_READ_SECONDS if seen is None else LATER_READ_SECONDS
            seen = read(min(max(until - clock(), least), LONGEST_READ_SECONDS))
            answered = clock()
            if done(seen):
                return seen
        except _PASSING as error:
            if seen is None and isinstance(error, OutcomeUnknownError) and clock() >= until:
                raise WaitTimeoutError(f"{describe(None)}: {error.message}") from error
            if seen is None or clock() - answered > SERVER_AWAY_SECONDS:
                raise
        left = until - clock()
        if left <= 0:
            raise WaitTimeoutError(describe(seen))
        sleep(min(interval, left))
        interval = min(interval * GROWTH, longest)
