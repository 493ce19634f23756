"""The sweeper: reads what is due and kicks it. It alone carries the guarantee that nothing is forgotten.

A line is due when its lease ends, so a dead worker's line is kicked by the pass after that. One call makes two
passes half a minute apart when something will be due in between: with a schedule of one minute, dead work goes
on within 70 s (30 s of lease, 30 s until the pass, and the start).
"""

import logging
from dataclasses import dataclass
from datetime import timedelta

from nodus_core.conversations.kicks import Kicks
from nodus_core.journal.keys import DUE_SHARDS
from nodus_core.kernel.errors import NodusError

BETWEEN_PASSES = timedelta(seconds=29)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sweep:
    """What one call did."""

    passes: int
    kicked: int
    failed: int = 0


@dataclass(frozen=True)
class Sweeper:
    kicks: Kicks

    def sweep(self) -> Sweep:
        """Kicks every line that is due, now and once more half a minute later if one will be due then."""
        first = self._pass()
        if not self._due(BETWEEN_PASSES):
            return first
        self.kicks.clock.sleep(BETWEEN_PASSES.total_seconds())
        second = self._pass()
        return Sweep(2, first.kicked + second.kicked, first.failed + second.failed)

    def _pass(self) -> Sweep:
        kicked = failed = 0
        for line in self._due(timedelta()):
            try:
                kicked += self.kicks.kick(line)
            except NodusError as error:
                # One line that cannot be kicked, or be read at all, must not keep the others from being kicked.
                failed += 1
                log.error("line %s was not kicked and stays due: %s", line, error)
        return Sweep(1, kicked, failed)

    def _due(self, ahead: timedelta) -> list[str]:
        until = self.kicks.clock.now() + ahead
        return [line for shard in DUE_SHARDS for line in self.kicks.journal.due_conversations(shard, until)]
