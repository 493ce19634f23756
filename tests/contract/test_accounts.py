"""Commits on accounts, on every store: what each moves, when it refuses, and 64 runs at one Budget (FLD-11)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from nodus_core.billing.credits import Credits
from nodus_core.billing.slices import lacking
from nodus_core.journal.access import Access, Organization, organization_row
from nodus_core.journal.accounts import closing, credits_id, limiting, opening
from nodus_core.journal.fence import Fence
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import DUE_SHARDS, conversation_key, run_key
from nodus_core.journal.store import Absent, Operation, Put, Store
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.money import Account, Purse
from nodus_core.kernel.objects import Hold, Run
from nodus_core.kernel.progress import begin, settle
from nodus_core.kernel.states import Guarantee, RunState, TaskKind, TaskState
from nodus_core.kernel.tasks import Task
from nodus_core.testing.clock import CountingIds, FakeClock

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RESERVE, COST = Decimal("0.09"), Decimal("0.07")
THREADS = 16


@pytest.fixture
def journal(store: Store) -> Journal:
    return Journal(store, CountingIds())


def budget(journal: Journal, limit: str, name: str = "b") -> Account:
    amount = Decimal(limit)
    account = Account(name, "Budget", "acme", name, amount, available=amount, project="web")
    known = journal.accounts.budgets_of("acme", "web")
    journal.writer.commit("open-account", *opening(account, known))
    return account


def run(journal: Journal, name: str = "r") -> Run:
    made = Run(name, f"c-{name}", 1, RunState.RUNNING, {"main": Hold(1, "w")}, Decimal(1), NOW)
    journal.writer.commit("run", Put(stored(run_key(name), made), when=Absent()))
    return made


def fence(of: Run, generation: int = 1) -> Fence:
    return Fence(of.conversation, generation, "w")


def payers(journal: Journal) -> tuple[Account, ...]:
    return journal.accounts.payers("acme", "web")


def only(journal: Journal) -> Account:
    (account,) = payers(journal)
    return account


def written(journal: Journal, before: Run, after: Run) -> Run:
    """A run's head as a step of its journal writes it."""
    after = replace(after, version=before.version + 1)
    journal.writer.commit("record", Put(stored(run_key(after.uid), after)))
    return after


def call(of: Run, key: str = "r1") -> Task:
    return Task(
        of.uid, key, TaskKind.MODEL, TaskState.RUNNING, Guarantee.AT_LEAST_ONCE, 1, NOW, reserved=RESERVE
    )


def ended(task: Task, cost: Decimal | None) -> Task:
    return replace(task, state=TaskState.COMPLETED, cost=cost, finished_at=NOW)


def due(journal: Journal) -> list[tuple[str, str]]:
    return [found for shard in DUE_SHARDS for found in journal.due(shard, NOW + timedelta(days=1))]


def refused(work: Callable[[], object]) -> bool:
    try:
        work()
    except ConditionFailed:
        return True
    return False


def test_a_slice_goes_over_and_what_was_not_spent_comes_back(journal: Journal) -> None:
    budget(journal, "5.00")
    funded = journal.accounts.fund(fence(made := run(journal)), made, payers(journal), Decimal("0.36"))
    assert funded == journal.run("r")
    assert (only(journal).available, only(journal).held) == (Decimal("4.64"), Decimal("0.36"))
    begun = written(journal, funded, begin(funded, [call(funded)]))
    assert begun.purse == Purse(("b",), Decimal("0.36"), Decimal("0.27"))
    spent = written(journal, begun, settle(begun, [ended(call(begun), COST)]))
    rested = journal.accounts.give_back(fence(spent), spent, payers(journal), NOW)
    assert rested == journal.run("r")
    assert rested.purse is None
    account = only(journal)
    assert (account.available, account.held, account.models) == (Decimal("4.93"), 0, COST)


def test_what_is_reserved_stays_held_when_the_rest_goes_back(journal: Journal) -> None:
    budget(journal, "5.00")
    made = run(journal)
    funded = journal.accounts.fund(fence(made), made, payers(journal), Decimal("0.20"))
    begun = written(journal, funded, begin(funded, [call(funded)]))
    rested = journal.accounts.give_back(fence(begun), begun, payers(journal), NOW)
    assert rested.purse == Purse(("b",), held=RESERVE)
    assert only(journal).held == RESERVE
    spent = written(journal, rested, settle(rested, [ended(call(rested), None)]))
    journal.accounts.give_back(fence(spent), spent, payers(journal), NOW)
    assert (only(journal).held, only(journal).models) == (0, RESERVE), "an unknown cost is the whole reserve"


@pytest.mark.req("NOD-073")
def test_a_late_or_fenced_worker_moves_nothing(journal: Journal) -> None:
    budget(journal, "5.00")
    made = run(journal)
    journal.accounts.fund(fence(made), made, payers(journal), RESERVE)
    before = only(journal)
    assert refused(lambda: journal.accounts.fund(fence(made), made, payers(journal), RESERVE))
    assert refused(lambda: journal.accounts.give_back(fence(made), made, payers(journal), NOW))
    current = journal.run("r")
    assert current is not None
    stale = fence(current, generation=0)
    assert refused(lambda: journal.accounts.give_back(stale, current, payers(journal), NOW))
    assert only(journal) == before


def test_all_payers_hand_over_or_none(journal: Journal) -> None:
    budget(journal, "5.00", "wide")
    budget(journal, "0.05", "narrow")
    made = run(journal)
    assert refused(lambda: journal.accounts.fund(fence(made), made, payers(journal), RESERVE))
    assert [account.held for account in payers(journal)] == [0, 0]
    assert journal.run("r") == made


@pytest.mark.req("NODQ-108")
def test_a_waiter_is_found_by_whoever_frees_money(journal: Journal) -> None:
    budget(journal, "0.05")
    made = run(journal)
    _wait(journal, made, journal.accounts.wait(fence(made), made, only(journal), RESERVE))
    assert [waiter.need for waiter in journal.accounts.waiters("b")] == [RESERVE]
    assert (only(journal).hungry, due(journal)) == (True, [])
    asleep = replace(only(journal), hungry=False)
    assert refused(lambda: _limit(journal, asleep, "1.00")), "raised by one who has not seen the waiter"
    _limit(journal, only(journal), "1.00")
    assert due(journal) == [("acct", "b")]
    seen = only(journal)
    waiting = journal.run("r")
    assert waiting is not None
    funded = journal.accounts.fund(fence(waiting), waiting, payers(journal), RESERVE)
    assert funded.purse == Purse(("b",), RESERVE, RESERVE)
    assert list(journal.accounts.waiters("b")) == []
    journal.accounts.calm(seen, None, hungry=False)
    assert (only(journal).hungry, due(journal)) == (False, [])


def test_nobody_waits_for_money_that_is_there(journal: Journal) -> None:
    budget(journal, "0.05")
    made, seen = run(journal), only(journal)
    _limit(journal, seen, "1.00")
    assert refused(lambda: _wait(journal, made, journal.accounts.wait(fence(made), made, seen, RESERVE)))
    assert list(journal.accounts.waiters("b")) == []


def test_news_that_came_meanwhile_is_not_calmed_away(journal: Journal) -> None:
    budget(journal, "0.05")
    made = run(journal)
    _wait(journal, made, journal.accounts.wait(fence(made), made, only(journal), RESERVE))
    seen = only(journal)
    _limit(journal, seen, "1.00")
    assert refused(lambda: journal.accounts.calm(seen, None, hungry=False))
    assert due(journal) == [("acct", "b")]


def test_a_closed_account_pays_no_more_and_goes_when_nothing_is_held(journal: Journal) -> None:
    budget(journal, "5.00")
    made = run(journal)
    funded = journal.accounts.fund(fence(made), made, payers(journal), RESERVE)
    journal.writer.commit("close-account", *closing(only(journal), NOW))
    assert payers(journal) == ()
    account = journal.accounts.account("b")
    assert account is not None
    assert refused(lambda: journal.accounts.remove(account)), "a run still holds some of it"
    journal.accounts.give_back(fence(funded), funded, [account], NOW)
    account = journal.accounts.account("b")
    assert account is not None
    journal.accounts.remove(account)
    assert journal.accounts.account("b") is None


@pytest.mark.req("NODQ-99")
def test_credits_grow_once_for_each_request(journal: Journal) -> None:
    journal.writer.commit("create-organization", organization_row(Organization("acme", NOW)))
    credit = Credits(Access(journal.writer), journal.accounts, journal.ledger, FakeClock())
    assert credit.read("acme") == {"unlimited": True}
    with pytest.raises(Refusal, match="there is no organization 'nobody'"):
        credit.read("nobody")
    for key in ("k1", "k1", "k2"):
        credit.add("acme", "1.50", key)
    account = journal.accounts.account(credits_id("acme"))
    assert account is not None
    assert (account.limit, account.available) == (3, 3)
    assert credit.set("acme", "0.25", "k3")["remainingUSD"] == "0.25"
    assert payers(journal)[0].id == "credits-acme"
    assert credit.set("acme", "unlimited", "k4") == {"unlimited": True}
    assert payers(journal) == ()


@pytest.mark.req("FLD-11")
def test_64_runs_at_once_never_hold_more_than_the_budget(journal: Journal) -> None:
    """Cap 0.50, reserve 0.09, real cost 0.07: five at once, six in all; then what is left is too little."""
    budget(journal, "0.50")
    runs = [run(journal, f"r{number}") for number in range(64)]

    def ask(made: Run) -> Run | None:
        """As `conversations.funding` does: look, then hand over; whoever lost the race looks again."""
        seen = payers(journal)
        while lacking(seen, RESERVE) is None:
            try:
                return journal.accounts.fund(fence(made), made, seen, RESERVE)
            except ConditionFailed:
                seen = payers(journal)
        return None

    def spend(funded: Run) -> None:
        begun = written(journal, funded, begin(funded, [call(funded)]))
        spent = written(journal, begun, settle(begun, [ended(call(begun), COST)]))
        while refused(lambda: journal.accounts.give_back(fence(spent), spent, payers(journal), NOW)):
            pass

    with ThreadPoolExecutor(THREADS) as workers:
        funded = [found for found in workers.map(ask, runs) if found is not None]
        assert len(funded) == 5
        assert (only(journal).available, only(journal).held) == (Decimal("0.05"), Decimal("0.45"))
        list(workers.map(spend, funded))
        rest = [made for made in runs if made.uid not in {one.uid for one in funded}]
        sixth = [found for found in workers.map(ask, rest) if found is not None]
        assert len(sixth) == 1
        list(workers.map(spend, sixth))
        assert [found for found in workers.map(ask, rest[:8]) if found is not None] == []
    assert (only(journal).models, only(journal).held) == (Decimal("0.42"), 0)
    assert only(journal).available == Decimal("0.08")


def _wait(journal: Journal, of: Run, operations: tuple[Operation, ...]) -> None:
    """The commit of a line that rests; the conversation's head stands for what else is in it."""
    head = conversation_key(of.conversation)
    journal.writer.commit("rest", Put({"pk": head.pk, "sk": head.sk}), *operations)


def _limit(journal: Journal, account: Account, limit: str) -> None:
    journal.writer.commit("limit", limiting(account, Decimal(limit), NOW))
