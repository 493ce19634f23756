"""Sandboxes of one's own: made, kept, stopped for a reason, started again, and gone (NOD-397 … NOD-416)."""

from typing import Any

import pytest

from tests.unit.api.rest import Rest, manifest


def phase(rest: Rest, name: str = "mine") -> tuple[str, str | None]:
    status = rest.get(f"sandboxes/{name}").json["status"]
    return status["phase"], status.get("reason")


def made(rest: Rest, name: str = "mine", **spec: Any) -> None:
    answer = rest.post("sandboxes", manifest("Sandbox", name, spec))
    assert answer.code == 201, answer.json
    assert answer.json["status"]["phase"] == "Pending"


def up(rest: Rest, **spec: Any) -> None:
    made(rest, **spec)
    rest.world.pass_time(1)
    assert phase(rest) == ("Running", None)


def alive(rest: Rest) -> list[str]:
    """Machines that run, as their provider sees it."""
    return [daemon.sandbox for daemon in rest.world.sandboxes.daemons.values() if daemon.alive]


@pytest.mark.req("NOD-397", "NOD-398", "NOD-416", "NODQ-62")
def test_a_sandbox_comes_up_with_the_size_that_was_asked_for_and_says_what_holds_of_it() -> None:
    rest = Rest()
    up(rest, resources={"cpu": "2", "memory": "4"})
    status = rest.get("sandboxes/mine").json["status"]
    assert status["resources"] == {"cpu": "2", "memory": "4"}
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "Isolated": "True",
        "EgressEnforced": "True",
        "ImagePinned": "False",
    }
    assert len(alive(rest)) == 1


@pytest.mark.req("NOD-411", "NOD-412", "NOD-408")
def test_a_stopped_one_starts_only_when_it_is_asked_to() -> None:
    rest = Rest()
    up(rest)
    assert rest.post("sandboxes/mine/stop").code == 202
    assert rest.post("sandboxes/mine/stop").code == 200
    rest.world.settle()
    assert phase(rest) == ("Paused", "Stopped")
    assert alive(rest) == []
    rest.world.pass_time(3600)
    rest.get("sandboxes")
    assert alive(rest) == []
    started = rest.post("sandboxes/mine/start")
    assert (started.code, started.json["status"]["phase"]) == (202, "Pending")
    assert rest.post("sandboxes/mine/start").code == 200
    rest.world.pass_time(1)
    assert phase(rest) == ("Running", None)
    assert rest.get("sandboxes/mine").json["status"]["starts"] == 2


@pytest.mark.req("NOD-399")
def test_without_work_it_is_stopped_after_its_idle_time_whoever_looks_at_it() -> None:
    rest = Rest()
    up(rest, idleTimeout="5m")
    for _ in range(4):
        rest.world.pass_time(60)
        rest.get("sandboxes/mine")
    assert phase(rest) == ("Running", None)
    rest.world.pass_time(240)
    rest.world.settle()
    assert phase(rest) == ("Paused", "Idle")
    assert alive(rest) == []


@pytest.mark.req("NOD-400")
def test_at_its_ttl_it_is_gone_whether_it_runs_or_not() -> None:
    rest = Rest()
    up(rest, ttl="30m")
    made(rest, "other", ttl="30m")
    rest.world.settle()
    rest.post("sandboxes/other/stop")
    rest.world.settle()
    rest.world.pass_time(3600)
    rest.world.settle()
    assert [rest.get(f"sandboxes/{name}").code for name in ("mine", "other")] == [404, 404]
    assert alive(rest) == []


@pytest.mark.req("NOD-402", "NOD-414")
def test_at_its_cost_limit_it_is_stopped_and_starts_no_more() -> None:
    rest = Rest()
    up(rest, maxCostUSD="0.02")
    before = rest.get("sandboxes/mine").json["status"]["costUSD"]
    rest.world.pass_time(600)
    running = rest.get("sandboxes/mine").json["status"]["costUSD"]
    rest.world.pass_time(3600)
    rest.world.settle()
    assert phase(rest) == ("Paused", "MaxCostReached")
    stopped = rest.get("sandboxes/mine").json["status"]["costUSD"]
    assert float(before) < float(running) < float(stopped) < 0.025
    rest.world.pass_time(3600)
    assert rest.get("sandboxes/mine").json["status"]["costUSD"] == stopped
    refused = rest.post("sandboxes/mine/start")
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")


@pytest.mark.req("NOD-146", "NODQ-108")
def test_without_money_in_the_budget_it_stands_still_and_starts_when_asked_once_there_is_some() -> None:
    rest = Rest()
    rest.post("budgets", manifest("Budget", "all", {"limitUSD": "0.000001"}))
    made(rest)
    rest.world.settle()
    assert phase(rest) == ("Paused", "BudgetBlocked")
    rest.patch("budgets/all", {"spec": {"limitUSD": "10"}})
    rest.post("sandboxes/mine/start")
    rest.world.pass_time(1)
    assert phase(rest) == ("Running", None)
    rest.patch("budgets/all", {"spec": {"limitUSD": "0.000001"}})
    rest.world.pass_time(1800)
    rest.world.settle()
    assert phase(rest) == ("Paused", "BudgetBlocked")
    assert alive(rest) == []
    budget = rest.get("budgets/all").json["status"]
    assert (budget["reservedUSD"], budget["computeUSD"]) != ("0", "0")


@pytest.mark.req("NOD-408", "FLD-10")
def test_one_that_dies_is_paused_with_the_reason_and_not_started_again() -> None:
    rest = Rest()
    up(rest)
    for daemon in rest.world.sandboxes.daemons.values():
        daemon.alive = False
    rest.world.pass_time(180)
    assert phase(rest) == ("Paused", "SandboxLost")
    assert "killed by the test" in rest.get("sandboxes/mine").json["status"]["message"]
    assert rest.get("sandboxes/mine").json["status"]["message"].endswith("nodus start sandbox/mine")
    assert alive(rest) == []


@pytest.mark.req("FLD-10")
def test_the_task_of_a_machine_that_is_gone_by_our_word_alone_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when its daemon was refused, or never came: what it runs on would cost, and nobody would know of it."""
    rest = Rest()
    up(rest)
    (machine,) = alive(rest)
    monkeypatch.setattr(
        rest.world.sandboxes, "_turn", lambda daemon: None
    )  # whatever runs there does not end by itself
    rest.world.outside.sandboxes.gone(machine, "no daemon", rest.world.clock.now())
    rest.world.pass_time(1200)
    rest.world.settle()
    assert phase(rest) == ("Paused", "SandboxLost")
    assert alive(rest) == []


@pytest.mark.req("NOD-412", "FLD-10")
def test_a_delete_ends_the_machine_and_leaves_nothing_behind() -> None:
    rest = Rest()
    up(rest)
    assert rest.call("DELETE", "sandboxes/mine").code == 202
    assert rest.post("sandboxes/mine/start").code in (404, 409)
    rest.world.settle()
    assert rest.get("sandboxes/mine").code == 404
    assert alive(rest) == []
    left = [key.pk for key in rest.store.rows() if key.pk.startswith(("sb#", "open#", "conv#", "keep#"))]
    assert left == []


def test_what_it_is_cannot_be_changed_and_what_cannot_be_honoured_is_refused() -> None:
    rest = Rest()
    up(rest, idleTimeout="5m")
    refused = rest.patch("sandboxes/mine", {"spec": {"idleTimeout": "10m"}})
    assert (refused.code, refused.json["details"]["causes"][0]["field"]) == (422, "spec.idleTimeout")
    labelled = rest.patch("sandboxes/mine", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.code == 200
    again = rest.apply("sandboxes/mine", manifest("Sandbox", "mine", {"idleTimeout": "5m"}))
    assert (again.code, phase(rest)) == (200, ("Running", None))
    for spec in (
        {"image": "python:3.12"},  # there are no containers in this world
    ):
        answer = rest.post("sandboxes", manifest("Sandbox", "other", spec))
        assert (answer.code, answer.json["reason"]) == (422, "NotAvailable"), spec
    assert rest.get("sandboxes/other").code == 404


@pytest.mark.req("NOD-473")
def test_a_create_that_is_sent_again_makes_one() -> None:
    rest = Rest()
    key = {"Idempotency-Key": "k"}
    first, second = (rest.post("sandboxes", manifest("Sandbox", "mine", {}), headers=key) for _ in range(2))
    assert (first.code, second.code) == (201, 201)
    assert first.json["metadata"]["uid"] == second.json["metadata"]["uid"]
    rest.world.pass_time(1)
    assert len(alive(rest)) == 1
