"""Watches on the wire: what a Kubernetes client is told, from which position, and when it is sent to list again."""

import json
from typing import Any

import pytest
from nodus_core.conversations.happenings import MOST_EVENTS
from nodus_core.journal.changes import CHANGE_LOG_TTL, OVERLAP, next_version
from nodus_core.testing.scripted_model import plays, says

from tests.unit.api.rest import Reply, Rest, manifest


@pytest.fixture
def rest() -> Rest:
    rest = Rest(plays([says("done")]))
    rest.world.clock.advance(100)
    return rest


def label(rest: Rest, name: str, **labels: str | None) -> None:
    assert rest.patch(f"agents/{name}", {"metadata": {"labels": labels}}).code == 200


def watch(rest: Rest, plural: str = "agents", **query: Any) -> Reply:
    return rest.get(plural, query={"watch": "true", "timeoutSeconds": "0", **query})


def told(reply: Reply) -> list[tuple[str, str]]:
    """Type and name of each event; a bookmark has no name."""
    assert reply.code == 200, reply.text
    events = [json.loads(line) for line in reply.text.splitlines()]
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def position(reply: Reply) -> str:
    """Where a client goes on: at the version of the last event."""
    last = json.loads(reply.text.splitlines()[-1])
    return last["object"]["metadata"]["resourceVersion"]


def listed(rest: Rest, plural: str = "agents") -> str:
    return rest.get(plural).json["metadata"]["resourceVersion"]


def test_a_watch_from_a_list_tells_what_happens_to_its_objects_as_they_are_then(rest: Rest) -> None:
    rest.agent("old")
    rest.world.clock.advance(20)
    begun = listed(rest)
    rest.agent("new", system="one")
    rest.agent("new", system="two")
    rest.world.clock.advance(0.01)
    rest.agent("old", system="three")
    reply = watch(rest, resourceVersion=begun)
    assert reply.headers["content-type"] == "application/json"
    assert told(reply) == [("ADDED", "new"), ("MODIFIED", "old")]
    first = json.loads(reply.text.splitlines()[0])["object"]
    assert first == rest.get("agents/new").json
    rest.call("DELETE", "agents/old")
    gone = watch(rest, resourceVersion=position(reply))
    assert told(gone)[-1] == ("DELETED", "old")
    metadata = json.loads(gone.text.splitlines()[-1])["object"]["metadata"]
    assert metadata.keys() == {"name", "namespace", "uid", "resourceVersion"}
    rest.world.clock.advance(20)
    again = watch(rest, resourceVersion=position(gone), allowWatchBookmarks="true")
    assert told(again) == [
        ("ADDED", "new"),
        ("DELETED", "old"),
        ("BOOKMARK", ""),
    ]  # repeats, until it is settled
    assert told(watch(rest, resourceVersion=position(again))) == []


def test_a_watch_without_a_position_begins_with_what_there_is(rest: Rest) -> None:
    rest.agent("a")
    rest.agent("b")
    for query in ({}, {"resourceVersion": "0"}):
        assert told(watch(rest, **query)) == [("ADDED", "a"), ("ADDED", "b")]
    marked = watch(rest, allowWatchBookmarks="true")
    assert told(marked)[-1] == ("BOOKMARK", "")
    rest.agent("c")
    assert ("ADDED", "c") in told(watch(rest, resourceVersion=position(marked)))


def test_a_watch_waits_for_a_change_and_ends_with_it(rest: Rest) -> None:
    begun, clock = listed(rest), rest.world.clock
    made: list[float] = []

    def create(seconds: float) -> None:
        clock.advance(seconds)
        if not made:
            made.append(seconds)
            rest.agent("new")

    clock.sleep = create  # type: ignore[method-assign]
    started = clock.now()
    reply = rest.get("agents", query={"watch": "true", "resourceVersion": begun})
    assert told(reply) == [("ADDED", "new")]
    assert (clock.now() - started).total_seconds() < 5


@pytest.mark.parametrize(("asked", "most"), [(None, 25), ("7", 7), ("3600", 25)])
def test_a_window_in_which_nothing_happens_ends_cleanly(rest: Rest, asked: str | None, most: int) -> None:
    begun, started = listed(rest), rest.world.clock.now()
    query = {"watch": "1", "resourceVersion": begun, "allowWatchBookmarks": "true"}
    looks = Counted(rest.store)
    reply = rest.get("agents", query=query if asked is None else {**query, "timeoutSeconds": asked})
    assert told(reply) == [("BOOKMARK", "")]
    assert int(position(reply)) > int(begun)
    assert (rest.world.clock.now() - started).total_seconds() == pytest.approx(most)
    assert looks.queries <= most + 2  # a look is one query, and less than one a second


class Counted:
    """Counts the queries of a store."""

    def __init__(self, store: Any) -> None:
        self.queries, self._query = 0, store.query
        store.query = self

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.queries += 1
        return self._query(*args, **more)


def test_a_bookmark_comes_only_where_it_is_asked_for(rest: Rest) -> None:
    assert watch(rest, resourceVersion=listed(rest)).text == ""


def test_a_change_that_becomes_visible_late_is_told_of_though_its_version_lies_behind(rest: Rest) -> None:
    rest.agent("a")
    seen = watch(rest, resourceVersion=listed(rest))
    assert told(seen) == [("ADDED", "a")]
    rest.world.clock.advance(-4)  # another writer's clock, and a commit that took its time
    rest.agent("late")
    rest.world.clock.advance(4.1)
    reply = watch(rest, resourceVersion=position(seen))
    assert told(reply) == [("ADDED", "late"), ("ADDED", "a")]
    assert position(reply) == position(seen)


@pytest.mark.req("NOD-470")
def test_selectors_apply_to_watches(rest: Rest) -> None:
    rest.agent("a")
    rest.agent("b")
    rest.world.clock.advance(20)
    begun = listed(rest)
    label(rest, "a", tier="web")
    label(rest, "b", tier="db")
    tier = {"labelSelector": "tier=web"}
    first = watch(rest, resourceVersion=begun, **tier)
    assert told(first) == [("ADDED", "a")]
    rest.world.clock.advance(20)
    label(rest, "a", tier="db")
    left = watch(rest, resourceVersion=position(first), **tier)
    assert told(left) == [("DELETED", "a")]
    rest.world.clock.advance(20)
    label(rest, "a", colour="red")
    rest.call("DELETE", "agents/b")
    assert told(watch(rest, resourceVersion=position(left), **tier)) == []
    only = {"fieldSelector": "metadata.name=b", "resourceVersion": position(left)}
    assert told(watch(rest, **only)) == [("DELETED", "b")]


@pytest.mark.req("NOD-470")
def test_a_run_that_leaves_a_phase_is_deleted_for_those_who_watch_the_phase(rest: Rest) -> None:
    rest.agent()
    begun = listed(rest, "agentruns")
    rest.run("r")
    queued = {"fieldSelector": "status.phase=Queued,spec.agent=hello-agent"}
    first = watch(rest, "agentruns", resourceVersion=begun, **queued)
    assert told(first) == [("ADDED", "r")]
    rest.world.settle()
    assert told(watch(rest, "agentruns", resourceVersion=position(first), **queued)) == [("DELETED", "r")]
    other = {"fieldSelector": "spec.agent=another"}
    rest.call("DELETE", "agentruns/r")
    assert told(watch(rest, "agentruns", resourceVersion=position(first), **other)) == []


def test_a_watch_tells_of_its_own_project_and_kind_only(rest: Rest) -> None:
    begun = listed(rest)
    rest.apply("agents/a", manifest("Agent", "a", {}), project="lab")
    rest.agent("hello-agent")
    rest.run("r")
    assert told(watch(rest, resourceVersion=begun)) == [("ADDED", "hello-agent")]


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "9" * 18, "9" * 19, "9" * 400, "\u0661"])
def test_what_is_no_position_is_refused(rest: Rest, text: str) -> None:
    reply = watch(rest, resourceVersion=text)
    assert (reply.code, reply.json["reason"]) == (400, "BadRequest")


def test_a_position_older_than_the_log_is_expired_and_a_list_gives_a_new_one(rest: Rest) -> None:
    begun = listed(rest)
    rest.world.clock.advance(CHANGE_LOG_TTL.total_seconds())
    reply = watch(rest, resourceVersion=begun)
    assert (reply.code, reply.json["reason"], reply.json["code"]) == (410, "Expired", 410)
    assert watch(rest, resourceVersion=listed(rest)).code == 200
    assert watch(rest, resourceVersion="1").code == 410


def test_more_events_than_one_answer_holds_come_in_several(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodus_core.conversations.happenings.MOST_EVENTS", 3)
    assert MOST_EVENTS > 3
    begun = here = listed(rest)
    names = [f"agent-{number}" for number in range(8)]
    for name in names:
        rest.agent(name)
        rest.world.clock.advance(0.001)
    heard: list[str] = []
    for _ in range(4):
        reply = watch(rest, resourceVersion=here)
        if reply.code == 410:
            break
        heard += [name for _, name in told(reply)]
        here = position(reply) if reply.text else here
    assert heard[:8] == names
    assert int(here) > int(begun)


def test_a_version_is_never_a_settled_position(rest: Rest) -> None:
    now = rest.world.clock.now()
    assert next_version(0, now) % 1000 == 1
    assert next_version(next_version(0, now) + 998, now) % 1000 == 1
    assert int(listed(rest)) % 1000 == 0
    assert int(listed(rest)) <= int(now.timestamp() * 1_000_000) - OVERLAP


def test_the_end_of_what_belongs_to_the_organization_names_no_project(rest: Rest) -> None:
    projects = "/apis/nodus.dev/v1/projects"
    position = rest.get(projects).json["metadata"]["resourceVersion"]
    assert rest.call("DELETE", f"{projects}/lab").code == 200
    watch = {"watch": "true", "timeoutSeconds": "0", "resourceVersion": position}
    told = [json.loads(line) for line in rest.get(projects, query=watch).text.splitlines()]
    (end,) = [event["object"] for event in told if event["type"] == "DELETED"]
    assert end["metadata"]["name"] == "lab"
    assert "namespace" not in end["metadata"]
