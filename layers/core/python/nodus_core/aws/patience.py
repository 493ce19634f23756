"""How long an adapter goes on trying before it says that the service is not available."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self


@dataclass(frozen=True)
class Patience:
    """At most `tries` attempts, none begun later than `seconds` after the first.

    Between two attempts lies a random part of `first_s`, doubled each time up to `most_s` (full jitter: those
    who collided once do not collide again).
    """

    tries: int = 8
    seconds: float = 10.0
    first_s: float = 0.05
    most_s: float = 1.6
    sleep: Callable[[float], None] = time.sleep
    elapsed: Callable[[], float] = time.monotonic
    part: Callable[[], float] = field(default=random.random)

    def within(self, seconds: float | None) -> Self:
        """The same, for no longer than `seconds` where that is given."""
        if seconds is None or seconds >= self.seconds:
            return self
        return replace(self, seconds=seconds)

    def attempts(self) -> Iterator[int]:
        """The numbers of the attempts from 1, each when it is time for it."""
        end = self.elapsed() + self.seconds
        for number in range(1, self.tries + 1):
            yield number
            if number == self.tries:
                return
            pause = self.part() * min(self.most_s, self.first_s * 2 ** (number - 1))
            if self.elapsed() + pause > end:
                return
            self.sleep(pause)
