"""The waiting times that model providers have asked for, one small row for each endpoint and key (FLD-04)."""

from datetime import datetime, timedelta

from nodus_core.journal.keys import cooling_key
from nodus_core.journal.store import Absent, Below, Either, Put
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.objects import Cooling
from nodus_core.kernel.times import stamp

KEPT = timedelta(hours=1)
"""How long a row stays behind its time: it means nothing any more, and the table removes it when it can."""


class Coolings:
    """Commits on waiting times."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def cool(self, cooling: Cooling, now: datetime) -> None:
        """Lets every call through the gate wait. Condition: no later time stands; if one does, it stays.

        So many workers may tell theirs in any order: the latest counts.
        """
        key, until = cooling_key(cooling.gate), cooling.until
        row = stored(key, cooling, ttl=int((max(until, now) + KEPT).timestamp()))
        try:
            self._writer.commit("cool", Put(row, when=Either((Absent(), Below("until", stamp(until))))))
        except ConditionFailed:
            return
