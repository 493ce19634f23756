"""Records, waits and run handles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import nodus
import pytest
from nodus import errors
from nodus._record import Record, snake_case
from nodus._waiting import poll

from tests.unit.client.fake_runs import Outcome, Run
from tests.unit.client.fake_server import FakeServer, Fault

STATUS = {
    "phase": "Failed",
    "costUSD": "1",
    "evaluation": {"pending": 0},
    "turns": [{"chosenBy": "jev"}],
    "items": [1],
}


@pytest.mark.req("NOD-519", "NOD-520")
def test_attributes_and_get() -> None:
    status = Record(STATUS)
    assert (status.phase, status.cost_usd, status.costUSD, status["costUSD"]) == ("Failed", "1", "1", "1")
    assert (status.evaluation.pending, status.turns[0].chosen_by, status.items) == (0, "jev", [1])
    assert (status.evaluation.get("passRate"), status.get("passRate", 7)) == (None, 7)
    assert "phase" in status
    with pytest.raises(AttributeError, match=r"phase, costUSD.*\.get\('fase'\)"):
        _ = status.fase


def test_records_compare_copy_and_keep_wire_names() -> None:
    status = Record(STATUS)
    assert status == Record(STATUS) == STATUS
    assert status != Record({})
    assert status != 1
    assert (list(status), len(status), status.to_dict()) == (list(STATUS), 5, STATUS)
    assert copy.deepcopy(status) == pickle.loads(pickle.dumps(status)) == status
    assert "cost_usd" in dir(status)
    assert "Failed" in repr(status)


@pytest.mark.parametrize(
    ("wire", "python"),
    [
        ("taskId", "task_id"),
        ("costUSD", "cost_usd"),
        ("baseURL", "base_url"),
        ("limitUSDTotal", "limit_usd_total"),
    ],
)
def test_snake_case(wire: str, python: str) -> None:
    assert snake_case(wire) == python


class Times:
    def __init__(self) -> None:
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def clock(self) -> float:
        return sum(self.pauses)


def wait_for(times: Times, read: Any, done: Any, timeout: float | None) -> Any:
    return poll(
        read, done, timeout=timeout, describe=lambda seen: f"saw {seen}", sleep=times.sleep, clock=times.clock
    )


@pytest.mark.req("NODQ-79")
def test_the_interval_grows_from_a_fifth_to_two_seconds() -> None:
    times, reads = Times(), iter(range(30))
    assert wait_for(times, lambda _: next(reads), lambda seen: seen == 29, None) == 29
    assert times.pauses[0] == pytest.approx(0.2)
    assert times.pauses == sorted(times.pauses)
    assert times.pauses[-1] == 2.0


@pytest.mark.req("NODQ-79")
def test_no_read_may_take_longer_than_25_seconds_and_the_last_is_at_the_end() -> None:
    times, allowed = Times(), list[float]()

    def read(within: float) -> int:
        allowed.append(within)
        return 0

    with pytest.raises(errors.WaitTimeoutError, match="saw 0"):
        wait_for(times, read, lambda _: False, 60)
    assert max(allowed) == 25
    assert times.clock() == pytest.approx(60)


def test_a_wait_outlives_a_restart_of_the_server() -> None:
    times, away = Times(), errors.ServerUnreachableError("away")
    answers: list[Any] = ["x", *[away] * 20, "done"]

    def read(_: float) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert wait_for(times, read, lambda seen: seen == "done", None) == "done"


def test_a_wait_does_not_outlive_a_server_that_stays_away_or_was_never_there() -> None:
    def never(_: float) -> str:
        raise errors.ServerUnreachableError("away")

    times = Times()
    with pytest.raises(errors.ServerUnreachableError):
        wait_for(times, never, lambda _: True, None)
    assert times.pauses == []
    seen = iter(["x"])
    with pytest.raises(errors.ServerUnreachableError):
        wait_for(times, lambda within: next(seen, None) or never(within), lambda _: False, None)
    assert times.clock() > 100


@pytest.mark.req("NODQ-73")
@pytest.mark.parametrize("timeout", [0, 3, 60, None])
def test_a_wait_whose_first_read_is_not_answered_is_over_when_its_time_is(timeout: float | None) -> None:
    """With time left it is not known whether there is anything to wait for."""
    times = Times()

    def unanswered(within: float) -> str:
        times.sleep(within)
        raise errors.OutcomeUnknownError("no answer came")

    over = timeout is not None and timeout <= 25
    with pytest.raises(
        errors.WaitTimeoutError if over else errors.OutcomeUnknownError, match="no answer came"
    ):
        wait_for(times, unanswered, lambda _: True, timeout)
    assert len(times.pauses) == 1


def test_refusals_end_a_wait() -> None:
    def gone(_: float) -> str:
        raise errors.NotFoundError("gone", code=404)

    with pytest.raises(errors.NotFoundError):
        wait_for(Times(), gone, lambda _: True, None)


@pytest.fixture
def run(server: FakeServer, client: nodus.Client) -> nodus.AgentRun:
    server.outcomes["x"] = Outcome(answer="yes")
    return nodus.ClaudeAgent("a", client=client).submit("x", name="r", keep_alive=True)


@pytest.mark.req("NOD-513", "NOD-514")
def test_a_handle_of_an_existing_run(run: nodus.AgentRun, server: FakeServer) -> None:
    handle = nodus.AgentRun.from_name("r")
    with pytest.raises(errors.AnswerNotReadyError):
        handle.answer()
    assert handle.wait(timeout=50).phase == "Succeeded"
    assert handle.answer() == "yes"
    assert [step.name for step in handle.steps()][:2] == ["sandbox", "setup"]
    assert (handle.project, repr(handle)) == ("default", "AgentRun('r', project='default')")
    assert handle.cancel().phase == "Succeeded"


@pytest.mark.req("NODQ-71")
def test_steps_are_read_page_by_page(run: nodus.AgentRun, server: FakeServer) -> None:
    server.page_size = 2
    server.runs["default", "r"].end()
    assert [step.index for step in run.steps()] == [1, 2, 3, 4, 5, 6]
    assert [seen.query["limit"] for seen in server.asked("steps")] == ["500"] * 3


def test_a_kept_run_stands_still_for_its_next_message(server: FakeServer, client: nodus.Client) -> None:
    server.outcomes["x"] = Outcome("Waiting", "first", "MessageWait")
    run = nodus.ClaudeAgent("a", client=client).submit("x", keep_alive=True)
    assert run.wait().reason == "MessageWait"
    assert run.answer() == "first"
    with pytest.raises(nodus.RunBlockedError, match="waits for a message"):
        nodus.ClaudeAgent("a", client=client).remote("x")


def test_a_wait_that_is_over_tells_the_phase(run: nodus.AgentRun) -> None:
    with pytest.raises(nodus.WaitTimeoutError, match=r"run r is Running after 0 s; it goes on") as caught:
        run.wait(timeout=0)
    assert isinstance(caught.value, TimeoutError)


@pytest.mark.req("NOD-523")
def test_cancel_waits_until_the_sandbox_is_gone(
    run: nodus.AgentRun, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Run.status

    def lingering(self: Run) -> dict[str, Any]:
        status = ended(self)
        if self.cancelled and self.looks < 4:
            status["sandbox"] = {"phase": "Stopping"}
        return status

    monkeypatch.setattr(Run, "status", lingering)
    assert run.cancel(timeout=0).sandbox.phase == "Stopping"
    assert run.cancel().sandbox.phase == "Deleted"
    server.runs["default", "r"].looks = -10_000
    with pytest.raises(nodus.WaitTimeoutError, match="after its cancel"):
        run.cancel(timeout=0.01)


def test_remote_outlives_a_server_that_fails_now_and_then(server: FakeServer, client: nodus.Client) -> None:
    server.outcomes["x"] = Outcome(answer="yes")
    agent = nodus.ClaudeAgent("a", client=client)
    server.when_seen = lambda seen: (
        server.faults.append(Fault("GET .*agentruns", lost=True)) if len(server.seen) == 5 else None
    )
    assert agent.remote("x") == "yes"


@pytest.mark.req("NODQ-71")
def test_lists_are_read_page_by_page_as_they_are_used(server: FakeServer, client: nodus.Client) -> None:
    for number in range(5):
        client.agents.apply({"metadata": {"name": f"a{number}"}, "spec": {"system": f"{number % 2}"}})
    server.page_size = 2
    found = client.agents.list()
    assert next(found).metadata.name == "a0"
    assert len(server.asked("GET")) == 1
    assert [agent.metadata.name for agent in found] == ["a1", "a2", "a3", "a4"]
    assert [agent.metadata.name for agent in client.agents.list(field_selector="spec.system=1")] == [
        "a1",
        "a3",
    ]


@pytest.mark.req("NOD-003")
def test_projects_are_apart(client: nodus.Client) -> None:
    client.agents.apply({"metadata": {"name": "a"}, "spec": {}})
    other = client.in_project("p2")
    with pytest.raises(errors.NotFoundError):
        other.agents.get("a")
    assert (client.in_project(None), client.in_project("default")) == (client, client)
    assert other.kind("AgentRun") is other.kind("ar") is other.agentruns
    with pytest.raises(ValueError, match="kinds: agents, agentruns"):
        client.kind("Nope")


def test_delete_and_patch(client: nodus.Client) -> None:
    assert client.agents.apply({"metadata": {"name": "a"}, "spec": {"system": "x"}}).created
    assert client.agents.patch("a", {"spec": {"system": None, "setup": "y"}}).spec == {"setup": "y"}
    assert client.agents.delete("a").status == "Success"
    with pytest.raises(errors.NotFoundError):
        client.agents.delete("a")
