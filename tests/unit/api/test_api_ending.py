"""Cancel and delete over REST: stop markers, deletion marks, what is left at the end."""

from typing import Any

import pytest
from nodus_core.conversations.removal import purge
from nodus_core.journal.journal import Journal
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.scripted_model import plays, says

from tests.unit.api.rest import Rest, manifest

RUN = {"agent": "hello-agent", "input": "Do it."}
COMMAND = says("Look.", ("run_command", {"command": "true"}))


@pytest.fixture
def rest() -> Rest:
    made = Rest(plays([COMMAND, says("done")]))
    made.agent()
    return made


def rows_of(rest: Rest, uid: str) -> list[str]:
    return [f"{key.pk}/{key.sk}" for key in rest.store.rows() if uid in key.pk or key.sk.startswith(uid)]


@pytest.mark.req("NOD-045", "NODQ-23", "NODQ-02", "NEX-16", "NOD-477")
def test_cancel_stops_a_run_before_its_next_step(rest: Rest) -> None:
    uid = rest.run("r").json["metadata"]["uid"]
    asked = rest.post("agentruns/r/cancel")
    assert asked.code == 202
    assert (asked.json["status"]["phase"], asked.json["status"]["reason"]) == ("Queued", "Cancelling")
    stop = rest.world.journal.conversation(uid).stop  # type: ignore[union-attr]
    assert stop is not None
    assert (stop.by, stop.reason) == ("test", "Cancelled")
    rest.world.settle()
    done = rest.get("agentruns/r").json["status"]
    assert (done["phase"], done["reason"]) == ("Cancelled", "Cancelled")
    assert rest.get("agentruns/r/steps").json["items"] == []
    assert rest.world.models.requests == rest.world.models.routings == []


@pytest.mark.req("NODQ-23")
def test_cancelling_again_changes_nothing(rest: Rest) -> None:
    rest.run("r")
    first = rest.post("agentruns/r/cancel").json
    stored = rest.commits
    again = rest.post("agentruns/r/cancel", {})
    assert (again.code, again.json) == (202, first)
    assert [commit.name for commit in rest.changes[stored:]] == ["ring"]  # its worker looks once more
    rest.world.settle()
    stored = rest.commits
    late = rest.post("agentruns/r/cancel")
    assert (late.code, late.json["status"]["phase"]) == (200, "Cancelled")
    assert rest.commits == stored


@pytest.mark.req("NODQ-23")
def test_cancelling_a_finished_run_leaves_it_as_it_is(rest: Rest) -> None:
    rest.run("r")
    rest.world.settle()
    done = rest.get("agentruns/r").json
    answer = rest.post("agentruns/r/cancel")
    assert (answer.code, answer.json) == (200, done)
    assert rest.post("agentruns/nobody/cancel").code == 404


@pytest.mark.req("NODQ-57", "NODQ-94", "NOD-044")
def test_deleting_an_unfinished_run_cancels_it_first(rest: Rest) -> None:
    uid = rest.run("r", input="x" * 5000).json["metadata"]["uid"]
    asked = rest.call("DELETE", "agentruns/r")
    assert asked.code == 202
    assert asked.json["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00.000Z"
    assert asked.json["status"]["reason"] == "Cancelling"
    assert rest.get("agentruns/r").json["metadata"]["deletionTimestamp"]
    again = rest.call("DELETE", "agentruns/r")
    assert (again.code, again.json) == (202, asked.json)
    refused = rest.apply("agentruns/r", manifest("AgentRun", "r", {**RUN, "input": "x" * 5000}))
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert rest.run("r").json["reason"] == "AlreadyExists"
    rest.world.settle()
    assert rest.get("agentruns/r").code == 404
    assert rows_of(rest, uid) == []
    assert rest.world.payloads.objects == {}


def test_a_deletion_that_is_marked_while_the_line_closes_is_not_missed(rest: Rest) -> None:
    uid = rest.run("r").json["metadata"]["uid"]
    plain, marks = rest.world.journal.turns.close, []

    def racing(*arguments: Any) -> None:
        if not marks:
            marks.append(rest.call("DELETE", "agentruns/r").code)
        plain(*arguments)

    rest.world.journal.turns.close = racing  # type: ignore[method-assign]
    rest.world.settle()
    assert marks == [202]
    assert rest.get("agentruns/r").code == 404
    assert rows_of(rest, uid) == []


def test_a_worker_that_dies_while_it_removes_a_run_is_followed_by_another() -> None:
    points = CrashOnce()
    deleted_run(points).world.settle()
    ours = [place for place in points.passings() if place[0].startswith(("purge", "remove-object"))]
    assert len(ours) >= 4
    for point, passing in ours:
        rest = deleted_run(CrashOnce(point, passing))
        rest.world.settle()
        assert rest.world.crashes == 1, point
        assert rest.get("agentruns/r").code == 404
        assert [key for key in rest.store.rows() if "run-" in key.pk] == []


def deleted_run(crash: CrashOnce) -> Rest:
    """A run that waits for its worker, cancelled and to be deleted; the worker's journal has crash points."""
    rest = Rest(plays([COMMAND, says("done")]))
    rest.agent()
    rest.run("r")
    rest.call("DELETE", "agentruns/r")
    rest.world.journal = Journal(rest.store, rest.world.ids, crash)
    return rest


@pytest.mark.req("NODQ-57", "NODQ-94")
def test_deleting_a_finished_run_removes_all_of_it_and_frees_its_name(rest: Rest) -> None:
    uid = rest.run("r", input="x" * 5000).json["metadata"]["uid"]
    rest.world.settle()
    other = rest.run("other").json["metadata"]["uid"]
    gone = rest.call("DELETE", "agentruns/r")
    assert gone.code == 202
    assert gone.json["metadata"]["uid"] == uid
    assert rest.get("agentruns/r").json["reason"] == "NotFound"
    assert rows_of(rest, uid) == []
    assert rest.world.payloads.objects == {}
    assert rows_of(rest, other)
    again = rest.run("r")
    assert (again.code, again.json["metadata"]["uid"] != uid) == (201, True)


def passings(rest: Rest) -> list[tuple[str, int]]:
    """What is passed of crash points by removing the finished run `r`, from a world that is thrown away."""
    points = CrashOnce()
    obj = rest.gate.service.reading.shelf.journal.objects_of("acme", "web", "AgentRun")[0][0]
    purge(Journal(rest.store, rest.world.ids, points), rest.world.payloads, rest.world.clock, obj)
    return points.passings()


def finished_run() -> tuple[Rest, str]:
    rest = Rest(plays([COMMAND, says("done")]))
    rest.agent()
    uid = rest.run("r").json["metadata"]["uid"]
    rest.world.settle()
    return rest, uid


def test_a_removal_that_dies_anywhere_is_taken_up_again() -> None:
    places = passings(finished_run()[0])
    assert places[-1][0] == "remove-object.after"
    assert len(places) > 6
    for point, passing in places:
        rest, uid = finished_run()
        crash = CrashOnce(point, passing)
        obj = rest.gate.service.reading.shelf.journal.objects_of("acme", "web", "AgentRun")[0][0]
        with pytest.raises(Crash):
            purge(Journal(rest.store, rest.world.ids, crash), rest.world.payloads, rest.world.clock, obj)
        assert rest.call("DELETE", "agentruns/r").code in (202, 404), point
        assert rest.get("agentruns/r").code == 404
        assert rows_of(rest, uid) == []


def test_a_kick_that_is_lost_does_not_fail_a_cancel(rest: Rest) -> None:
    rest.run("r")
    rest.world.clock.advance(31)

    def down(line: str, generation: int) -> None:
        raise StoreUnavailable("Step Functions does not answer")

    plain: Any = rest.world.executions.start
    rest.world.executions.start = down  # type: ignore[method-assign]
    assert rest.post("agentruns/r/cancel").code == 202
    rest.world.executions.start = plain  # type: ignore[method-assign]
    rest.world.settle()
    assert rest.get("agentruns/r").json["status"]["phase"] == "Cancelled"


def test_a_cancel_that_races_with_the_worker_looks_again(rest: Rest) -> None:
    rest.run("r")
    journal = rest.gate.service.control.shelf.journal
    plain, races = journal.turns.stop, []

    def racing(*arguments: Any) -> None:
        if not races:
            races.append(1)
            rest.world.settle()  # the worker is faster: everything moves on under the cancel
        plain(*arguments)

    journal.turns.stop = racing  # type: ignore[method-assign]
    answer = rest.post("agentruns/r/cancel")
    assert (answer.code, answer.json["status"]["phase"]) == (200, "Succeeded")
