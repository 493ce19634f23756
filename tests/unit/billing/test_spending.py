"""Caps, Budgets and credits from where a person stands: what is blocked, what waits, what goes on by itself."""

from dataclasses import replace
from decimal import Decimal

import pytest
from nodus_core.inference.exchange import Usage
from nodus_core.inference.target import Prices
from nodus_core.journal.journal import Journal
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.scripted_model import plays, target

from tests.unit.billing.money import CALL, DONE, LOOK, Money


@pytest.mark.req("NOD-129", "NOD-130", "NOD-132", "NOD-034", "NODQ-88")
def test_a_cap_too_small_for_a_call_waits_without_one_and_says_the_way_out() -> None:
    money = Money(cap="0.000001")
    money.begin("r")
    assert money.words("r") == ("Waiting", "MaxCostReached")
    assert money.calls == 0
    assert "Cancel the run and start a new one" in money.status("r")["message"]
    cost = money.status("r")["cost"]
    assert (cost["totalUSD"], cost["limitUSD"]) == ("0", "0.000001")
    money.post("agentruns/r/cancel")
    money.world.settle()
    assert money.words("r") == ("Cancelled", "Cancelled")


@pytest.mark.req("NOD-131", "NOD-014")
def test_a_run_keeps_the_cap_it_was_created_with() -> None:
    money = Money(cap="0.000001")
    money.begin("r")
    money.agent(model={"access": "OnDemand", "name": "claude-sonnet"}, perRunMaxCostUSD="5.00")
    money.world.settle()
    assert money.words("r") == ("Waiting", "MaxCostReached")
    money.begin("new")
    cost = money.status("new")["cost"]
    assert (cost["totalUSD"], cost["limitUSD"]) == (str(CALL), "5")


def _long(rounds: int) -> Money:
    """A prompt of 100 KB, of which the provider counts 25,000 tokens: 0.025 USD a call, where bytes say 0.1."""
    look = replace(LOOK, usage=Usage(25_000, 10))
    return Money(cap="0.16", script=plays([*[look] * (rounds - 1), replace(DONE, usage=Usage(25_000, 10))]))


@pytest.mark.req("NODQ-89", "NOD-128")
def test_a_long_conversation_does_not_wait_for_what_it_cannot_cost() -> None:
    money = _long(5)
    assert money.run("r", input="x" * 100_000).code == 201
    money.world.settle()
    assert money.words("r") == ("Succeeded", None)
    assert money.calls == 5


@pytest.mark.req("NODQ-89")
def test_what_was_counted_is_known_to_the_next_worker_too() -> None:
    money = _long(5)
    journal = Journal(money.store, money.world.ids, CrashOnce("record.before", 6))
    money.world.journal = journal
    assert money.run("r", input="x" * 100_000).code == 201
    money.world.settle()
    assert money.world.crashes == 1
    assert money.words("r") == ("Succeeded", None)


@pytest.mark.req("NOD-127", "NOD-128")
def test_a_provider_that_counts_more_than_there_can_be_breaks_no_cap() -> None:
    money = Money(script=plays([replace(DONE, usage=Usage(200_000, 10))]))
    money.budget("5.00")
    money.begin("r")
    (step,) = [step for step in money.get("agentruns/r/steps").json["items"] if step["kind"] == "model"]
    assert step["costBasis"] == "Reserve"  # what it says is not believed, and what was held for it is booked
    assert Decimal("0.008") < Decimal(money.status("r")["cost"]["totalUSD"]) < Decimal("0.02")
    assert money.balance()["modelUSD"] == money.status("r")["cost"]["totalUSD"]
    money.check()


@pytest.mark.req("NOD-146", "NOD-147", "NOD-135", "NOD-145")
def test_a_budget_counts_what_all_runs_have_cost() -> None:
    money = Money(rounds=2)
    money.budget("5.00")
    money.begin("r1", "r2", "r3")
    assert {money.words(run)[0] for run in ("r1", "r2", "r3")} == {"Succeeded"}
    shown = money.balance()
    assert Decimal(shown["spentUSD"]) == Decimal(shown["modelUSD"]) + Decimal(shown["computeUSD"])
    assert Decimal(shown["modelUSD"]) == 6 * CALL
    assert shown["reservedUSD"] == "0"
    total = sum(Decimal(money.status(run)["cost"]["totalUSD"]) for run in ("r1", "r2", "r3"))
    assert total == Decimal(shown["modelUSD"])
    money.check()


@pytest.mark.req("NOD-146", "NODQ-108", "NODQ-03")
def test_a_used_up_budget_blocks_calls_and_raising_it_lets_the_waiting_run_go_on() -> None:
    money = Money(rounds=3)
    money.budget("0.027")
    money.begin("r")
    assert money.words("r") == ("Waiting", "BudgetBlocked")
    assert "limitUSD" in money.status("r")["message"]
    assert money.calls == 2
    assert money.balance()["reservedUSD"] == "0", "a waiting run whose sandbox was stopped locks nothing up"
    money.check()
    money.budget("5.00")
    money.world.settle()
    assert money.words("r") == ("Succeeded", None)
    assert Decimal(money.balance()["modelUSD"]) == 3 * CALL
    money.check()


@pytest.mark.req("NOD-146")
def test_a_new_run_under_a_used_up_budget_is_admitted_and_waits() -> None:
    money = Money()
    money.budget("0.000001")
    money.begin("r1", "r2")
    assert {money.words(run) for run in ("r1", "r2")} == {("Waiting", "BudgetBlocked")}
    assert money.calls == 0


def test_a_waiting_run_is_not_looked_at_until_there_is_money() -> None:
    money = Money()
    money.budget("0.000001")
    money.begin("r")
    before = money.commits
    for _ in range(100):
        money.world.clock.advance(60)
        money.world.settle()
    assert money.commits == before


@pytest.mark.req("FLD-11")
def test_money_that_comes_back_wakes_who_waits_for_it() -> None:
    """A budget for one reserve at a time: every run waits for what the one before it gives back."""
    money = Money()
    money.budget("0.045")
    money.begin("r1", "r2", "r3", "r4", "r5", "r6")
    ended = [run for run in ("r1", "r2", "r3", "r4", "r5", "r6") if money.words(run)[0] == "Succeeded"]
    assert (len(ended), money.calls) == (4, 4)
    money.check()
    money.patch("budgets/b", {"spec": {"limitUSD": "0.080"}})
    money.world.settle()
    assert money.calls == 6
    assert Decimal(money.balance()["modelUSD"]) == 6 * CALL


def test_a_cancelled_run_waits_no_more_and_holds_nothing() -> None:
    money = Money()
    money.budget("0.000001")
    money.begin("r")
    money.post("agentruns/r/cancel")
    money.world.settle()
    assert money.words("r")[0] == "Cancelled"
    assert [key for key in money.store.rows() if key.sk.startswith("wait#")] == []


def test_a_budget_that_is_deleted_blocks_nobody() -> None:
    money = Money()
    money.budget("0.000001")
    money.begin("r")
    money.call("DELETE", "budgets/b")
    money.world.settle()
    assert money.words("r")[0] == "Succeeded"
    assert [key for key in money.store.rows() if key.pk.startswith("acct#")] == []


@pytest.mark.parametrize("payer", ["budget", "credits"])
def test_a_run_at_work_goes_on_when_its_last_payer_is_taken_away(payer: str) -> None:
    """Its slice does not cover the next call, and nobody hands out another one (FLD-11)."""
    money = Money(rounds=3)
    if payer == "budget":
        money.budget("0.020")
    else:
        money.admin("SetCredits", remainingUSD="0.015", requestKey="k1")

    def play(request: object, number: int) -> object:
        if number == 0 and payer == "budget":
            money.call("DELETE", "budgets/b")
        elif number == 0:
            money.admin("SetCredits", remainingUSD="unlimited", requestKey="k2")
        return plain(request, number)

    plain = money.world.models.script
    money.world.models.script = play  # type: ignore[assignment]
    money.begin("r")
    assert money.words("r")[0] == "Succeeded"
    assert money.calls == 3
    left = [
        key for key in money.store.rows() if key.pk.startswith("acct#") and not key.sk.startswith("entry#")
    ]
    assert left == [], "accounts that are closed go once nothing is held of them"


def test_each_of_several_budgets_holds() -> None:
    money = Money(rounds=2)
    money.budget("5.00", "wide")
    money.budget("0.015", "narrow")
    money.begin("r")
    assert money.words("r") == ("Waiting", "BudgetBlocked")
    money.budget("5.00", "narrow")
    money.world.settle()
    assert money.words("r")[0] == "Succeeded"
    assert money.balance("wide")["modelUSD"] == money.balance("narrow")["modelUSD"] == str(2 * CALL)
    assert money.balance("wide")["computeUSD"] == money.balance("narrow")["computeUSD"]
    money.check()


@pytest.mark.req("NOD-146")
def test_a_budget_made_while_a_run_works_holds_from_its_next_call() -> None:
    money = Money(rounds=3)

    def play(request: object, number: int) -> object:
        if number == 0:
            money.budget("0.000001")
        return plain(request, number)

    plain = money.world.models.script
    money.world.models.script = play  # type: ignore[assignment]
    money.begin("r")
    assert money.words("r") == ("Waiting", "BudgetBlocked")
    assert money.calls == 1
    assert money.balance()["spentUSD"] == "0", "what was spent before is not the Budget's"


def test_a_lowered_limit_lets_nothing_new_begin() -> None:
    money = Money(rounds=1)
    money.budget("5.00")
    money.begin("r1")
    money.budget("0.005")
    assert money.balance()["remainingUSD"] == "0"
    money.begin("r2")
    assert money.words("r2") == ("Waiting", "BudgetBlocked")


@pytest.mark.req("NOD-133", "NODQ-74", "NODQ-99", "NODQ-03")
def test_a_run_without_credits_waits_and_goes_on_when_they_are_added() -> None:
    money = Money(rounds=2)
    money.admin("SetCredits", remainingUSD="0.015", requestKey="k1")
    money.begin("r")
    assert money.words("r") == ("Waiting", "InsufficientCredits")
    assert money.calls == 1
    money.admin("AddCredits", amountUSD="10", requestKey="k2")
    money.world.settle()
    assert money.words("r")[0] == "Succeeded"
    money.check()


@pytest.mark.req("NOD-104", "NOD-061")
def test_credits_fall_by_exactly_what_the_run_has_cost() -> None:
    money = Money(rounds=2)
    money.admin("AddCredits", amountUSD="10", requestKey="k")
    money.begin("r")
    shown = money.admin("GetCredits")
    assert Decimal(shown["remainingUSD"]) == 10 - Decimal(money.status("r")["cost"]["totalUSD"])
    assert shown["reservedUSD"] == "0"


def test_a_request_key_adds_once_and_unlimited_ends_the_wait() -> None:
    money = Money()
    assert money.admin("GetCredits") == {"unlimited": True}
    for _ in range(2):
        assert money.admin("AddCredits", amountUSD="0.000001", requestKey="k")["remainingUSD"] == "0.000001"
    money.begin("r")
    assert money.words("r") == ("Waiting", "InsufficientCredits")
    assert money.admin("SetCredits", remainingUSD="unlimited", requestKey="u") == {"unlimited": True}
    money.world.settle()
    assert money.words("r")[0] == "Succeeded"
    assert money.admin("SetCredits", remainingUSD="1", requestKey="again")["remainingUSD"] == "1"


def test_another_projects_budget_and_another_organizations_credits_are_not_asked() -> None:
    money = Money()
    reply = money.apply(
        "budgets/b",
        {
            "apiVersion": "nodus.dev/v1",
            "kind": "Budget",
            "metadata": {"name": "b"},
            "spec": {"limitUSD": "0.000001"},
        },
        project="lab",
    )
    assert reply.code == 201
    money.directory.create_organization("other")
    money.operator.perform(
        {
            "operation": "SetCredits",
            "organization": "other",
            "remainingUSD": "0.000001",
            "requestKey": "k",
        }
    )
    money.begin("r")
    assert money.words("r")[0] == "Succeeded"


@pytest.mark.req("NOD-127", "NOD-128", "NOD-129", "NOD-145")
def test_a_call_whose_price_nobody_knows_takes_all_that_is_left_and_no_further_one_is_made() -> None:
    money = Money(rounds=3)
    unpriced = replace(target("sonnet"), prices=Prices())
    money.world.models.target = lambda choice, family: unpriced  # type: ignore[method-assign]
    money.begin("r")
    assert money.words("r") == ("Waiting", "MaxCostReached")
    assert money.calls == 1
    cost = money.status("r")["cost"]
    assert (cost["totalUSD"], cost["limitUSD"]) == ("1", "1")


@pytest.mark.req("NOD-128")
def test_calls_that_cost_nothing_go_on_whatever_is_left() -> None:
    money = Money(rounds=3, cap="0.000001")
    free = replace(target("sonnet"), prices=Prices(Decimal(0), Decimal(0)))
    money.world.models.target = lambda choice, family: free  # type: ignore[method-assign]
    money.begin("r")
    assert money.words("r") == ("Succeeded", None)
    assert money.calls == 3
