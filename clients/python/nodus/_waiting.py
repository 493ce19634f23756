"""Waiting by short reads with a growing interval (NODQ-79)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from nodus._flow import Blocking, Flow
from nodus._wire import BlockingWire, Wire
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
PASSING = (
    OutcomeUnknownError,
    ServerError,
    ServerUnreachableError,
    ServiceUnavailableError,
    TooManyRequestsError,
)

T = TypeVar("T")


def waiting(
    wire: Wire,
    read: Callable[[float], Flow[T]],
    done: Callable[[T], bool],
    *,
    timeout: float | None,
    describe: Callable[[T | None], str],
    longest: float = LONGEST_INTERVAL_SECONDS,
) -> Flow[T]:
    """Read until it is as wanted, at least once.

    Args:
        wire: gives clock and sleep.
        read: reads the state; its argument is the seconds that one read may take.
        done: whether the state is the wanted one.
        timeout: seconds from now on; ``None``: for ever.
        describe: the message of the time-out, from the state seen last.
        longest: the interval between two reads grows up to so many seconds.

    Raises:
        WaitTimeoutError: not reached in time, or not even read in it.
    """
    answered = wire.clock()
    until = float("inf") if timeout is None else answered + timeout
    intervals = _intervals(longest)
    seen: T | None = None
    while True:
        try:
            seen = yield from read(_for_a_read(until - wire.clock(), first=seen is None))
            answered = wire.clock()
            if done(seen):
                return seen
        except PASSING as error:
            if seen is None and isinstance(error, OutcomeUnknownError) and wire.clock() >= until:
                raise WaitTimeoutError(f"{describe(None)}: {error.message}") from error
            if seen is None or wire.clock() - answered > SERVER_AWAY_SECONDS:
                raise
        if (left := until - wire.clock()) <= 0:
            raise WaitTimeoutError(describe(seen))
        yield partial(wire.sleep, min(next(intervals), left))


def _intervals(longest: float) -> Iterator[float]:
    """The pauses between reads: they grow, up to the longest."""
    interval = FIRST_INTERVAL_SECONDS
    while True:
        yield interval
        interval = min(interval * GROWTH, longest)


def _for_a_read(left: float, *, first: bool) -> float:
    """The seconds that a read gets of those that are left."""
    least = FIRST_READ_SECONDS if first else LATER_READ_SECONDS
    return min(max(left, least), LONGEST_READ_SECONDS)


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
    """``waiting`` for a reader that blocks."""

    def flow(within: float) -> Flow[T]:
        seen: Any = yield partial(read, within)
        return seen

    wire = BlockingWire(sleep=sleep, clock=clock)
    return Blocking()._drive(  # pyright: ignore[reportPrivateUsage]
        waiting(wire, flow, done, timeout=timeout, describe=describe, longest=longest)
    )
