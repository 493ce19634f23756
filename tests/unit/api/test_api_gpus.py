"""Sandboxes with GPUs: where a deployment has machines with some, and where it has none (NODQ-63)."""

from decimal import Decimal
from typing import Any

import pytest
from nodus_core.billing.compute import BOOTING, SHORT
from nodus_core.conversations.launching import GPU_START_LIMIT_S, START_LIMIT_S
from nodus_core.journal.ports import TaskReport, TaskRequest
from nodus_core.sandboxes.gpus import Gpus
from nodus_core.testing.scripted_sandbox import RUNNING

from tests.unit.api.rest import Reply, Rest, manifest

ONE = Gpus("g5.xlarge", 1, Decimal(4), Decimal(14), Decimal("1.006"))
FOUR = Gpus("g5.12xlarge", 4, Decimal(48), Decimal(168), Decimal("5.672"))


def sandbox(
    rest: Rest, name: str = "s", /, *, gpu: Any = 1, cpu: Any = 4, memory: Any = 14, **more: Any
) -> Reply:
    return rest.post(
        "sandboxes",
        manifest("Sandbox", name, {"resources": {"cpu": cpu, "memory": memory, "gpu": gpu}, **more}),
    )


@pytest.fixture
def rest() -> Rest:
    return Rest(behaviour=lambda kind, request: RUNNING, gpus=ONE)


@pytest.fixture
def slow(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> Rest:
    """Its daemons do not say hello before they are let."""
    sandboxes = rest.world.sandboxes
    started = sandboxes.run

    def run(request: TaskRequest) -> str:
        task = started(request)
        sandboxes.daemons[task].deaf = True
        return task

    monkeypatch.setattr(sandboxes, "run", run)
    return rest


@pytest.mark.req("NODQ-63")
def test_a_sandbox_gets_the_gpus_that_it_asks_for(rest: Rest) -> None:
    made = sandbox(rest)
    assert made.code == 201, made.json
    assert made.json["status"]["resources"] == {"cpu": "4", "memory": "14", "gpu": 1}
    assert sandbox(rest, "plain", gpu=0).code == 201
    rest.world.pass_time(60)
    assert sorted(rest.world.sandboxes.gpus.values()) == [0, 1]
    assert rest.get("sandboxes/s").json["status"]["phase"] == "Running"


@pytest.mark.req("NODQ-63")
@pytest.mark.parametrize("size", [{"gpu": 2}, {"cpu": 8, "memory": 16}, {"memory": 15}])
def test_more_than_a_machine_has_is_refused_with_what_it_has(rest: Rest, size: dict[str, Any]) -> None:
    refused = sandbox(rest, **size)
    assert (refused.code, refused.json["reason"]) == (422, "GPUUnavailable")
    assert refused.fields == ["spec.resources.gpu"]
    assert "g5.xlarge" in refused.json["message"]
    assert rest.get("sandboxes/s").code == 404


@pytest.mark.req("NODQ-63")
@pytest.mark.parametrize("gpu", [-1, 17, "1", 0.5])
def test_what_is_no_number_of_gpus_is_invalid_as_any_field(rest: Rest, gpu: Any) -> None:
    refused = sandbox(rest, gpu=gpu)
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    assert refused.fields == ["spec.resources.gpu"]


@pytest.mark.req("NODQ-63")
def test_without_machines_for_it_a_gpu_is_refused_also_in_a_dry_run() -> None:
    rest = Rest()
    for more in ({}, {"query": {"dryRun": "All"}}):
        refused = rest.post(
            "sandboxes",
            manifest("Sandbox", "s", {"resources": {"cpu": 4, "memory": 14, "gpu": 1}}),
            **more,
        )
        assert (refused.code, refused.json["reason"]) == (422, "GPUUnavailable")
        assert refused.json["message"].endswith("spec.resources.gpu must be 0: sandboxes have no GPU")


@pytest.mark.req("NODQ-63")
def test_its_time_costs_its_part_of_the_machine_by_the_price_of_the_day_when_it_was_made(rest: Rest) -> None:
    sandbox(rest)
    rest.world.pass_time(3600)
    rest.post("sandboxes/s/stop")
    rest.world.settle()
    cost = Decimal(rest.get("sandboxes/s").json["status"]["costUSD"])
    assert Decimal("0.95") < cost < Decimal("1.05")


@pytest.mark.parametrize(
    ("gpus", "cpu", "memory", "part"),
    [(1, 4, 14, "0.25"), (4, 4, 14, "1"), (1, 16, 30, "0.3333"), (1, 4, 84, "0.5"), (1, 48, 168, "1")],
)
def test_a_part_of_a_machine_costs_as_much_of_it_as_it_takes_most_of(
    gpus: int, cpu: int, memory: int, part: str
) -> None:
    hourly = FOUR.hourly(gpus, Decimal(cpu), Decimal(memory))
    assert abs(hourly / FOUR.usd - Decimal(part)) < Decimal("0.0001")


def test_a_machine_that_must_be_started_first_is_waited_for(slow: Rest) -> None:
    sandbox(slow)
    sandbox(slow, "plain", gpu=0)
    slow.world.pass_time(START_LIMIT_S + 60)
    statuses = [slow.get(f"sandboxes/{name}").json["status"] for name in ("s", "plain")]
    assert [status["phase"] for status in statuses] == ["Pending", "Paused"]
    for daemon in slow.world.sandboxes.daemons.values():
        daemon.deaf = False
    slow.world.pass_time(60)
    assert slow.get("sandboxes/s").json["status"]["phase"] == "Running"


@pytest.mark.req("NOD-414")
@pytest.mark.parametrize(
    ("report", "most"),
    [
        (TaskReport("pending"), "0"),  # no machine came: its image was never pulled
        (TaskReport("running"), "0.3"),  # its daemon never said hello, and its time is not told
    ],
    ids=["waits", "runs"],
)
def test_who_waits_for_a_machine_in_vain_pays_nothing(
    slow: Rest, monkeypatch: pytest.MonkeyPatch, report: TaskReport, most: str
) -> None:
    sandbox(slow)
    monkeypatch.setattr(slow.world.sandboxes, "state", lambda task: report)
    slow.world.pass_time(GPU_START_LIMIT_S + 120)
    status = slow.get("sandboxes/s").json["status"]
    assert status["reason"] == "SandboxStartFailed"
    cost = Decimal(status["costUSD"])
    assert (cost <= Decimal(most), bool(cost)) == (True, most != "0")


def test_a_machine_that_does_not_come_is_given_up_in_the_end(slow: Rest) -> None:
    sandbox(slow)
    slow.world.pass_time(GPU_START_LIMIT_S + 120)
    status = slow.get("sandboxes/s").json["status"]
    assert (status["phase"], status["reason"]) == ("Paused", "SandboxStartFailed")
    assert not any(daemon.alive for daemon in slow.world.sandboxes.daemons.values())


@pytest.mark.req("NOD-134", "NOD-144")
@pytest.mark.parametrize("limit", ["0.2", "0.3"])
def test_a_budget_pays_ahead_for_the_time_that_a_machine_takes_to_come(slow: Rest, limit: str) -> None:
    """A quarter of an hour costs 0.25 USD: who cannot pay that is not started, and nobody pays beyond the limit."""
    slow.post("budgets", manifest("Budget", "all", {"limitUSD": limit}))
    assert sandbox(slow).code == 201
    slow.world.pass_time(14 * 60)
    for daemon in slow.world.sandboxes.daemons.values():
        daemon.deaf = False
    slow.world.pass_time(1200)
    shown, spent = slow.get("sandboxes/s").json["status"], slow.get("budgets/all").json["status"]["spentUSD"]
    assert (shown["phase"], shown["reason"]) == ("Paused", "BudgetBlocked")
    assert (Decimal(spent) > 0) == (limit == "0.3")
    assert Decimal(spent) <= Decimal(limit)


def test_the_first_period_is_longer_than_a_machine_may_take_to_come() -> None:
    assert BOOTING.total_seconds() > GPU_START_LIMIT_S
    assert SHORT.total_seconds() > START_LIMIT_S


@pytest.mark.req("NOD-399")
def test_a_machine_that_took_longer_to_come_than_it_may_be_idle_is_not_stopped_at_once(slow: Rest) -> None:
    sandbox(slow, idleTimeout="5m")
    slow.world.pass_time(8 * 60)
    for daemon in slow.world.sandboxes.daemons.values():
        daemon.deaf = False
    slow.world.pass_time(4 * 60)
    assert slow.get("sandboxes/s").json["status"]["phase"] == "Running"
    slow.world.pass_time(4 * 60)
    status = slow.get("sandboxes/s").json["status"]
    assert (status["phase"], status["reason"]) == ("Paused", "Idle")


@pytest.mark.req("NOD-402")
def test_who_waits_for_a_machine_waits_no_longer_than_it_may_cost(slow: Rest) -> None:
    sandbox(slow, maxCostUSD="0.10")
    slow.world.pass_time(5 * 60)
    assert slow.get("sandboxes/s").json["status"]["phase"] == "Pending"
    slow.world.pass_time(2 * 60)
    status = slow.get("sandboxes/s").json["status"]
    assert (status["phase"], status["reason"]) == ("Paused", "MaxCostReached")
    assert Decimal(status["costUSD"]) <= Decimal("0.12")
    assert not any(daemon.alive for daemon in slow.world.sandboxes.daemons.values())
