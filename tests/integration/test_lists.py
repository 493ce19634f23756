"""Lists, watches and batches as deployed: what gateway, functions and emulated journal do with them at once."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from localstack.testing import TestCloud
from tests.integration.test_rest import Rest, manifest
from tests.integration.waiting import until

# A first call of a function starts its process: seconds on a busy machine.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def rest(local_cloud: TestCloud) -> Iterator[Rest]:
    """A project in which runs wait for money: nothing of them runs, so hundreds cost little."""
    made = Rest(local_cloud)
    with made.http:
        assert made.apply("Agent", "rest-agent", {"system": "Be brief."}).status_code == 201
        assert made.apply("Budget", "none", {"limitUSD": "0.000001"}).status_code == 201
        yield made


def run(name: str) -> dict[str, Any]:
    return manifest("AgentRun", name, {"agent": "rest-agent", "input": "Say hello."})


def batch(rest: Rest, names: list[str], key: str) -> httpx2.Response:
    body = {"apiVersion": "nodus.dev/v1", "kind": "AgentRunList", "items": [run(name) for name in names]}
    return rest.call("POST", "agentruns", body, Idempotency_Key=key)


def names(answer: httpx2.Response) -> list[str]:
    assert answer.status_code in (200, 201), answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


def pages(rest: Rest, limit: int) -> list[str]:
    found: list[str] = []
    more = ""
    while True:
        page = rest.call("GET", f"agentruns?limit={limit}{more}")
        found += names(page)
        token = page.json()["metadata"].get("continue")
        if token is None:
            return found
        more = f"&continue={token}"


@pytest.mark.req("NODQ-71", "NOD-360")
def test_250_runs_page_without_repeat_or_gap_while_others_come_and_go(rest: Rest) -> None:
    stay = [f"run-{number:03d}" for number in range(250)]
    with ThreadPoolExecutor(3) as callers:
        parts = [stay[:100], stay[100:200], stay[200:]]
        made = list(callers.map(lambda part: batch(rest, part, f"batch-{part[0]}"), parts))
    assert [name for answer in made for name in names(answer)] == stay
    over, between, kept = threading.Event(), list[str](), set(stay)

    def disturb() -> None:
        while not over.is_set():
            name = f"run-{len(between) * 7 % 250:03d}-between-{len(between)}"
            between.append(name)
            assert rest.call("POST", "agentruns", run(name)).status_code == 201
            assert rest.call("DELETE", f"agentruns/{name}").status_code == 202

    with ThreadPoolExecutor(1) as others:
        disturbed = others.submit(disturb)
        try:
            for limit in (23, 100):
                found = pages(rest, limit)
                assert found == sorted(set(found))
                assert [name for name in found if name in kept] == stay
        finally:
            over.set()
        disturbed.result()
    assert between


@pytest.mark.req("NOD-363", "FLD-16")
def test_25_creates_at_once_with_one_key_make_one_object(rest: Rest) -> None:
    def create(_: int) -> httpx2.Response:
        return rest.call("POST", "agentruns", run("once"), Idempotency_Key="once")

    with ThreadPoolExecutor(25) as callers:
        answers = list(callers.map(lambda number: patiently(lambda: create(number)), range(25)))
    assert [answer.text for answer in answers if answer.status_code != 201] == []
    assert len({answer.json()["metadata"]["uid"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1


def patiently(call: Callable[[], httpx2.Response]) -> httpx2.Response:
    """As clients do it: where so much at once is too much for the machine, the same call is made again with its key."""
    return until(call, lambda answer: answer.status_code != 503)


@pytest.mark.req("NOD-361", "NOD-363")
def test_25_batches_at_once_with_one_key_make_one_set_of_runs(rest: Rest) -> None:
    wanted = [f"together-{number:02d}" for number in reversed(range(30))]
    with ThreadPoolExecutor(25) as callers:
        answers = list(callers.map(lambda _: patiently(lambda: batch(rest, wanted, "together")), range(25)))
    assert [answer.text for answer in answers if answer.status_code != 201] == []
    assert len({answer.text for answer in answers}) == 1
    assert names(answers[0]) == wanted
    other = batch(rest, wanted[:3], "together")
    assert (other.status_code, other.json()["reason"]) == (409, "IdempotencyKeyConflict")
    # Nobody was told to start them but by the rows themselves.
    status = until(lambda: rest.status(wanted[0]), lambda status: status["phase"] == "Waiting")
    assert status["reason"] == "BudgetBlocked"


def test_a_watch_passes_through_the_gateway(rest: Rest) -> None:
    begun = rest.call("GET", "agents").json()["metadata"]["resourceVersion"]
    query = "agents?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dwatched"
    with ThreadPoolExecutor(1) as watchers:
        waiting = watchers.submit(rest.call, "GET", f"{query}&resourceVersion={begun}")
        assert rest.apply("Agent", "watched", {"system": "one"}).status_code == 201
        answer = waiting.result()
    assert answer.headers["Content-Type"] == "application/json"
    first = json.loads(answer.text.splitlines()[0])
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "watched")
    here = json.loads(answer.text.splitlines()[-1])["object"]["metadata"]["resourceVersion"]
    rest.call("DELETE", "agents/watched")
    told = rest.call("GET", f"{query}&resourceVersion={here}").text.splitlines()
    assert "DELETED" in [json.loads(line)["type"] for line in told]
    old = rest.call("GET", f"{query}&resourceVersion=1")
    assert (old.status_code, old.json()["reason"]) == (410, "Expired")
