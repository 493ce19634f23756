"""Commits on the meters of sandboxes, on every store: what each moves, and when it refuses."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from nodus_core.journal.accounts import opening
from nodus_core.journal.fence import Fence
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import conversation_key, sandbox_key
from nodus_core.journal.meters import moves
from nodus_core.journal.store import Absent, Put, Store
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import Account, Meter
from nodus_core.kernel.objects import Conversation, Line, ObjectKey
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.text import Inline
from nodus_core.testing.clock import CountingIds

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)
HELD = Decimal("0.10")
FENCE = Fence("c", 1, "w")


@pytest.fixture
def journal(store: Store) -> Journal:
    return Journal(store, CountingIds())


@pytest.fixture
def budget(journal: Journal) -> Account:
    account = Account("b", "Budget", "acme", "b", Decimal(1), available=Decimal(1), project="web")
    journal.writer.commit("open-account", *opening(account, frozenset()))
    return account


@pytest.fixture
def sandbox(journal: Journal, budget: Account) -> Sandbox:
    """A running sandbox for which the Budget holds 0.10 USD."""
    meter = Meter(Decimal("0.40"), LATER, payers=("b",), held=HELD)
    made = Sandbox("s", "c", SandboxState.RUNNING, "", NOW, "image", task="t", started_at=NOW, meter=meter)
    key = ObjectKey("acme", "web", "AgentRun", "r")
    head = Conversation("c", key, Inline("{}"), Line(1, "w"), NOW, Decimal(1), sandbox="s", sandboxes=1)
    journal.writer.commit(
        "ask",
        Put(stored(sandbox_key("s"), made), when=Absent()),
        Put(stored(conversation_key("c"), head), when=Absent()),
        *moves(replace(meter, payers=(), held=Decimal(0)), meter, (budget,), NOW),
    )
    return made


def account(journal: Journal) -> Account:
    found = journal.accounts.account("b")
    assert found is not None
    return found


def figures(journal: Journal) -> tuple[Decimal, Decimal, Decimal]:
    found = account(journal)
    return found.available, found.held, found.compute


def meter_of(sandbox: Sandbox) -> Meter:
    assert sandbox.meter is not None
    return sandbox.meter


def following(sandbox: Sandbox, *, booked: str, held: str = "0.10") -> Meter:
    before = meter_of(sandbox)
    return replace(before, booked=Decimal(booked), held=Decimal(held), periods=before.periods + 1)


def final(sandbox: Sandbox, *, booked: str) -> Meter:
    return replace(following(sandbox, booked=booked, held="0"), payers=(), closed=True)


def extend(journal: Journal, sandbox: Sandbox, after: Meter, fence: Fence = FENCE) -> Sandbox:
    return journal.meters.extend(fence, sandbox, after, (account(journal),), NOW)


def book(journal: Journal, sandbox: Sandbox, after: Meter, fence: Fence = FENCE) -> Sandbox:
    head = journal.conversation("c")
    assert head is not None
    _, booked = journal.meters.book(fence, head, sandbox, after, accounts=(account(journal),), now=NOW)
    return booked


def refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except ConditionFailed:
        return True
    return False


@pytest.mark.req("NOD-146")
def test_a_period_is_held_booked_and_given_back(journal: Journal, sandbox: Sandbox) -> None:
    assert figures(journal) == (Decimal("0.90"), HELD, 0)
    paid = extend(journal, sandbox, following(sandbox, booked="0.08"))
    assert figures(journal) == (Decimal("0.82"), HELD, Decimal("0.08"))
    journal.sandboxes.gone("s", "over", LATER)
    found = journal.sandbox("s")
    assert found is not None
    assert (found.meter, found.gone_at) == (paid.meter, LATER)
    book(journal, found, final(found, booked="0.11"))
    assert figures(journal) == (Decimal("0.89"), 0, Decimal("0.11"))
    head = journal.conversation("c")
    assert head is not None
    assert head.compute == Decimal("0.11")


@pytest.mark.req("NOD-147")
def test_no_period_is_paid_and_no_end_is_booked_twice(journal: Journal, sandbox: Sandbox) -> None:
    extend(journal, sandbox, following(sandbox, booked="0.08"))
    assert refused(lambda: extend(journal, sandbox, following(sandbox, booked="0.08")))
    journal.sandboxes.gone("s", "over", LATER)
    found = journal.sandbox("s")
    assert found is not None
    book(journal, found, final(found, booked="0.11"))
    assert refused(lambda: book(journal, found, final(found, booked="0.11")))
    assert refused(lambda: extend(journal, found, following(found, booked="0.11")))
    assert figures(journal) == (Decimal("0.89"), 0, Decimal("0.11"))


def test_a_worker_that_has_lost_its_line_moves_no_money(journal: Journal, sandbox: Sandbox) -> None:
    late = Fence("c", 1, "another")
    assert refused(lambda: extend(journal, sandbox, following(sandbox, booked="0.08"), late))
    journal.sandboxes.gone("s", "over", LATER)
    assert refused(lambda: book(journal, sandbox, final(sandbox, booked="0.08"), late))
    assert figures(journal) == (Decimal("0.90"), HELD, 0)


@pytest.mark.req("NODQ-108")
def test_no_period_is_paid_by_a_budget_that_has_not_got_it(journal: Journal, sandbox: Sandbox) -> None:
    assert refused(lambda: extend(journal, sandbox, following(sandbox, booked="0.05", held="0.96")))
    extend(journal, sandbox, following(sandbox, booked="0.05", held="0.95"))
    assert figures(journal) == (0, Decimal("0.95"), Decimal("0.05"))


def test_what_a_sandbox_has_cost_is_booked_also_beyond_what_was_held(
    journal: Journal, sandbox: Sandbox
) -> None:
    journal.sandboxes.gone("s", "over", LATER)
    found = journal.sandbox("s")
    assert found is not None
    book(journal, found, final(found, booked="1.20"))
    assert figures(journal) == (Decimal("-0.20"), 0, Decimal("1.20"))


def test_no_conversation_lets_go_of_a_sandbox_that_is_not_booked(journal: Journal, sandbox: Sandbox) -> None:
    assert refused(lambda: journal.sandboxes.disown(FENCE, "s"))
    journal.sandboxes.gone("s", "over", LATER)
    assert refused(lambda: journal.sandboxes.disown(FENCE, "s"))
    found = journal.sandbox("s")
    assert found is not None
    book(journal, found, final(found, booked="0.01"))
    journal.sandboxes.disown(FENCE, "s")
