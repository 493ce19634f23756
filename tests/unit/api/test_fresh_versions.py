"""The version of a change is made right before its commit, however slow all that comes before is (decision 2).

A version that grew old before its commit lies behind the positions of watchers who have gone on meanwhile: they would
never hear of the change.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from nodus_core.conversations.expired_keys import ExpiredKeys
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.templates import Templates
from nodus_core.journal.access import SHOWN_AFTER_EXPIRY
from nodus_core.journal.changes import micros
from nodus_core.journal.store import Key, Page, Put, Row, Transaction
from nodus_core.kernel.objects import ObjectKey
from nodus_core.resources.kinds import BY_NAME
from nodus_core.testing.clock import FakeClock
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.world import World

from tests.unit.api.rest import API, Rest, manifest
from tests.unit.api.test_api_resolution import Parked

LONG = "ä" * 9000
V1 = "/apis/nodus.dev/v1"


class Punctual(MemoryStore):
    """A store whose reads take a second once it has a clock; it looks how old the versions are that it is given."""

    clock: FakeClock | None = None

    def __init__(self) -> None:
        super().__init__()
        self.ages: dict[str, float] = {}

    def _wait(self) -> None:
        if self.clock is not None:
            self.clock.advance(1)

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        self._wait()
        return super().get(keys)

    def query(self, pk: str, prefix: str = "", **more: Any) -> Page:
        self._wait()
        return super().query(pk, prefix, **more)

    def commit(self, transaction: Transaction, token: str) -> None:
        for operation in transaction.operations:
            if self.clock is not None and isinstance(operation, Put) and operation.key.pk.startswith("chg#"):
                age = (micros(self.clock.now()) - operation.row["version"]) / 1_000_000
                name = f"{transaction.name} of {operation.key.pk}"
                self.ages[name] = max(age, self.ages.get(name, 0.0))
        super().commit(transaction, token)

    @property
    def late(self) -> dict[str, float]:
        return {name: age for name, age in self.ages.items() if age > 0.01}


def slow(rest: Rest, store: Punctual) -> None:
    """From here on every read takes a second, and every call of the payload store or the vault twenty."""
    world: World = rest.world
    store.clock = world.clock

    def slowed(call: Any) -> Any:
        def slowly(*args: Any, **more: Any) -> Any:
            world.clock.advance(20)
            return call(*args, **more)

        return slowly

    for port, names in {
        world.payloads: ("put", "get", "get_many", "with_heads", "delete_scope"),
        world.vault: ("create", "replace", "remove"),
    }.items():
        for name in names:
            setattr(port, name, slowed(getattr(port, name)))


@pytest.fixture
def store() -> Punctual:
    return Punctual()


@pytest.fixture
def rest(store: Punctual) -> Rest:
    made = Rest(plays([says(LONG)]), store=store)
    made.agent("a", system=LONG)
    slow(made, store)
    return made


ANNOTATED: Mapping[str, Any] = {"annotations": {"note": LONG}}
KINDS = [
    ("Agent", {"system": LONG}, {"system": LONG + "x"}),
    ("Secret", {"data": {"k": "v"}}, {"data": {"k": "w"}}),
    ("Budget", {"limitUSD": "1"}, {"limitUSD": "2"}),
    ("AgentGroup", {"agent": "a", "maxCostUSD": "1"}, {"agent": "a", "maxCostUSD": "2"}),
]


@pytest.mark.parametrize(("kind", "spec", "other"), KINDS)
def test_a_definition(
    rest: Rest, store: Punctual, kind: str, spec: dict[str, Any], other: dict[str, Any]
) -> None:
    plural = BY_NAME[kind].plural
    for name, posts in (("x", True), ("y", False)):
        body = manifest(kind, name, spec)
        body["metadata"] |= ANNOTATED
        reply = rest.post(plural, body) if posts else rest.apply(f"{plural}/{name}", body)
        assert reply.code == 201
    assert rest.apply(f"{plural}/x", manifest(kind, "x", other)).code == 200
    assert rest.patch(f"{plural}/x", {"metadata": {"annotations": {"note": LONG + "y"}}}).code == 200
    assert rest.call("PUT", f"{plural}/y", manifest(kind, "y", other)).code == 200
    assert rest.call("DELETE", f"{plural}/x").code == 200
    assert len(store.ages) == 3
    assert store.late == {}


def test_projects_and_keys(rest: Rest, store: Punctual) -> None:
    body = manifest("Project", "p", {})
    body["metadata"] |= ANNOTATED
    assert rest.post(f"{V1}/projects", body).code == 201
    assert rest.call("DELETE", f"{V1}/projects/p").code == 200
    key = manifest("ApiKey", "k", {"role": "viewer", "projects": ["*"], "ttl": "1h"})
    key["metadata"] |= ANNOTATED
    assert rest.post(f"{V1}/apikeys", key).code == 201
    world = rest.world
    made = world.outside.object(ObjectKey("acme", "", "ApiKey", "k"))
    assert made is not None
    assert made.value is not None
    world.clock.advance(SHOWN_AFTER_EXPIRY.total_seconds() + 4000)
    assert ExpiredKeys(world.outside, world.payloads, world.clock).remove(made.value.digest)
    Templates(world.outside, world.clock, world.ids).publish()
    assert store.ages
    assert store.late == {}


def test_a_run_from_its_admission_to_the_end_of_its_texts(rest: Rest, store: Punctual) -> None:
    run = manifest("AgentRun", "r", {"agent": "a", "input": LONG, "keepAlive": True})
    run["metadata"] |= ANNOTATED
    assert rest.post("agentruns", run).code == 201
    rest.world.settle()
    said = {"payload": LONG, "messageKey": "k"}
    assert rest.post("agentruns/r/messages", said).code == 202
    rest.world.settle()
    assert rest.post("agentruns/r/cancel").code == 202
    rest.world.settle()
    world = rest.world
    obj = world.outside.object(ObjectKey("acme", "web", "AgentRun", "r"))
    assert obj is not None
    world.clock.advance(31 * 86400)
    assert Expiry(world.outside, world.payloads, world.clock).expire(obj.uid, lambda: 900.0)
    assert rest.call("DELETE", "agentruns/r").code == 202
    world.settle()
    assert store.late == {}


def test_runs_that_are_created_together(rest: Rest, store: Punctual) -> None:
    items = [manifest("AgentRun", name, {"agent": "a", "input": LONG}) for name in ("b", "a")]
    body = {"apiVersion": API, "kind": "AgentRunList", "items": items}
    assert rest.post("agentruns", body, headers={"idempotency-key": "k"}).code == 201
    assert any(name.startswith("show-batch") for name in store.ages)
    assert store.late == {}


def test_a_run_that_ends_at_its_deadline(rest: Rest, store: Punctual) -> None:
    run = manifest("AgentRun", "r", {"agent": "a", "input": "x", "keepAlive": True, "deadline": "2h"})
    assert rest.post("agentruns", run).code == 201
    rest.world.settle()
    rest.world.clock.advance(7300)
    rest.world.kicks.kick(rest.get("agentruns/r").json["metadata"]["uid"])
    rest.world.settle()
    assert rest.get("agentruns/r").json["status"]["reason"] == "DeadlineExceeded"
    assert store.late == {}


def test_a_step_that_a_person_resolves() -> None:
    store = Punctual()
    run = Parked(store=store)
    slow(run.rest, store)
    assert run.say("Happened", result={"text": LONG}).code == 202
    run.settle()
    assert store.ages
    assert store.late == {}


def test_the_shelf_is_the_one_of_the_world(rest: Rest) -> None:
    """Else nothing here would be slow."""
    before = rest.world.clock.now()
    shelf = Shelf(rest.world.journal, rest.world.payloads, rest.world.clock)
    rest.agent("z", system=LONG)
    assert (shelf.clock.now() - before).total_seconds() > 20
