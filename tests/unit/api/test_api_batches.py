"""`AgentRunList` on the wire (NEX-47): what is taken, what is refused and by which name, and the key that repeats it."""

import threading
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.aws.system import SystemClock
from nodus_core.conversations.admission import Admission
from nodus_core.conversations.batches import Batches
from nodus_core.conversations.images import Images
from nodus_core.conversations.promises import promise
from nodus_core.conversations.shelf import Shelf, key_of
from nodus_core.resources.manifest import read_manifest

from tests.unit.api.rest import API, Reply, Rest, manifest
from tests.unit.api.together import together

PLACE = Place("acme", "web", "alice")


@pytest.fixture
def rest() -> Rest:
    rest = Rest()
    rest.agent()
    return rest


def item(name: str, /, **spec: Any) -> dict[str, Any]:
    return manifest("AgentRun", name, {"agent": "hello-agent", "input": "Say hello.", **spec})


def batch(rest: Rest, *items: Any, key: str | None = "batch-1", **more: Any) -> Reply:
    body = {"apiVersion": API, "kind": "AgentRunList", "items": list(items), **more}
    return rest.post("agentruns", body, headers={} if key is None else {"idempotency-key": key})


def names(rest: Rest) -> list[str]:
    return [
        found["metadata"]["name"] for found in rest.get("agentruns", query={"limit": "500"}).json["items"]
    ]


@pytest.mark.req("NOD-360", "NOD-362", "NOD-468", "NOD-597")
def test_a_list_of_100_runs_is_created_in_its_order(rest: Rest) -> None:
    wanted = [f"run-{number:03d}" for number in reversed(range(100))]
    reply = batch(rest, *map(item, wanted))
    assert (reply.code, reply.json["kind"]) == (201, "AgentRunList")
    made = reply.json["items"]
    assert [run["metadata"]["name"] for run in made] == wanted
    versions = [int(run["metadata"]["resourceVersion"]) for run in made]
    assert versions == sorted(set(versions))
    assert names(rest) == sorted(wanted)
    one = rest.get("agentruns/run-000").json
    assert {**made[-1]["metadata"], "resourceVersion": ""} == {**one["metadata"], "resourceVersion": ""}
    assert (made[-1]["spec"], made[-1]["status"]) == (one["spec"], one["status"])
    rest.world.settle(most=1000)
    assert {run["status"]["phase"] for run in rest.get("agentruns").json["items"]} == {"Succeeded"}


@pytest.mark.req("NOD-360")
@pytest.mark.parametrize("count", [0, 101])
def test_a_list_has_1_to_100_items(rest: Rest, count: int) -> None:
    reply = batch(rest, *(item(f"run-{number}") for number in range(count)))
    assert (reply.code, reply.json["reason"], reply.fields) == (422, "Invalid", ["items"])
    assert names(rest) == []


@pytest.mark.req("NOD-361")
@pytest.mark.parametrize(
    ("wrong", "code", "field"),
    [
        (item("d", input=None), 422, "items[3].spec.input"),
        (item("d", agent="nobody"), 404, "items[3].spec.agent"),
        (item("d", group="g", taskKey="d"), 422, "items[3].spec.group"),
        (item("d", deadline="2020-01-01T00:00:00Z"), 422, "items[3].spec.deadline"),
        (item("b"), 422, "items[3].metadata.name"),
        (item("taken"), 409, "items[3]"),
        (manifest("Agent", "d", {}), 400, "items[3]"),
        ("d", 422, "items[3]"),
    ],
)
def test_one_item_that_is_not_right_refuses_the_list_and_is_named(
    rest: Rest, wrong: Any, code: int, field: str
) -> None:
    rest.run("taken")
    commits, texts = rest.commits, len(rest.world.payloads.objects)
    long = item("a", input="x" * 9000)
    reply = batch(rest, long, item("b"), item("c"), wrong, item("e"))
    assert (reply.code, reply.fields) == (code, [field])
    assert "items[3]" in reply.json["message"]
    assert names(rest) == ["taken"]
    assert (rest.commits, len(rest.world.payloads.objects)) == (commits, texts)
    assert batch(rest, long, item("b")).code == 201  # a refusal is not remembered


@pytest.mark.req("NOD-364")
def test_a_list_needs_a_key(rest: Rest) -> None:
    reply = batch(rest, item("a"), key=None)
    assert (reply.code, reply.json["reason"]) == (400, "BadRequest")
    assert "Idempotency-Key" in reply.json["message"]
    assert names(rest) == []


@pytest.mark.req("NOD-363")
def test_the_same_key_gives_the_first_outcome_and_with_another_list_a_conflict(rest: Rest) -> None:
    first = batch(rest, item("a"), item("b", deadline="2h"))
    rest.world.clock.advance(60)
    rest.world.settle()
    rest.call("DELETE", "agentruns/a")
    again = batch(rest, item("a"), item("b", deadline="2h"))
    assert (again.code, again.json) == (201, first.json)
    assert again.headers["idempotent-replayed"] == "true"
    assert names(rest) == ["b"]
    for others in ([item("a")], [item("b", deadline="2h"), item("a")], [item("a"), item("c")]):
        reply = batch(rest, *others)
        assert (reply.code, reply.json["reason"]) == (409, "IdempotencyKeyConflict")


@pytest.mark.req("NOD-363")
def test_the_same_list_25_times_at_once_is_created_once(rest: Rest) -> None:
    runs = [read_manifest(item(f"run-{number:02d}"), "AgentRun", "web") for number in range(30)]
    world = rest.world
    shelf = Shelf(
        world.outside, world.payloads, SystemClock()
    )  # whoever waits for another must wait in truth
    cases = Batches(Admission(shelf, world.executions, world.schedules, world.ids, Images(shelf)))
    promised = promise(key_of(PLACE, "AgentRun", ""), "POST", "/agentruns", "batch-1", *runs)
    outcomes, refusals = together(25, lambda number: cases.create(PLACE, runs, promised))
    assert refusals == []
    assert len({tuple(outcome.object.uid for outcome in found) for found in outcomes}) == 1
    assert sum(not found[0].replayed for found in outcomes) == 1
    assert len(names(rest)) == 30


@pytest.mark.req("NOD-361", "NOD-363")
def test_lists_that_want_the_same_names_at_once_are_each_created_whole_or_refused(rest: Rest) -> None:
    world = rest.world
    shelf = Shelf(world.outside, world.payloads, SystemClock())
    cases = Batches(Admission(shelf, world.executions, world.schedules, world.ids, Images(shelf)))
    lock, won = threading.Lock(), list[int]()

    def create(number: int) -> None:
        wanted = [f"run-{place:02d}" for place in range(number, number + 30, 1 + number % 3)]
        runs = [read_manifest(item(name), "AgentRun", "web") for name in reversed(wanted)]
        promised = promise(key_of(PLACE, "AgentRun", ""), "POST", "/agentruns", f"batch-{number}", *runs)
        made = cases.create(PLACE, runs, promised)
        assert len(made) == len(wanted)
        with lock:
            won.append(len(wanted))

    _, refusals = together(8, create)
    assert {refusal.reason for refusal in refusals} <= {"AlreadyExists"}
    assert won
    assert len(names(rest)) == sum(won)


def test_a_list_with_other_fields_is_refused(rest: Rest) -> None:
    reply = batch(rest, item("a"), spec={})
    assert (reply.code, reply.fields) == (422, ["spec"])
    reply = batch(rest, item("a"), apiVersion="nodus.dev/v2")
    assert (reply.code, reply.fields) == (422, ["apiVersion"])


def test_an_answer_that_would_be_too_large_leaves_the_specs_out(rest: Rest) -> None:
    reply = batch(rest, *(item(f"run-{number}", input="x" * 250_000) for number in range(10)))
    assert reply.code == 201
    assert all("spec" not in run and run["metadata"]["uid"] for run in reply.json["items"])
    assert len(reply.text) < 100_000


def test_a_list_that_is_only_tried_is_checked_whole_and_not_made(rest: Rest) -> None:
    stored, dry = rest.commits, {"dryRun": "All"}
    body = {"apiVersion": API, "kind": "AgentRunList", "items": [item("a"), item("b")]}
    tried = rest.post("agentruns", body, headers={"idempotency-key": "k"}, query=dry)
    assert (tried.code, [run["metadata"]["name"] for run in tried.json["items"]]) == (201, ["a", "b"])
    wrong = {**body, "items": [item("a"), item("b", agent="none")]}
    refused = rest.post("agentruns", wrong, headers={"idempotency-key": "k"}, query=dry)
    assert (refused.code, refused.json["reason"]) == (404, "NotFound")
    assert refused.json["message"].startswith("items[1]: ")
    assert (rest.commits, names(rest)) == (stored, [])
    assert batch(rest, item("a"), item("b"), key="k").code == 201
