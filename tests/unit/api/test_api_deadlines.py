"""`spec.deadline` over REST: one meaning, fixed when the run is admitted (NODQ-21, FLD-16, FLD-17)."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.kernel.times import moment

from tests.unit.api.rest import Rest, manifest

RUN = {"agent": "hello-agent", "input": "Do it."}
ADMITTED = "2030-01-01T00:00:00.000Z"


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    return made


def shown(rest: Rest, name: str = "hello-run") -> str:
    return rest.get(f"agentruns/{name}").json["spec"]["deadline"]


@pytest.mark.req("NODQ-21", "FLD-17", "NOD-177")
@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2031-12-01T09:00:00+05:45", "2031-12-01T03:15:00Z"),
        ("2031-12-01T03:15:00Z", "2031-12-01T03:15:00Z"),
        ("2031-12-01t03:15:00.5z", "2031-12-01T03:15:00.500Z"),
        ("2h", "2030-01-01T02:00:00Z"),
        ("1d30m", "2030-01-02T00:30:00Z"),
        ("90s", "2030-01-01T00:01:30Z"),
    ],
)
def test_a_deadline_is_shown_as_a_moment_in_utc(rest: Rest, written: str, stored: str) -> None:
    created = rest.run(deadline=written)
    assert (created.code, created.json["spec"]["deadline"]) == (201, stored)
    assert shown(rest) == stored
    uid = created.json["metadata"]["uid"]
    head = rest.world.outside.conversation(uid)
    assert head is not None
    assert head.deadline == datetime.fromisoformat(stored)
    assert rest.world.schedules.at == {uid: head.deadline}


@pytest.mark.req("NOD-052", "NODQ-21")
@pytest.mark.parametrize("written", ["2h", "2031-12-01T09:00:00+05:45"])
def test_applying_the_same_file_again_changes_nothing(rest: Rest, written: str) -> None:
    body = manifest("AgentRun", "r", {**RUN, "deadline": written})
    first = rest.apply("agentruns/r", body)
    assert first.code == 201
    rest.world.clock.advance(1.0)
    stored = rest.commits
    again = rest.apply("agentruns/r", body)
    assert (again.code, again.json["spec"]) == (200, first.json["spec"])
    assert rest.apply("agentruns/r", first.json).code == 200
    assert rest.commits == stored
    other = rest.apply("agentruns/r", manifest("AgentRun", "r", {**RUN, "deadline": "3h"}))
    assert (other.code, other.fields) == (422, ["spec.deadline"])


@pytest.mark.req("FLD-16")
def test_a_replayed_create_has_the_first_ones_deadline(rest: Rest) -> None:
    body, key = manifest("AgentRun", "r", {**RUN, "deadline": "2h"}), {"Idempotency-Key": "k"}
    first = rest.post("agentruns", body, headers=key)
    rest.world.clock.advance(60)
    again = rest.post("agentruns", body, headers=key)
    assert (again.code, again.json, again.headers["idempotent-replayed"]) == (201, first.json, "true")
    assert again.json["spec"]["deadline"] == "2030-01-01T02:00:00Z"


@pytest.mark.req("NOD-178", "NOD-044")
def test_a_kept_run_fails_at_its_deadline(rest: Rest) -> None:
    rest.run(keepAlive=True, deadline="5m")
    rest.world.settle()
    status: dict[str, Any] = rest.get("agentruns/hello-run").json["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["sandbox"]["phase"] == "Deleted"
    assert moment(status["finishedAt"]) - moment(ADMITTED) >= timedelta(minutes=5)
    refused = rest.post("agentruns/hello-run/messages", {"payload": "x", "messageKey": "k"})
    assert refused.json["reason"] == "AgentRunFinished"
    assert rest.post("agentruns/hello-run/cancel").code == 200


def test_a_schedule_that_cannot_be_made_refuses_no_run(rest: Rest) -> None:
    class Down:
        def kick_at(self, line: str, at: object) -> None:
            raise StoreUnavailable("EventBridge Scheduler does not answer")

    object.__setattr__(rest.gate.service.admission, "schedules", Down())
    assert rest.run(deadline="5m", keepAlive=True).code == 201
    rest.world.settle()  # the sweeper alone sees it
    assert rest.get("agentruns/hello-run").json["status"]["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    "written",
    [
        "9999-12-31T23:59:59.999999999Z",
        "9999-12-31T23:59:59Z",
        "2040-01-03T00:00:00Z",
        "3654d",
        "99999d99999h",
    ],
)
def test_a_deadline_further_away_than_ten_years_is_refused(rest: Rest, written: str) -> None:
    stored = rest.commits
    for refused in (
        rest.run(deadline=written),
        rest.apply("agentruns/hello-run", manifest("AgentRun", "hello-run", {**RUN, "deadline": written})),
    ):
        assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", ["spec.deadline"])
        assert "3653 days" in refused.json["message"]
    assert rest.commits == stored
    assert rest.run(deadline="2040-01-01T00:00:00Z").code == 201


def test_whatever_fails_after_the_commit_fails_no_answer(rest: Rest) -> None:
    class Broken:
        def kick_at(self, line: str, at: object) -> None:
            raise OverflowError("date value out of range")

        def start(self, line: str, generation: int) -> None:
            raise TypeError("nobody has thought of this")

    admission = rest.gate.service.admission
    object.__setattr__(admission, "schedules", Broken())
    executions = admission.executions
    object.__setattr__(admission, "executions", Broken())
    object.__setattr__(rest.gate.service.messages.kicks, "executions", Broken())
    assert rest.run(deadline="5m", keepAlive=True).code == 201
    rest.world.clock.advance(61)
    sent = rest.post("agentruns/hello-run/messages", {"messageKey": "m", "payload": "x"})
    assert sent.code == 202
    assert rest.post("agentruns/hello-run/cancel").code == 202
    object.__setattr__(rest.gate.service.messages.kicks, "executions", executions)
    rest.world.settle()
    assert rest.get("agentruns/hello-run").json["status"]["phase"] == "Cancelled"


def test_a_run_without_a_deadline_asks_for_no_schedule(rest: Rest) -> None:
    rest.run()
    assert rest.world.schedules.at == {}


@pytest.mark.req("NOD-045")
def test_what_is_shown_while_it_is_being_stopped(rest: Rest) -> None:
    rest.run(keepAlive=True, deadline="5m")
    rest.world.clock.advance(301)
    uid = rest.get("agentruns/hello-run").json["metadata"]["uid"]
    rest.world.kicks.kick(uid)
    status = rest.get("agentruns/hello-run").json["status"]
    assert (status["phase"], status["reason"]) == ("Queued", "DeadlineExceeded")
