"""The count of uses, on every store: uses of several processes add up."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from nodus_core.aws.system import FreshIds
from nodus_core.journal.journal import Journal
from nodus_core.journal.rates import Rates
from nodus_core.journal.store import Store

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_uses_are_given_up_to_the_burst_and_come_back_with_time(store: Store) -> None:
    rates = Rates(Journal(store, FreshIds()).writer)
    assert rates.take("k", 10, 5, 3, NOW).uses == 3
    assert rates.take("k", 10, 5, 3, NOW).uses == 2
    nothing = rates.take("k", 10, 5, 1, NOW)
    assert (nothing.uses, round(nothing.wait, 3)) == (0, 0.1)
    assert rates.take("k", 10, 5, 3, NOW + timedelta(seconds=0.2)).uses == 2
    assert rates.take("k", 10, 5, 9, NOW + timedelta(hours=1)).uses == 5
    assert rates.last_uses(["k", "other"]) == [NOW + timedelta(hours=1), None]


def test_processes_that_take_at_once_get_no_more_than_there_is(store: Store) -> None:
    rates = Rates(Journal(store, FreshIds()).writer)
    with ThreadPoolExecutor(8) as processes:
        taken = list(processes.map(lambda _: rates.take("k", 10, 50, 4, NOW).uses, range(20)))
    # Where an answer is lost, a use may be counted that nobody got: never the other way round.
    assert 0 < sum(taken) <= 50
