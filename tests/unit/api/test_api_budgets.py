"""Budgets over REST: as any object, with a status that counts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.api.rest import Rest, manifest

SHOWCASE = Path("examples/agents/product-showcase/budget.yaml")


@pytest.fixture
def rest() -> Rest:
    return Rest()


def budget(rest: Rest, limit: Any = "5.00", name: str = "b", **spec: Any) -> Any:
    return rest.apply(f"budgets/{name}", manifest("Budget", name, {"limitUSD": limit, **spec}))


@pytest.mark.req("NOD-148", "NOD-001")
def test_the_showcases_budget_is_accepted(rest: Rest) -> None:
    written = yaml.safe_load(SHOWCASE.read_text())
    reply = rest.apply("budgets/product-showcase", written)
    assert reply.code == 201
    assert reply.json["spec"] == {"period": "Total", "action": "Block", "limitUSD": "5.00"}
    status = reply.json["status"]
    assert status.pop("conditions")[0]["status"] == "True"
    assert status == {
        "phase": "Active",
        "spentUSD": "0",
        "modelUSD": "0",
        "computeUSD": "0",
        "reservedUSD": "0",
        "remainingUSD": "5",
    }
    assert rest.get("budgets").json["items"] == [rest.get("budgets/product-showcase").json]


@pytest.mark.req("NOD-005")
@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"limitUSD": "-1"},
        {"limitUSD": "0"},
        {"limitUSD": "0.0000001"},
        {"limitUSD": "1", "period": "Month"},
        {"limitUSD": "1", "action": "Warn"},
        {"limitUSD": "1", "resets": True},
    ],
)
def test_a_budget_that_means_nothing_is_refused_and_stores_nothing(rest: Rest, spec: dict[str, Any]) -> None:
    before = rest.commits
    assert rest.post("budgets", manifest("Budget", "b", spec)).code == 422
    assert rest.commits == before


@pytest.mark.req("NOD-146", "NODQ-108")
def test_another_limit_counts_at_once_and_the_same_changes_nothing(rest: Rest) -> None:
    assert budget(rest, "5.00").code == 201
    raised = budget(rest, "7.50")
    assert (raised.code, raised.json["status"]["remainingUSD"]) == (200, "7.5")
    again = budget(rest, "7.50")
    assert again.json["metadata"]["resourceVersion"] == raised.json["metadata"]["resourceVersion"]
    lowered = rest.patch("budgets/b", {"spec": {"limitUSD": "0.000001"}})
    assert lowered.json["status"]["remainingUSD"] == "0.000001"
    assert rest.get("budgets/b").json["metadata"]["generation"] == 3


def test_an_idempotency_key_makes_one_budget(rest: Rest) -> None:
    body, key = manifest("Budget", "b", {"limitUSD": "1"}), {"idempotency-key": "k"}
    first, again = (rest.post("budgets", body, headers=key) for _ in range(2))
    assert (first.code, again.code, again.headers["idempotent-replayed"]) == (201, 201, "true")
    assert first.json["metadata"]["uid"] == again.json["metadata"]["uid"]


def test_a_deleted_budget_is_gone_with_its_account(rest: Rest) -> None:
    budget(rest)
    assert rest.call("DELETE", "budgets/b").code == 200
    assert rest.get("budgets/b").code == 404
    assert budget(rest, "1").json["status"]["spentUSD"] == "0"


@pytest.mark.req("NODQ-108")
def test_a_project_has_at_most_ten(rest: Rest) -> None:
    for number in range(10):
        assert budget(rest, name=f"b{number}").code == 201
    refused = budget(rest, name="b10")
    assert refused.code == 422
    assert "10 Budgets" in refused.json["message"]
    assert rest.call("DELETE", "budgets/b0").code == 200
    assert budget(rest, name="b10").code == 201
    other = rest.apply("budgets/b", manifest("Budget", "b", {"limitUSD": "1"}), project="lab")
    assert other.code == 201


def test_who_may_not_write_budgets_reads_them(rest: Rest) -> None:
    budget(rest)
    reader = rest.new_key(permissions=("budgets:read",))
    assert rest.get("budgets/b", key=reader).code == 200
    assert rest.call("DELETE", "budgets/b", key=reader).code == 403
    assert rest.get("budgets/b", key=rest.new_key(permissions=("agents:read",))).code == 403
