"""The sweep: every line that is due is looked at, whatever stands before it, and the time is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

import pytest
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.build_keeping import BuildKeeping
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.sweeper import BETWEEN_PASSES, RESERVE_S, TASKS_S, Sweep, Sweeper
from nodus_core.conversations.task_sweep import TaskSweep
from nodus_core.conversations.warm_pool import WarmPool
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import DUE_SHARDS, conversation_key
from nodus_core.journal.lines import due
from nodus_core.journal.store import Delete, Put, Transaction
from nodus_core.kernel.errors import CorruptRow
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.memory_vault import MemoryVault
from nodus_core.testing.scripted_sandbox import ScriptedSandboxes, exited

INVOCATION_S = 55.0


@dataclass
class Lines:
    """`Kicks` over due rows: a line that is kicked is due no more, a corrupt one stays."""

    store: MemoryStore = field(default_factory=MemoryStore)
    clock: FakeClock = field(default_factory=FakeClock)
    fleet: ScriptedSandboxes = field(
        default_factory=lambda: ScriptedSandboxes(lambda kind, request: exited())
    )
    corrupt: frozenset[str] = frozenset()
    kicked: list[str] = field(default_factory=list[str])
    kick_s: float = 0.0

    def __post_init__(self) -> None:
        self.journal = Journal(self.store, CountingIds())
        self.started = self.clock.now()

    def place(self, name: str, at: datetime) -> None:
        key = conversation_key(name)
        row = Put({"pk": key.pk, "sk": key.sk, **due(key.pk, at)})
        self.store.commit(Transaction("place", (row,)), f"place {name}")

    def kick(self, line: str) -> bool:
        self.clock.advance(self.kick_s)
        if line in self.corrupt:
            raise CorruptRow(line)
        self.kicked.append(line)
        gone = Delete(conversation_key(line))
        self.store.commit(Transaction("kick", (gone,)), f"kick {line}")
        return True

    def remaining(self) -> float:
        return INVOCATION_S - (self.clock.now() - self.started).total_seconds()

    def sweep(self) -> Sweep:
        self.started = self.clock.now()
        values = Reclaim(self.journal, MemoryVault(), self.clock)
        expiry = Expiry(self.journal, MemoryPayloads(), self.clock)
        batches = BatchKeeping(Shelf(self.journal, expiry.payloads, self.clock))
        kicks = cast("Kicks", self)
        tasks = TaskSweep(self.fleet, kicks)
        pool = WarmPool(self.journal, self.fleet, self.fleet, self.clock, CountingIds())
        return Sweeper(kicks, tasks, pool, values, expiry, batches, BuildKeeping(batches.shelf)).sweep(
            self.remaining
        )


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


@pytest.mark.req("NOD-085")
def test_lines_that_cannot_be_kicked_keep_no_other_from_it_however_many_they_are() -> None:
    bad = names(1500)
    lines = Lines(corrupt=frozenset(bad))
    for name in bad:
        lines.place(name, lines.clock.now())
    lines.clock.advance(1)
    for name in ("young1", "young2"):
        lines.place(name, lines.clock.now())
    sweep = lines.sweep()
    assert sorted(lines.kicked) == ["young1", "young2"]
    assert (sweep.kicked, sweep.failed, sweep.finished) == (2, 3000, True)


def test_a_sweep_ends_before_its_invocation_and_says_that_it_was_cut_short() -> None:
    lines = Lines(kick_s=1.0)
    for name in names(200):
        lines.place(name, lines.clock.now())
    sweep = lines.sweep()
    assert lines.remaining() >= RESERVE_S - lines.kick_s
    assert (sweep.passes, sweep.finished) == (1, False)


def test_sweeps_that_are_cut_short_leave_no_shard_out_for_ever() -> None:
    bad = names(400)
    lines = Lines(corrupt=frozenset(bad), kick_s=1.0)
    for name in bad:
        lines.place(name, lines.clock.now())
    lines.clock.advance(1)
    for number in range(20):
        lines.place(f"young{number}", lines.clock.now())
    lines.kick_s = 0.5  # a shard of fifty takes half of a sweep
    for _ in DUE_SHARDS:
        lines.sweep()
        lines.clock.advance(60 - (lines.clock.now().timestamp() % 60))
    assert len(lines.kicked) == 20


def test_a_second_pass_that_the_time_does_not_allow_is_left_out() -> None:
    lines = Lines(kick_s=1.0)
    for name in names(25):
        lines.place(name, lines.clock.now())
    lines.place("later", datetime.fromtimestamp(lines.clock.now().timestamp() + 40, lines.clock.now().tzinfo))
    assert lines.sweep() == Sweep(1, 25, 0)
    lines.kick_s = 0.0
    assert lines.sweep() == Sweep(2, 1, 0)


class Slow(ScriptedSandboxes):
    """A cluster that takes its time with every page of a list that does not end."""

    def __init__(self, lines: Lines, seconds: float) -> None:
        super().__init__(lambda kind, request: exited())
        self.lines, self.seconds, self.looks = lines, seconds, 0

    def pages(self) -> Iterator[Sequence[str]]:
        self.looks += 1
        while True:
            self.lines.clock.advance(self.seconds)
            yield []


@pytest.mark.req("FLD-10", "NOD-085")
def test_tasks_are_looked_at_in_a_time_of_their_own() -> None:
    lines = Lines(kick_s=1.0)
    lines.fleet = slow = Slow(lines, 1.0)
    for name in names(200):
        lines.place(name, lines.clock.now())
    sweep = lines.sweep()
    assert (slow.looks, sweep.tasks.finished, sweep.finished) == (1, False, False)
    assert sweep.kicked == INVOCATION_S - TASKS_S - RESERVE_S + 1
    assert lines.remaining() >= RESERVE_S - 1


@pytest.mark.req("FLD-10", "NOD-074")
def test_a_cluster_that_is_slow_makes_no_line_wait() -> None:
    lines = Lines()
    lines.fleet = Slow(lines, 1.0)
    lines.place("now", lines.clock.now())
    lines.place("soon", lines.clock.now() + timedelta(seconds=20))
    sweep = lines.sweep()
    assert (lines.kicked, sweep.tasks.finished) == (["now", "soon"], False)
    assert lines.clock.now() - lines.started == BETWEEN_PASSES
