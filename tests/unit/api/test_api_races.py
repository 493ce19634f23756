"""Reads that meet a removal: what is gone is not found, and a list leaves it out; it is never our fault."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from nodus_core.conversations.removal import purge
from nodus_core.journal.keys import change_partition
from nodus_core.journal.payloads import Scope
from nodus_core.journal.store import Key, Row
from nodus_core.kernel.objects import ObjectKey
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import plays, says

from tests.unit.api.rest import Rest

LONG = "x" * 5000


class Interrupted(MemoryStore):
    """A store in which something happens right after a row of a run was read."""

    then: Callable[[], None] | None = None

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        rows = super().get(keys)
        then = self.then
        if then is not None and any("#AgentRun" in key.pk for key in keys):
            self.then = None
            then()
        return rows


def finished() -> tuple[Rest, Interrupted]:
    """A finished run whose texts stand outside of its rows."""
    store = Interrupted()
    rest = Rest(plays([says(LONG)]), store=store)
    rest.agent()
    rest.run("r", input=LONG)
    rest.world.settle()
    return rest, store


def remove(rest: Rest) -> None:
    obj = rest.world.journal.object(ObjectKey("acme", "web", "AgentRun", "r"))
    assert obj is not None
    purge(rest.world.journal, rest.world.payloads, rest.world.clock, obj)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "agentruns/r"),
        ("GET", "agentruns/r/steps"),
        ("GET", "agentruns/r/answer"),
        ("POST", "agentruns/r/cancel"),
        ("DELETE", "agentruns/r"),
    ],
)
def test_a_run_that_is_removed_while_it_is_read_is_not_found(method: str, path: str) -> None:
    rest, store = finished()
    store.then = lambda: remove(rest)
    reply = rest.call(method, path)
    assert (reply.code, reply.json["reason"]) == (404, "NotFound")


def test_a_list_leaves_out_what_is_removed_meanwhile() -> None:
    rest, _ = finished()
    rest.run("s", input=LONG)
    obj = rest.world.journal.object(ObjectKey("acme", "web", "AgentRun", "r"))
    assert obj is not None
    removed = replace(obj, deleted_at=rest.world.clock.now())
    rest.world.journal.objects.replace(obj, removed, rest.world.clock.now())  # its removal has begun
    rest.world.payloads.delete_scope(Scope("acme", obj.uid))
    listed = rest.get("agentruns")
    assert [item["metadata"]["name"] for item in listed.json["items"]] == ["s"]


def test_what_is_missing_of_a_run_that_stays_is_a_fault() -> None:
    rest, _ = finished()
    rest.world.payloads.objects.clear()
    assert rest.get("agentruns/r").code == 500


@pytest.mark.parametrize("position", ["", "x" * 1100, "A", "../r", "\x00"])
def test_a_list_does_not_go_on_behind_what_is_no_name(position: str) -> None:
    rest, _ = finished()
    token = base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")
    for kind in ("agents", "agentruns"):
        reply = rest.get(kind, query={"continue": token})
        assert (reply.code, reply.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    "position", [[1, 10**2000, 0, None], [10**20, 0, 0, None], [1, 0, 10**400, ["a", "b"]]]
)
def test_steps_do_not_go_on_behind_what_no_run_reaches(position: list[object]) -> None:
    rest, _ = finished()
    token = base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")
    assert rest.get("agentruns/r/steps", query={"continue": token}).code == 400


def test_the_end_of_a_run_is_the_last_that_its_log_holds() -> None:
    rest, _ = finished()
    rest.call("DELETE", "agentruns/r")
    rows = rest.store.query(change_partition("acme", "web", "AgentRun"), limit=1000).rows
    assert next(row["type"] for row in reversed(rows) if row["name"] == "r") == "DELETED"
