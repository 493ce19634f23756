"""Tables from the wire: what kubectl prints is what the server says."""

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from nodus_core.conversations.last_cells import LONGEST
from nodus_core.resources.kinds import BY_PLURAL
from nodus_core.testing.scripted_model import plays, says

from tests.unit.api.rest import Reply, Rest, manifest

KUBECTL = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent("a", system="x")
    made.run("r", agent="a")
    return made


def asked(rest: Rest, path: str, accept: str = KUBECTL) -> Reply:
    path, _, query = path.partition("?")
    return rest.get(path, headers={"Accept": accept}, query=dict(parse_qsl(query)))


def table(rest: Rest, path: str, accept: str = KUBECTL) -> Any:
    reply = asked(rest, path, accept)
    assert reply.code == 200, reply.text
    return reply


def cells(shown: Any, row: int = 0) -> dict[str, Any]:
    names = [column["name"] for column in shown["columnDefinitions"]]
    return dict(zip(names, shown["rows"][row]["cells"], strict=True))


@pytest.mark.req("NOD-486")
@pytest.mark.parametrize("path", ["agentruns", "agentruns/r"])
def test_a_list_and_an_object_are_shown_as_rows(rest: Rest, path: str) -> None:
    shown = table(rest, path).json
    assert (shown["kind"], shown["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert cells(shown)["Name"] == "r"
    assert cells(shown)["Phase"] == "Queued"
    assert int(shown["metadata"]["resourceVersion"]) > 0
    assert shown["rows"][0]["object"]["metadata"]["name"] == "r"


@pytest.mark.req("FLD-08")
def test_nothing_in_a_cell_steers_a_terminal(rest: Rest) -> None:
    """kubectl escapes some of it itself, and neither C1 controls nor what turns the direction of writing."""
    rest.run("s", agent="a", input="\x9b31m \u202egnp.exe \x1b]0;x\x07")
    shown = cells(table(rest, "agentruns/s").json)
    assert "\\x9b31m \\u202egnp.exe \\x1b]0;x\\x07" in shown.values()


def test_pages_of_rows_go_on_as_pages_of_objects_do(rest: Rest) -> None:
    rest.run("s", agent="a")
    first = table(rest, "agentruns?limit=1").json
    after = first["metadata"]["continue"]
    second = table(rest, f"agentruns?limit=1&continue={after}").json
    assert [cells(page)["Name"] for page in (first, second)] == ["r", "s"]


def test_a_watch_tells_in_rows_and_names_the_columns_once(rest: Rest) -> None:
    rest.run("s", agent="a")
    events = [json.loads(line) for line in table(rest, "agentruns?watch=true").text.splitlines()]
    assert [event["type"] for event in events] == ["ADDED", "ADDED"]
    assert [bool(event["object"]["columnDefinitions"]) for event in events] == [True, False]
    assert [event["object"]["rows"][0]["cells"][0] for event in events] == ["r", "s"]


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "AgentRun")]
)
def test_a_row_holds_what_was_asked_for(rest: Rest, include: str, kind: str | None) -> None:
    (row,) = table(rest, f"agentruns?includeObject={include}").json["rows"]
    assert row.get("object", {}).get("kind") == kind


def test_another_amount_is_refused(rest: Rest) -> None:
    refused = asked(rest, "agentruns?includeObject=All")
    assert refused.code == 400
    assert "includeObject" in refused.json["message"]


@pytest.mark.parametrize(
    "accept",
    ["application/json", "*/*", "", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"],
)
def test_who_asks_for_no_table_gets_objects(rest: Rest, accept: str) -> None:
    assert table(rest, "agentruns", accept).json["kind"] == "AgentRunList"


def rows_watched(rest: Rest, path: str, begun: str) -> list[tuple[str, dict[str, Any]]]:
    """The type of each event behind a position, and the cells of its row by their columns."""
    kind = BY_PLURAL[path.rpartition("/")[2]]
    reply = table(rest, f"{path}?watch=true&timeoutSeconds=0&resourceVersion={begun}")
    events = [json.loads(line) for line in reply.text.splitlines()]
    return [
        (
            event["type"],
            dict(
                zip(
                    (column.name for column in kind.columns), event["object"]["rows"][0]["cells"], strict=True
                )
            ),
        )
        for event in events
    ]


def usual(path: str, cells: dict[str, Any]) -> dict[str, Any]:
    """What stands in tables that are not wide."""
    wide = {column.name for column in BY_PLURAL[path.rpartition("/")[2]].columns if column.priority}
    return {name: cell for name, cell in cells.items() if name not in wide}


KEYS = "/apis/nodus.dev/v1/apikeys"
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "agents": ("Agent", {"system": "x" * 10_000, "model": {"access": "Nodus", "families": ["haiku"]}}),
    "budgets": ("Budget", {"limitUSD": "5"}),
    "secrets": ("Secret", {"data": {"TOKEN": "hidden-value"}}),
    "endpoints": ("Endpoint", {"model": {"access": "Nodus"}, "maxConcurrency": 3}),
    KEYS: ("ApiKey", {"role": "viewer", "projects": ["*"], "ttl": "1h"}),
    "/apis/nodus.dev/v1/projects": ("Project", {"displayName": "Empty"}),
}


@pytest.mark.parametrize("path", SPECS)
def test_the_row_of_what_is_deleted_shows_it_as_it_was(rest: Rest, path: str) -> None:
    kind, spec = SPECS[path]
    assert rest.post(path, manifest(kind, "gone", spec)).code == 201
    rest.world.clock.advance(180)
    shown = table(rest, path).json
    before = next(row for row in map(dict, _rows(shown)) if row["Name"] == "gone")
    assert rest.call("DELETE", f"{path}/gone").code == 200
    (after,) = [
        cells
        for word, cells in rows_watched(rest, path, shown["metadata"]["resourceVersion"])
        if word == "DELETED"
    ]
    assert {name: cell or "" for name, cell in usual(path, after).items()} == {
        name: cell or "" for name, cell in usual(path, before).items()
    }
    assert after["Age"] == "3m"


def _rows(shown: Any) -> list[dict[str, Any]]:
    return [cells(shown, number) for number in range(len(shown["rows"]))]


@pytest.mark.parametrize(("finishes", "phase"), [(True, "Succeeded"), (False, "Cancelled")])
def test_the_row_of_a_deleted_run_shows_how_it_ended(finishes: bool, phase: str) -> None:
    rest = Rest(plays([says("done")]))
    rest.agent("a", system="x")
    rest.run("r", agent="a", input="hidden-value")
    if finishes:
        rest.world.settle()
    rest.world.clock.advance(20)
    begun = rest.get("agentruns").json["metadata"]["resourceVersion"]
    before = cells(table(rest, "agentruns").json)
    assert rest.call("DELETE", "agentruns/r").code == 202
    if not finishes:
        rest.world.settle()
    word, after = rows_watched(rest, "agentruns", begun)[-1]
    assert (word, after["Name"], after["Phase"]) == ("DELETED", "r", phase)
    assert after["Cap"] == before["Cap"]
    assert after["Age"]
    if finishes:
        assert usual("agentruns", after) == usual("agentruns", before)
    # What a run was told goes with it, also out of the log of changes.
    assert "hidden-value" not in repr(rest.store.rows())


def test_an_object_whose_texts_are_lost_can_be_deleted(rest: Rest) -> None:
    rest.agent("lost", system="x" * 10_000)
    begun = rest.get("agents").json["metadata"]["resourceVersion"]
    rest.world.payloads.objects.clear()
    assert rest.call("DELETE", "agents/lost").code == 200
    (_, after) = rows_watched(rest, "agents", begun)[-1]
    assert (after["Name"], after["Revision"], after["Access"]) == ("lost", 1, None)


def test_a_long_cell_is_cut_in_the_log(rest: Rest) -> None:
    names = {f"FIELD_{number:03d}": "x" for number in range(60)}
    rest.post("secrets", manifest("Secret", "many", {"data": names}))
    begun = rest.get("secrets").json["metadata"]["resourceVersion"]
    rest.call("DELETE", "secrets/many")
    (_, after) = rows_watched(rest, "secrets", begun)[-1]
    assert len(after["Fields"]) == LONGEST


def test_the_end_of_an_object_is_told_without_its_cells_to_who_takes_no_rows(rest: Rest) -> None:
    begun = rest.get("agents").json["metadata"]["resourceVersion"]
    rest.call("DELETE", "agents/a")
    reply = rest.get("agents", query={"watch": "true", "timeoutSeconds": "0", "resourceVersion": begun})
    (event,) = [json.loads(line) for line in reply.text.splitlines()]
    assert event["object"].keys() == {"apiVersion", "kind", "metadata"}
