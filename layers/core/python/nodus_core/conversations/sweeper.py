"""The sweeper: reads what is due and kicks it. It alone carries the guarantee that nothing is forgotten.

A line is due when its lease ends, so a dead worker's line is kicked by the pass after that. One call makes two
passes half a minute apart when something will be due in between: with a schedule of one minute, dead work goes
on within 70 s (30 s of lease, 30 s until the pass, and the start). An account is due when there is money for those
who wait for some: they are kicked. Between the passes tasks and sandboxes are held against each other, in a time of
their own: neither may keep the other from being swept. Builds of images come last.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.build_keeping import BuildKeeping
from nodus_core.conversations.expired_keys import ExpiredKeys
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.left_images import LeftImagesKeeping
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.task_sweep import Reconciled, TaskSweep
from nodus_core.conversations.waiters import Waiters
from nodus_core.conversations.warm_pool import Kept, WarmPool
from nodus_core.journal import keys
from nodus_core.journal.keys import DUE_SHARDS
from nodus_core.kernel.errors import NodusError

BETWEEN_PASSES = timedelta(seconds=29)

RESERVE_S = 5.0
"""Seconds of an invocation that are left when a sweep stops: one kick with all its tries takes less."""

TASKS_S = 8.0
"""Seconds of each sweep that are kept for the look at tasks; a question that was begun may last five more."""

SLOW_RESERVE_S = 15.0
"""The same for what asks services that few things here depend on, and that may be sick: one question of those."""

_SLOW = frozenset({keys.IMAGE_BUILD, keys.LEFT_IMAGES})
_QUICK = keys.DUE_NOUNS - _SLOW
"""What is slow comes after both passes, so that it keeps no line waiting."""

MOST_RECLAIMED = 100
"""Loose values that one sweep removes: the lines come next."""

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Sweep:
    """What one call did. `reclaimed` counts loose values, `pool` warm machines. `finished`: all that was due was looked at, before the
    time was up. `tasks`: what the look at tasks came to."""

    passes: int
    kicked: int = 0
    failed: int = 0
    finished: bool = True
    reclaimed: int = 0
    tasks: Reconciled = field(default_factory=Reconciled)
    pool: Kept = field(default_factory=Kept)


@dataclass(frozen=True)
class Sweeper:
    kicks: Kicks
    tasks: TaskSweep
    pool: WarmPool
    values: Reclaim
    expiry: Expiry
    batches: BatchKeeping
    builds: BuildKeeping

    def sweep(self, remaining: Callable[[], float]) -> Sweep:
        """Kicks every line that is due, now and once more half a minute later if one will be due then.

        `remaining`: seconds that the invocation has left; the sweep stops in time, and the next one begins with
        another shard, so that none is left out for ever. Loose values are removed first: there are few.
        """
        reclaimed = self._reclaim(remaining)
        swept = replace(self._passes(remaining), reclaimed=reclaimed)
        if not swept.finished:
            return swept
        slow = self._pass(remaining, _SLOW, SLOW_RESERVE_S)
        return replace(swept, failed=swept.failed + slow.failed, finished=slow.finished)

    def _passes(self, remaining: Callable[[], float]) -> Sweep:
        first = self._pass(lambda: remaining() - TASKS_S, _QUICK, RESERVE_S)
        before = remaining()
        tasks, pool = self._look_at_tasks(remaining)
        first = replace(first, tasks=tasks, pool=pool)
        pause = max(BETWEEN_PASSES.total_seconds() - (before - remaining()), 0.0)
        if not first.finished or remaining() < pause + RESERVE_S or not self._will_be_due():
            return first
        self.kicks.clock.sleep(pause)
        second = self._pass(remaining, _QUICK, RESERVE_S)
        kicked, failed = first.kicked + second.kicked, first.failed + second.failed
        return Sweep(2, kicked, failed, second.finished, tasks=tasks, pool=pool)

    def _look_at_tasks(self, remaining: Callable[[], float]) -> tuple[Reconciled, Kept]:
        end = max(remaining() - TASKS_S, RESERVE_S)
        reconciled = self.tasks.reconcile(lambda: remaining() - end)
        return reconciled, self.pool.keep(lambda: remaining() - end)

    def _pass(self, remaining: Callable[[], float], nouns: frozenset[str], reserve: float) -> Sweep:
        kicked = failed = 0
        for noun, name in self._due(self.kicks.journal.due):
            if noun not in nouns:
                continue
            if remaining() < reserve:
                return Sweep(1, kicked, failed, finished=False)
            try:
                kicked += self._see_to(noun, name, remaining)
            except NodusError as error:
                # One line that cannot be kicked, or be read at all, must not keep the others from being kicked.
                failed += 1
                log.error("%s %s was not kicked and stays due: %s", noun, name, error)
        return Sweep(1, kicked, failed)

    def _see_to(self, noun: str, name: str, remaining: Callable[[], float]) -> int:
        """Kicks a line, or those that wait for an account's money. Returns how many were kicked.

        Of a run whose texts have been kept long enough, removes them; brings a batch to its end; removes a key that
        has expired long ago; takes a build of an image on; removes images that nobody uses any more.
        """
        match noun:
            case keys.ACCOUNT:
                return Waiters(self.kicks).serve(name)
            case keys.KEEP:
                self.expiry.expire(name, remaining)
                return 0
            case keys.BATCH:
                self.batches.finish(name, remaining)
                return 0
            case keys.IMAGE_BUILD:
                self.builds.look(name)
                return 0
            case keys.LEFT_IMAGES:
                left = LeftImagesKeeping(self.kicks.journal, self.kicks.clock, self.builds.builder)
                left.clear(name, remaining)
                return 0
            case keys.BEARER:
                expired_keys = ExpiredKeys(self.kicks.journal, self.expiry.payloads, self.kicks.clock)
                expired_keys.remove(name)
                return 0
            case _:
                return int(self.kicks.kick(name))

    def _reclaim(self, remaining: Callable[[], float]) -> int:
        reclaimed = 0
        for uid in self._due(self.kicks.journal.due_values):
            if reclaimed == MOST_RECLAIMED or remaining() < RESERVE_S:
                break
            try:
                reclaimed += self.values.reclaim(uid)
            except NodusError as error:
                log.warning("values of Secret %s stay due: %s", uid, error)
        return reclaimed

    def _due(self, of_shard: Callable[[str, datetime], Iterator[T]]) -> Iterator[T]:
        """What is due, by shard; each minute begins with another one."""
        now = self.kicks.clock.now()
        first = int(now.timestamp() // 60) % len(DUE_SHARDS)
        for shard in DUE_SHARDS[first:] + DUE_SHARDS[:first]:
            yield from of_shard(shard, now)

    def _will_be_due(self) -> bool:
        until = self.kicks.clock.now() + BETWEEN_PASSES
        journal = self.kicks.journal
        return any(noun in _QUICK for shard in DUE_SHARDS for noun, _ in journal.due(shard, until))
