"""Batches that were begun are brought to their end: by their caller, by the sweeper, or by whoever meets their rows.

open ──(its caller's time is over)──► aborted ──► its rows are removed ──► over
committed ──► its rows become like any other's ──► over
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.batches import PATIENCE, SLICE, Wrapped
from nodus_core.journal.payloads import Scope
from nodus_core.kernel.errors import ConditionFailed, RetryableError
from nodus_core.kernel.objects import Batch
from nodus_core.kernel.states import BatchState

RESERVE_S = 5.0
"""Seconds of an invocation that are left when this stops: one slice takes less."""

WAIT = timedelta(seconds=10)
"""How long somebody who wants names that open batches have taken waits for their decisions in all."""

AGAIN_S = 10.0
"""When to try again after that."""

MOST_LOST_RACES = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchKeeping:
    """Use cases on batches of one journal. Each may be repeated after a crash at any point."""

    shelf: Shelf

    def finish(self, name: str, remaining: Callable[[], float] = lambda: RESERVE_S) -> bool:
        """Brings a batch to its end, unless its caller has time left to commit it. Returns whether it is over.

        `remaining`: seconds that the invocation has left. Raises `ConditionFailed` when its rows change all the time,
        `StoreUnavailable`.
        """
        batch = self.shelf.journal.batch(name)
        if batch is not None and batch.state is BatchState.OPEN:
            if self.shelf.clock.now() < batch.opened_at + PATIENCE:
                return False
            self.give_up(batch)
            batch = self.shelf.journal.batch(name)
        if batch is None:
            return True
        if not self._unwrap(batch, remaining):
            return False
        if batch.state is BatchState.ABORTED:
            for uid in batch.uids:
                self.shelf.payloads.delete_scope(Scope(batch.org, uid))
        self.shelf.journal.batches.over(batch)
        return True

    def _unwrap(self, batch: Batch, remaining: Callable[[], float]) -> bool:
        """Shows or removes every row that names the batch. False: there was no time for all of them."""
        lost = 0
        while wrapped := self.shelf.journal.batches.wrapped(batch):
            if remaining() < RESERVE_S:
                return False
            try:
                self._settle(batch, wrapped[:SLICE])
            except ConditionFailed as race:
                lost += 1
                if lost > MOST_LOST_RACES:
                    raise
                log.info("batch %s is looked at again: %s", batch.id, race)
        return True

    def give_up(self, batch: Batch) -> None:
        """Nothing of the batch will be there, unless it is decided already."""
        try:
            self.shelf.journal.batches.abort(batch, self.shelf.clock.now())
        except ConditionFailed:
            log.info("batch %s was decided already", batch.id)

    def way_maker(self) -> Callable[[ConditionFailed], None]:
        """For one call, what is done about each commit that it loses: it waits until the batches that have taken what
        it wanted are decided, and what aborted ones have left is removed, so that the same commit may win now.

        That raises `RetryableError` when they are not decided soon: a caller is slow, or has died, or too many want
        the same names. All waits of the call together are bounded, as its invocation is.
        """
        return partial(self._make_way, until=self.shelf.clock.now() + WAIT)

    def _make_way(self, lost: ConditionFailed, until: datetime) -> None:
        names = sorted({str(row["batch"]) for row in lost.current.values() if "batch" in row})
        if names and self.shelf.clock.now() >= until:
            raise RetryableError(
                "many calls want the same names at the same time; nothing was stored", AGAIN_S
            )
        for name in names:
            self._wait_for(name, until)

    def _wait_for(self, name: str, until: datetime) -> None:
        clock, pause = self.shelf.clock, 0.05
        while True:
            batch = self.shelf.journal.batch(name)
            if batch is None or batch.state is BatchState.COMMITTED or self.finish(name):
                return
            if clock.now() >= until:
                raise RetryableError(f"batch {name} holds a name that is wanted, and is not decided", AGAIN_S)
            clock.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _settle(self, batch: Batch, wrapped: list[Wrapped]) -> None:
        batches = self.shelf.journal.batches
        if batch.state is BatchState.COMMITTED:
            batches.show(batch, wrapped, self.shelf.clock.now())
        else:
            batches.discard(batch, wrapped)
