"""Batches that were begun are brought to their end: by their caller, by the sweeper, or by whoever meets their rows.

open ──(its caller's time is over)──► aborted ──► its rows are removed ──► over
committed ──► its rows become like any other's ──► over
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.batches import PATIENCE, SLICE, Wrapped
from nodus_core.journal.payloads import Scope
from nodus_core.kernel.errors import ConditionFailed, RetryableError
from nodus_core.kernel.objects import Batch
from nodus_core.kernel.states import BatchState

RESERVE_S = 5.0
"""Seconds of an invocation that are left when this stops: one slice takes less."""

WAIT_S = 10.0
"""How long somebody who wants a name that an open batch has taken waits for the batch's decision."""

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

    def make_way(self, lost: ConditionFailed) -> None:
        """Waits until the batches that have taken what a lost commit wanted are decided.

        What an aborted one has left is removed, so that the same commit may win now. Raises `RetryableError` when
        one is not decided soon: its caller is slow, or has died.
        """
        for name in sorted({str(row["batch"]) for row in lost.current.values() if "batch" in row}):
            self._wait_for(name)

    def _wait_for(self, name: str) -> None:
        clock, started, pause = self.shelf.clock, self.shelf.clock.now(), 0.05
        while True:
            batch = self.shelf.journal.batch(name)
            if batch is None or batch.state is BatchState.COMMITTED or self.finish(name):
                return
            if (clock.now() - started).total_seconds() >= WAIT_S:
                raise RetryableError(f"batch {name} holds a name that is wanted, and is not decided", AGAIN_S)
            clock.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _settle(self, batch: Batch, wrapped: list[Wrapped]) -> None:
        batches = self.shelf.journal.batches
        if batch.state is BatchState.COMMITTED:
            batches.show(batch, wrapped, self.shelf.clock.now())
        else:
            batches.discard(batch, wrapped)
