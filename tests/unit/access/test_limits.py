"""The rate of a key over several processes: how much passes, how much that costs, and what is said at the end."""

import random
from collections.abc import Callable

import pytest
from nodus_core.access.grant import Rate
from nodus_core.access.limits import Limits, largest_slice
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import rate_key
from nodus_core.journal.rates import Rates
from nodus_core.journal.store import Transaction
from nodus_core.kernel.errors import Refusal
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_store import MemoryStore

TEN = Rate(per_second=10, burst=20)


class Processes:
    """Several processes over one store, and one clock."""

    def __init__(self, count: int = 1) -> None:
        self.clock, self.store = FakeClock(), MemoryStore()
        self.refused: list[Refusal] = []
        rates = Rates(Journal(self.store, CountingIds()).writer)
        self.limits = [Limits(rates, self.clock) for _ in range(count)]

    def passes(self, rate: Rate = TEN, process: int = 0, name: str = "key") -> bool:
        try:
            self.limits[process].spend(name, rate)
        except Refusal as refusal:
            self.refused.append(refusal)
            return False
        return True


def test_the_burst_passes_at_once_and_then_the_rate() -> None:
    one = Processes()
    assert [one.passes() for _ in range(21)] == [True] * 20 + [False]
    one.clock.advance(0.1)
    assert [one.passes() for _ in range(2)] == [True, False]
    one.clock.advance(1)
    assert sum(one.passes() for _ in range(30)) == 10
    one.clock.advance(3600)
    assert sum(one.passes() for _ in range(30)) == 20


def test_what_waits_as_long_as_it_is_told_passes() -> None:
    one = Processes()
    slow = Rate(per_second=1, burst=3)
    while one.passes(slow):
        pass
    with pytest.raises(Refusal) as refused:
        one.limits[0].spend("key", slow)
    assert {refusal.reason for refusal in [*one.refused, refused.value]} == {"TooManyRequests"}
    assert refused.value.retry_after == 1
    one.clock.advance(refused.value.retry_after)
    assert one.passes(slow)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("rate", [TEN, Rate(1, 1), Rate(3, 5), Rate(100, 200), Rate(7, 1)])
def test_no_window_lets_more_through_than_the_rate_and_a_slice_for_each_process(
    rate: Rate, count: int
) -> None:
    several, dice = Processes(count), random.Random(7)
    passed: list[float] = []
    now = 0.0
    for _ in range(4000):
        pause = dice.choice([0, 0, 0, 0, 0.01, 0.1, 0.2]) / rate.per_second
        several.clock.advance(pause)
        now += pause
        if several.passes(rate, dice.randrange(count)):
            passed.append(now)
    spare = count * largest_slice(rate)
    for first in range(0, len(passed), 7):
        for last in range(first, len(passed), 29):
            most = rate.burst + rate.per_second * (passed[last] - passed[first]) + spare
            assert last - first + 1 <= most + 1e-6
    # And it is no less than the rate: who asks all the time gets it, but for what idle hands have let fall.
    assert len(passed) >= rate.per_second * now * 0.5


def test_a_busy_process_writes_once_for_many_calls() -> None:
    one, fast = Processes(), Rate(per_second=100, burst=200)
    for _ in range(10):
        for _ in range(100):
            assert one.passes(fast)
            one.clock.advance(0.01)
    assert len(one.store.commits) <= 10 * 16


def test_calls_that_are_refused_write_nothing_until_there_is_something_to_take() -> None:
    one = Processes()
    while one.passes():
        pass
    written, tried = len(one.store.commits), 0
    plain: Callable[[Transaction, str], None] = one.store.commit

    def counting(transaction: Transaction, token: str) -> None:
        nonlocal tried
        tried += 1
        plain(transaction, token)

    one.store.commit = counting  # type: ignore[method-assign]
    for _ in range(1000):
        assert not one.passes()
    assert (tried, len(one.store.commits)) == (0, written)


def test_a_clock_that_goes_back_ends_what_is_in_hand() -> None:
    one = Processes()
    while one.passes():
        pass
    one.clock.advance(-3600)
    assert not one.passes()  # the count itself lies ahead
    one.clock.advance(3600 + 2)
    assert one.passes()


def test_hands_of_many_keys_fill_no_memory() -> None:
    one = Processes()
    for number in range(1100):
        assert one.passes(name=f"key-{number}")
    assert len(one.limits[0]._hands) == 1000  # the bound is the point


def test_a_count_goes_by_itself_long_after_its_last_use() -> None:
    one = Processes()
    one.passes()
    row = one.store.rows()[rate_key("key")]
    assert row["ttl"] > one.clock.now().timestamp() + 86_400
