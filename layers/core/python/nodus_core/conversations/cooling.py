"""Cooling times: when a provider asks one call to wait, all calls with that endpoint and key do (FLD-04)."""

import json
from datetime import timedelta

from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.inference.target import Target
from nodus_core.journal.terms import CallPlace
from nodus_core.kernel import ids
from nodus_core.kernel.objects import Cooling
from nodus_core.kernel.tasks import Task

MOST_SPREAD_S = 30.0
"""Seconds over which those that have waited together come back at most."""

_SHARES = 2**32


def place(session: Session) -> CallPlace:
    """Where the next model call of the open turn would be made."""
    home, target = session.conversation.object, Selection.of(session.open_run).target
    return CallPlace(home.org, home.project, _gate(session, target))


def left(session: Session, target: Target) -> float | None:
    """Seconds until a call to the target may be made; None: now."""
    return remaining(session, session.ports.journal.cooling(_gate(session, target)))


def remaining(session: Session, cooling: Cooling | None) -> float | None:
    """Seconds that are left of a cooling time; None: it is over, or there is none."""
    if cooling is None:
        return None
    seconds = (cooling.until - session.ports.clock.now()).total_seconds()
    return seconds if seconds > 0 else None


def cool(session: Session, target: Target, seconds: float) -> None:
    """Lets all calls with the target's endpoint and key wait, whichever run and worker makes them."""
    now = session.ports.clock.now()
    until = now + timedelta(seconds=seconds)
    session.ports.journal.coolings.cool(Cooling(_gate(session, target), until), now)


def _gate(session: Session, target: Target) -> str:
    """The endpoint and key that the target's calls share; one's own key is that of a Secret of the run's project."""
    own = target.own_key
    if own is None:
        return session.ports.models.gate(target)
    place = session.object.key
    return ids.digest(json.dumps([place.org, place.project, own.secret, own.field, target.endpoint]))


def spread(task: Task, seconds: float) -> float:
    """Seconds that a call waits beyond the common time, so that not all come back at one moment.

    Each call has its own share of half the time, by its place in the journal.
    """
    share = int(ids.digest(f"{task.run}/{task.key}/{task.attempt}")[:8], 16) / _SHARES
    return share * min(max(seconds / 2, 1.0), MOST_SPREAD_S)
