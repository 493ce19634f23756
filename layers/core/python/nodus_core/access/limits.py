"""How often keys are used: each process takes uses in slices, so that not every call is a write.

A process takes as many as it has needed in its present second, and a tenth of what a second gives at most. What it
has not used when the second is over is lost. So all processes together let through what rate and burst allow, and at most one
slice for each process on top; one that is told that nothing is left asks again only when there will be something.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from nodus_core.access.grant import Rate
from nodus_core.journal.ports import Clock
from nodus_core.journal.rates import KEPT, Rates, Taken
from nodus_core.kernel.errors import Refusal

LIFETIME = timedelta(seconds=1)
_LARGEST_SHARE = 10
_MOST_KEPT = 1000


@dataclass
class _Hand:
    """What a process holds of one rate, for a second: uses in hand, and how many it has spent in that time."""

    since: datetime
    left: int = 0
    spent: int = 0
    empty_until: datetime | None = None

    def is_empty(self, now: datetime) -> bool:
        return self.empty_until is not None and self.since <= now < self.empty_until

    def is_fresh(self, now: datetime) -> bool:
        return self.since <= now < self.since + LIFETIME


class Limits:
    """Counts uses. One per process."""

    def __init__(self, rates: Rates, clock: Clock) -> None:
        self._rates = rates
        self._clock = clock
        self._hands: OrderedDict[str, _Hand] = OrderedDict()

    def spend(
        self, name: str, rate: Rate, *, whose: str = "requests with this key", kept: timedelta = KEPT
    ) -> None:
        """One use of what `name` counts; it is remembered for so long.

        `whose`: what there are too many of, for whoever is refused. Raises `Refusal` `TooManyRequests` with the seconds to wait, `StoreUnavailable`.
        """
        now = self._clock.now()
        hand = self._hands.get(name)
        if hand is not None and hand.empty_until is not None and hand.is_empty(now):
            raise _too_many(whose, (hand.empty_until - now).total_seconds())
        if hand is None or not hand.is_fresh(now):
            hand = self._keep(name, _Hand(now))
        if hand.left < 1:
            taken = self._take(hand, name, rate, kept)
            if taken.uses < 1:
                hand.empty_until = now + timedelta(seconds=taken.wait)
                raise _too_many(whose, taken.wait)
            hand.left = taken.uses
        hand.left -= 1
        hand.spent += 1

    def _keep(self, name: str, hand: _Hand) -> _Hand:
        self._hands[name] = hand
        self._hands.move_to_end(name)
        while len(self._hands) > _MOST_KEPT:
            self._hands.popitem(last=False)
        return hand

    def _take(self, hand: _Hand, name: str, rate: Rate, kept: timedelta) -> Taken:
        wanted = min(max(hand.spent, 1), largest_slice(rate))
        return self._rates.take(name, rate.per_second, rate.burst, wanted, self._clock.now(), kept=kept)


def largest_slice(rate: Rate) -> int:
    """The most uses that a process takes at once."""
    return max(1, min(rate.per_second, rate.burst) // _LARGEST_SHARE)


def _too_many(whose: str, wait: float) -> Refusal:
    seconds = max(1, math.ceil(wait))
    message = f"too many {whose}; try again in {seconds} s"
    return Refusal("TooManyRequests", message, retry_after=seconds)
