"""Why a conversation is stopped, and when its deadline is the reason."""

from datetime import datetime

from nodus_core.kernel.objects import Conversation, StopMarker
from nodus_core.kernel.states import TurnState

CANCELLED = "Cancelled"
"""Reason of a stop that a person asked for."""

DEADLINE_EXCEEDED = "DeadlineExceeded"
"""Reason of a stop by `spec.deadline` (NOD-178)."""


def turn_state(stop: StopMarker) -> TurnState:
    """How the open turn of a stopped conversation ends: a deadline is a failure, a cancel is none."""
    return TurnState.FAILED if stop.reason == DEADLINE_EXCEEDED else TurnState.CANCELED


def is_overdue(head: Conversation, now: datetime) -> bool:
    """Whether the deadline has come and the conversation must be stopped for it."""
    return head.deadline is not None and _can_be_stopped(head) and now >= head.deadline


def next_look(head: Conversation, own: datetime | None) -> datetime | None:
    """When a line that rests must be looked at again: at its own time, at the latest at its deadline."""
    if head.deadline is None or not _can_be_stopped(head):
        return own
    return head.deadline if own is None else min(own, head.deadline)


def _can_be_stopped(head: Conversation) -> bool:
    return head.stop is None and not head.ended
