"""Objects as rows, as kubectl prints them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from nodus_core.resources.kinds import BY_NAME, KINDS
from nodus_core.resources.tables import Tables, age

NOW = datetime(2030, 1, 2, tzinfo=UTC)


def run(**status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "nodus.dev/v1",
        "kind": "AgentRun",
        "metadata": {"name": "triage", "creationTimestamp": "2030-01-01T23:00:00.000Z"},
        "spec": {"agent": "a", "input": "x"},
        "status": status,
    }


def test_a_row_shows_what_the_columns_say() -> None:
    shown = run(phase="Waiting", reason="MessageWait", cost={"totalUSD": "0.01", "limitUSD": "1"})
    table = Tables(BY_NAME["AgentRun"], NOW).table([shown], {"resourceVersion": "7"})
    cells = dict(
        zip((each["name"] for each in table["columnDefinitions"]), table["rows"][0]["cells"], strict=True)
    )
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert cells["Name"] == "triage"
    assert (cells["Phase"], cells["Reason"], cells["Cost"], cells["Age"]) == (
        "Waiting",
        "MessageWait",
        "$0.01",
        "60m",
    )
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in table["rows"][0]["object"]


def test_a_row_holds_as_much_of_the_object_as_was_asked_for() -> None:
    kind = BY_NAME["AgentRun"]
    assert "object" not in Tables(kind, NOW, "None").table([run()], {})["rows"][0]
    assert Tables(kind, NOW, "Object").table([run()], {})["rows"][0]["object"] == run()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_object_without_status_has_a_row_of_every_kind(kind: Any) -> None:
    shown = {"metadata": {"name": "x"}, "spec": {}}
    (row,) = Tables(kind, NOW).table([shown], {})["rows"]
    assert len(row["cells"]) == len(kind.columns)
    assert row["cells"][0] == "x"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (600, "10m"),
        (3_600, "60m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (12_600, "3h30m"),
        (40_000, "11h"),
        (86_400, "24h"),
        (2 * 86_400, "2d"),
        (3 * 86_400 + 3_600, "3d1h"),
        (90 * 86_400, "90d"),
        (3 * 365 * 86_400, "3y"),
    ],
)
def test_ages_are_shown_as_kubectl_shows_them(seconds: float, shown: str) -> None:
    assert age(seconds) == shown
