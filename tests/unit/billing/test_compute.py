"""Sandbox compute from where a person stands: what it costs, who pays it, what is not started, what is stopped."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from nodus_core.billing.compute import GB_HOUR, LONG, VCPU_HOUR, closed, hourly
from nodus_core.journal.ports import TaskReport
from nodus_core.kernel.metering import AHEAD, counted, price
from nodus_core.kernel.money import Meter
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.api.rest import manifest
from tests.unit.billing.money import CALL, DEAR, DONE, ON_DEMAND, Money

HOUR = VCPU_HOUR + 2 * GB_HOUR


def compute(money: Money, run: str) -> Decimal:
    return Decimal(money.status(run)["cost"]["computeUSD"])


def begin_kept(money: Money) -> None:
    """A run that waits with its sandbox open once it has answered."""
    assert money.run("r", keepAlive=True).code == 201
    money.world.settle()


def say(money: Money) -> int:
    return money.post("agentruns/r/messages", {"payload": "And now?", "messageKey": "k"}).code


@pytest.mark.req("NOD-144", "NOD-145", "NOD-134", "NOD-147")
def test_compute_is_a_charge_of_its_own_beside_the_models() -> None:
    money = Money(rounds=2)
    money.budget("5.00")
    money.begin("r1", "r2")
    for run in ("r1", "r2"):
        cost = money.status(run)["cost"]
        assert Decimal(cost["totalUSD"]) == 2 * CALL
        assert Decimal(cost["totalUSD"]) == sum(
            (Decimal(turn["costUSD"]) for turn in money.status(run)["turns"]), Decimal(0)
        )
        assert Decimal(cost["computeUSD"]) > 0
    shown = money.balance()
    assert Decimal(shown["computeUSD"]) == compute(money, "r1") + compute(money, "r2")
    assert Decimal(shown["spentUSD"]) == Decimal(shown["modelUSD"]) + Decimal(shown["computeUSD"])
    assert shown["reservedUSD"] == "0"
    money.check()


@pytest.mark.req("NOD-142", "NOD-144")
def test_a_run_that_waits_with_its_sandbox_costs_compute_and_no_model() -> None:
    money = Money()
    money.budget("5.00")
    begin_kept(money)
    before = money.status("r")["cost"]
    money.world.pass_time(7200)
    after = money.status("r")["cost"]
    assert money.words("r") == ("Waiting", "MessageWait")
    assert after["totalUSD"] == before["totalUSD"]
    grown = Decimal(after["computeUSD"]) - Decimal(before["computeUSD"])
    assert abs(grown - 2 * HOUR) < Decimal("0.00001")
    booked, held = (Decimal(money.balance()[name]) for name in ("computeUSD", "reservedUSD"))
    assert booked <= Decimal(after["computeUSD"]) <= booked + held, "its time is paid ahead"
    money.check()


@pytest.mark.req("NOD-142")
def test_waiting_takes_one_look_in_each_paid_period() -> None:
    money = Money()
    money.budget("5.00")
    begin_kept(money)
    before = len(money.world.executions.names)
    money.world.pass_time(7200)
    assert len(money.world.executions.names) - before <= 120 * 60 / (LONG - AHEAD).total_seconds() + 1


@pytest.mark.req("NOD-134")
def test_compute_above_the_cap_stops_no_model_call() -> None:
    money = Money(cap="0.05")
    begin_kept(money)
    money.world.pass_time(7200)
    assert compute(money, "r") > Decimal("0.05")
    assert say(money) == 202
    money.world.settle()
    assert money.words("r") == ("Waiting", "MessageWait")
    assert money.calls == 2


@pytest.mark.req("NOD-146", "NODQ-108")
def test_no_sandbox_is_started_under_a_budget_that_does_not_cover_it() -> None:
    money = Money()
    money.budget("0.001")
    money.begin("r")
    assert money.words("r") == ("Waiting", "BudgetBlocked")
    assert money.world.sandboxes.daemons == {}
    assert money.balance()["reservedUSD"] == "0"
    money.budget("5.00")
    money.world.settle()
    assert money.words("r") == ("Succeeded", None)
    assert Decimal(money.balance()["computeUSD"]) == compute(money, "r") > 0
    money.check()


@pytest.mark.req("NOD-146", "NODQ-108", "NOD-142")
def test_a_sandbox_that_waits_is_stopped_when_its_next_period_is_not_paid() -> None:
    money = Money()
    money.budget("0.03")
    begin_kept(money)
    money.world.pass_time(3600)
    assert money.words("r") == ("Waiting", "MessageWait")
    assert money.status("r")["sandbox"]["phase"] == "Deleted"
    assert not any(daemon.alive for daemon in money.world.sandboxes.daemons.values())
    assert Decimal(money.balance()["spentUSD"]) <= Decimal("0.03")
    money.check()
    assert say(money) == 202
    money.world.settle()
    assert money.words("r") == ("Waiting", "BudgetBlocked")
    money.budget("5.00")
    money.world.settle()
    assert money.words("r") == ("Waiting", "MessageWait")
    assert money.calls == 2
    assert len(money.world.sandboxes.daemons) == 2
    money.check()


@pytest.mark.req("NOD-146", "NODQ-108")
def test_a_command_is_ended_with_its_sandbox_and_nobody_has_to_resolve_it() -> None:
    long = says("look", ("run_command", {"command": "sleep 3000", "timeout": 3600}), usage=DEAR)
    money = Money(script=plays([long, long, DONE]), behaviour=lambda kind, request: RUNNING)
    money.budget("0.03")
    money.begin("r")
    money.world.pass_time(3600)
    assert money.words("r") == ("Waiting", "BudgetBlocked")
    tools = [step for step in money.get("agentruns/r/steps").json["items"] if step["kind"] == "tool"]
    assert (tools[0]["state"], tools[0]["error"]) == ("Completed", "Cancelled")
    assert not any(daemon.alive for daemon in money.world.sandboxes.daemons.values())
    assert Decimal(money.balance()["spentUSD"]) <= Decimal("0.03")
    money.check()


@pytest.mark.req("NOD-158", "NODQ-108")
def test_a_setup_that_was_ended_for_want_of_money_is_run_in_the_next_sandbox() -> None:
    asked: list[str] = []

    def behaviour(kind: str, request: dict[str, object]) -> dict[str, object]:
        asked.append(kind)
        return RUNNING if len(asked) == 1 else exited()

    money = Money(behaviour=behaviour)
    money.agent(model=ON_DEMAND, setup="make")
    money.budget("0.03")
    assert money.run("r").code == 201
    money.world.pass_time(3600)
    assert money.words("r") == ("Waiting", "BudgetBlocked")
    money.budget("5.00")
    money.world.settle()
    assert money.words("r") == ("Succeeded", None)
    names = [step["name"] for step in money.get("agentruns/r/steps").json["items"]]
    assert names[:4] == ["sandbox", "setup", "sandbox.2", "setup.2"]
    money.check()


@pytest.mark.req("NOD-122", "NOD-119")
def test_a_run_with_the_users_own_key_costs_compute_and_no_model() -> None:
    money = Money(rounds=2)
    money.apply("secrets/own", manifest("Secret", "own", {"data": {"ANTHROPIC_API_KEY": "sk-plum-9f31"}}))
    money.agent(model={"access": "BYOK", "name": "claude-sonnet-5-5", "apiKeySecret": "own"})
    money.budget("5.00")
    money.begin("r")
    assert money.words("r") == ("Succeeded", None)
    cost, shown = money.status("r")["cost"], money.balance()
    assert (cost["totalUSD"], shown["modelUSD"], money.calls) == ("0", "0", 2)
    assert Decimal(cost["computeUSD"]) == Decimal(shown["spentUSD"]) > 0
    money.check()


@pytest.mark.req("NOD-104")
def test_credits_pay_for_models_alone() -> None:
    money = Money()
    money.admin("AddCredits", amountUSD="10", requestKey="k")
    money.begin("r")
    assert Decimal(money.admin("GetCredits")["remainingUSD"]) == 10 - CALL
    assert compute(money, "r") > 0


def test_the_price_of_a_size_is_that_of_its_processors_and_memory() -> None:
    assert hourly(1024, 2048) == Decimal("0.04937")
    assert hourly(4096, 8192) == Decimal("0.19748")
    assert price(hourly(1024, 2048), LONG) == Decimal("0.012343")


@pytest.mark.req("NOD-144", "NOD-414", "NODQ-108")
@pytest.mark.parametrize("slow_start_s", [0, 90])
def test_the_time_that_counts_is_the_tasks_own(slow_start_s: float) -> None:
    """A task whose image is pulled late has cost nothing until then, whatever its run has waited."""
    money = Money()
    money.budget("5.00")
    begin_kept(money)
    ((arn, daemon),) = money.world.sandboxes.daemons.items()
    asked = money.world.journal.sandbox(daemon.sandbox)
    assert asked is not None
    assert asked.started_at is not None
    money.world.pass_time(600)
    began = asked.started_at + timedelta(seconds=slow_start_s)
    ended = money.world.clock.now() - timedelta(seconds=30)
    report = TaskReport("stopped", "its host died", ended, began)
    money.world.sandboxes.state = lambda task: report if task == arn else TaskReport("missing")
    daemon.alive = False
    money.post("agentruns/r/cancel")
    money.world.pass_time(600)
    assert compute(money, "r") == price(HOUR, ended - began)
    assert Decimal(money.balance()["computeUSD"]) == compute(money, "r")
    money.check()


def test_what_was_booked_is_not_given_back_for_a_providers_later_word() -> None:
    asked = datetime(2026, 1, 1, tzinfo=UTC)
    meter = Meter(HOUR, asked, booked=Decimal("0.01"), held=Decimal("0.02"))
    box = Sandbox("s", "c", SandboxState.GONE, "", asked, "i", task="t", started_at=asked, gone_at=asked)
    assert closed(box, meter, asked).booked == Decimal("0.01")


@pytest.mark.parametrize(
    ("began", "ended", "expected"),
    [
        (None, None, (None, 60)),
        (-5, 70, (0, 60)),
        (20, 50, (20, 50)),
        (50, 20, (20, 20)),
        (None, -9, (None, 0)),
    ],
)
def test_another_clock_is_believed_between_the_asking_and_now_alone(
    began: int | None, ended: int | None, expected: tuple[int | None, int]
) -> None:
    asked = datetime(2026, 1, 1, tzinfo=UTC)

    def at(seconds: int | None) -> datetime | None:
        return None if seconds is None else asked + timedelta(seconds=seconds)

    box = Sandbox("s", "c", SandboxState.RUNNING, "", asked, "i", task="t", started_at=asked)
    assert counted(box, at(began), at(ended), asked + timedelta(seconds=60)) == tuple(map(at, expected))
