"""Races of calls for an object: a call that loses one looks again, and gives up after several."""

import logging
from collections.abc import Callable
from typing import TypeVar

from nodus_core.kernel.errors import ConditionFailed, Refusal

MOST_TRIES = 8
"""Races that one call may lose before it answers `Conflict`."""

T = TypeVar("T")

log = logging.getLogger(__name__)


def look_again(
    kind: str,
    name: str,
    attempt: Callable[[], T],
    lost_to: Callable[[ConditionFailed], None] = lambda lost: None,
) -> T:
    """What an attempt comes to; one that loses a race is made anew, from its first look on.

    `lost_to` is told of each lost race. Raises `Refusal` `Conflict` after too many of them.
    """
    for _ in range(MOST_TRIES):
        try:
            return attempt()
        except ConditionFailed as lost:
            log.info("%s %s is looked at again: %s", kind, name, lost)
            lost_to(lost)
    raise contested(kind, name)


def contested(kind: str, name: str) -> Refusal:
    message = f"{kind} {name!r} is being changed by others again and again; nothing was stored, try again"
    return Refusal("Conflict", message, kind=kind, name=name)
