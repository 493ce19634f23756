"""Rows that count how often something is done: one number each, the moment up to which its rate is used up (GCRA).

A rate of r a second with a burst of b lets `taken` lie at most b/r seconds ahead of now; each use moves it by 1/r.
Uses of several processes add up without a read, and without meeting: they only ever add.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from nodus_core.journal.keys import rate_key
from nodus_core.journal.store import Absent, AtLeast, Below, Condition, Delete, Either, Row, Update, both
from nodus_core.journal.writer import Writer
from nodus_core.kernel.errors import ConditionFailed

MICROSECONDS = 1_000_000
KEPT = timedelta(days=400)
"""How long a count is kept after its last use, which it remembers."""

_TRIES = 3


@dataclass(frozen=True)
class Taken:
    """How many uses were given, of those that were asked for; when none, after how many seconds there is one."""

    uses: int
    wait: float = 0.0


@dataclass(frozen=True)
class _Count:
    """The row that counts, as one call writes it: at which moment, in steps of one use, and until when it is kept."""

    name: str
    moment: int
    step: int
    kept: timedelta


@dataclass(frozen=True)
class Rates:
    """Takes uses of a rate."""

    writer: Writer

    def take(
        self, name: str, per_second: int, burst: int, wanted: int, now: datetime, *, kept: timedelta = KEPT
    ) -> Taken:
        """As many as there are of `wanted` uses, counted against all processes.

        `kept`: how long the count outlives its last use, longer than `burst / per_second` seconds. Raises
        `StoreUnavailable`. A crash after the commit wastes uses and gives none away.
        """
        moment, step = _micro(now), MICROSECONDS // per_second
        count, wanted = _Count(name, moment, step, kept), min(wanted, burst)
        for _ in range(_TRIES):
            try:
                self._add(count, wanted, burst)
            except ConditionFailed as lost:
                taken = int(cast("int", lost.current[0].get("taken", 0)))
                if taken < moment:
                    if self._begin(count, wanted):
                        return Taken(wanted)
                    continue
                room = (moment + burst * step - taken) // step
                if room < 1:
                    return Taken(0, (taken + step - burst * step - moment) / MICROSECONDS)
                wanted = min(wanted, room)
                continue
            return Taken(wanted)
        # Others took all of it between each look and the next.
        return Taken(0, step / MICROSECONDS)

    def last_uses(self, names: list[str]) -> list[datetime | None]:
        """When each was used last, as far as is known."""
        rows = self.writer.store.get([rate_key(name) for name in names]) if names else []
        return [_moment(row) for row in rows]

    def _add(self, count: _Count, uses: int, burst: int) -> None:
        """Condition: uses of late are counted still, and there is room for these. Raises `ConditionFailed`."""
        most = count.moment + (burst - uses) * count.step
        room = both(AtLeast("taken", count.moment), Below("taken", most + 1))
        self._update(count, room, add={"taken": uses * count.step})

    def _begin(self, count: _Count, uses: int) -> bool:
        """Counts from now on. Condition: no use of late is counted. False: one is by now."""
        unused = Either((Absent("taken"), Below("taken", count.moment)))
        try:
            self._update(count, unused, assign={"taken": count.moment + uses * count.step})
        except ConditionFailed:
            return False
        return True

    def _update(
        self,
        count: _Count,
        when: Condition,
        *,
        assign: Row | None = None,
        add: dict[str, Any] | None = None,
    ) -> None:
        end = count.moment // MICROSECONDS + int(count.kept.total_seconds())
        known = {**(assign or {}), "used": count.moment, "ttl": end}
        self.writer.commit("take-uses", Update(rate_key(count.name), when=when, assign=known, add=add or {}))


def _micro(now: datetime) -> int:
    return int(now.timestamp() * MICROSECONDS)


def _moment(row: Row | None) -> datetime | None:
    if row is None:
        return None
    return datetime.fromtimestamp(0, tz=UTC) + timedelta(microseconds=int(row["used"]))


def rate_gone(name: str) -> Delete:
    """Part of the commit that removes what was counted."""
    return Delete(rate_key(name))
