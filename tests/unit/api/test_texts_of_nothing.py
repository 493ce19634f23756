"""Texts are stored before the commit that makes their object: what is not made leaves none behind."""

from collections.abc import Callable
from typing import Any

import pytest
from nodus_core.journal.payloads import Scope
from nodus_core.journal.store import Transaction
from nodus_core.kernel.errors import ConditionFailed, StoreUnavailable
from nodus_core.testing.memory_store import MemoryStore

from tests.unit.api.rest import API, Reply, Rest, manifest

LONG = "x" * 9000
V1 = "/apis/nodus.dev/v1"


def noted(kind: str, spec: dict[str, Any], name: str = "new") -> dict[str, Any]:
    body = manifest(kind, name, spec)
    body["metadata"]["annotations"] = {"note": LONG}
    return body


def together(rest: Rest) -> Reply:
    items = [noted("AgentRun", {"agent": "a", "input": LONG}, name) for name in ("a", "b")]
    body = {"apiVersion": API, "kind": "AgentRunList", "items": items}
    return rest.post("agentruns", body, headers={"idempotency-key": "k"})


Call = Callable[[Rest], Reply]
IN_A_PROJECT: dict[str, Call] = {
    "agent": lambda rest: rest.post("agents", noted("Agent", {"system": LONG})),
    "agent, applied": lambda rest: rest.apply("agents/new", noted("Agent", {"system": LONG})),
    "budget": lambda rest: rest.post("budgets", noted("Budget", {"limitUSD": "1"})),
    "secret": lambda rest: rest.post("secrets", noted("Secret", {"data": {"k": "v"}})),
    "run": lambda rest: rest.post("agentruns", noted("AgentRun", {"agent": "a", "input": LONG})),
    "run, applied": lambda rest: rest.apply(
        "agentruns/new", noted("AgentRun", {"agent": "a", "input": LONG})
    ),
    "runs": together,
}
ANYWHERE: dict[str, Call] = {
    **IN_A_PROJECT,
    "project": lambda rest: rest.post(f"{V1}/projects", noted("Project", {})),
    "key": lambda rest: rest.post(f"{V1}/apikeys", noted("ApiKey", {"role": "viewer", "projects": ["*"]})),
}
MAKING = ("create-object", "admit", "stage-batch", "commit-batch", "open-batch")


class Losing(MemoryStore):
    """A store whose commits that make objects lose every race, or are not answered."""

    error: Callable[[str], Exception] | None = None
    times = 1000
    only: tuple[str, ...] = MAKING

    def commit(self, transaction: Transaction, token: str) -> None:
        if self.error is not None and self.times and transaction.name in self.only:
            self.times -= 1
            raise self.error(transaction.name)
        super().commit(transaction, token)


@pytest.fixture
def store() -> Losing:
    return Losing()


@pytest.fixture
def rest(store: Losing) -> Rest:
    made = Rest(store=store)
    made.agent("a", system=LONG)
    return made


def lost(name: str) -> Exception:
    return ConditionFailed(name, {})


@pytest.mark.parametrize("which", IN_A_PROJECT)
def test_what_a_project_takes_no_more_leaves_nothing(rest: Rest, which: str) -> None:
    before = dict(rest.world.payloads.objects)
    rest.directory.access.close_project("acme", "web", "word")
    assert IN_A_PROJECT[which](rest).code == 409
    assert rest.world.payloads.objects == before
    assert rest.world.vault.places == {}


@pytest.mark.parametrize("which", ANYWHERE)
def test_what_loses_every_race_leaves_nothing(rest: Rest, store: Losing, which: str) -> None:
    before = dict(rest.world.payloads.objects)
    store.error = lost
    assert ANYWHERE[which](rest).code == 409
    assert rest.world.payloads.objects == before
    assert rest.world.vault.places == {}


@pytest.mark.parametrize("which", ANYWHERE)
def test_what_wins_its_second_race_has_its_texts(rest: Rest, store: Losing, which: str) -> None:
    store.error, store.times = lost, 1
    assert ANYWHERE[which](rest).code == 201
    for path in ("agents", "budgets", "secrets", "agentruns", f"{V1}/projects", f"{V1}/apikeys"):
        for item in rest.get(path).json["items"]:
            name = item["metadata"]["name"]
            assert rest.get(f"{path}/{name}").json["metadata"].get("annotations", {}).get("note") in (
                None,
                LONG,
            )


def test_a_group_that_names_nobody_leaves_nothing(rest: Rest) -> None:
    before = dict(rest.world.payloads.objects)
    reply = rest.post("agentgroups", noted("AgentGroup", {"agent": "nobody", "maxCostUSD": "1"}))
    assert reply.code == 404
    assert rest.world.payloads.objects == before


def test_texts_of_what_may_have_been_made_stay(rest: Rest, store: Losing) -> None:
    before = len(rest.world.payloads.objects)
    store.error = lambda name: StoreUnavailable(f"{name} got no answer")
    assert IN_A_PROJECT["agent"](rest).code == 503
    assert len(rest.world.payloads.objects) > before


def test_a_batch_that_was_not_opened_leaves_nothing(rest: Rest, store: Losing) -> None:
    before = dict(rest.world.payloads.objects)
    store.error, store.only = lambda name: StoreUnavailable("no answer"), ("open-batch",)
    assert together(rest).code == 503
    assert rest.world.payloads.objects == before


def test_a_payload_store_that_fails_hides_no_refusal(rest: Rest) -> None:
    def fails(scope: Scope) -> None:
        raise StoreUnavailable("the payload store is down")

    rest.world.payloads.delete_scope = fails  # type: ignore[method-assign]
    rest.directory.access.close_project("acme", "web", "word")
    refused = IN_A_PROJECT["agent"](rest)
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")


def test_too_many_agents_are_refused_before_anything_is_stored(rest: Rest) -> None:
    for number in range(98):
        rest.agent(f"agent-{number}")
    before = dict(rest.world.payloads.objects)
    items = [manifest("AgentRun", f"r{n}", {"agent": f"agent-{n}", "input": LONG}) for n in range(98)]
    body = {"apiVersion": API, "kind": "AgentRunList", "items": items}
    reply = rest.post("agentruns", body, headers={"idempotency-key": "k"})
    assert (reply.code, reply.fields) == (422, ["items"])
    assert rest.world.payloads.objects == before
