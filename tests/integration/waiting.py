"""Waiting for a state, never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(read: Callable[[], T], reached: Callable[[T], bool]) -> T:
    """Reads until the state is reached; the test's own time limit ends what never comes."""
    while not reached(seen := read()):
        time.sleep(0.2)
    return seen
