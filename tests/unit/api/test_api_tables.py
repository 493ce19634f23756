"""Tables from the wire: what kubectl prints is what the server says."""

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.unit.api.rest import Reply, Rest

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
