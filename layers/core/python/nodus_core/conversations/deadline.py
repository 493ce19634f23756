"""Stopping a run at its deadline: by the worker that holds its line, or by whoever kicks the line (NOD-177, NOD-178).

There is one way to stop a run, the stop marker; a deadline sets it with a reason of its own.
"""

from dataclasses import replace

from nodus_core.journal.journal import Journal
from nodus_core.journal.objects import projection as projected
from nodus_core.journal.objects import versioned
from nodus_core.journal.ports import Clock
from nodus_core.kernel import projection
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.objects import Conversation, StopMarker
from nodus_core.kernel.stopping import DEADLINE_EXCEEDED

BY = "nodus"
"""Who stops a run at its deadline."""


def expire(journal: Journal, head: Conversation, clock: Clock) -> None:
    """Stops an overdue conversation. Raises `ConditionFailed` when it has changed since it was read."""
    obj = journal.object(head.object)
    if obj is None:
        raise CorruptRow(f"conversation {head.id}: its object {head.object.name!r} is gone")
    status = projection.stopping(obj.status, DEADLINE_EXCEEDED)
    now = clock.now()
    shown = versioned(replace(obj, status=status), now)
    marker = StopMarker(now, BY, DEADLINE_EXCEEDED)
    journal.turns.stop(head, marker, projected(shown, now, over=obj.version))
