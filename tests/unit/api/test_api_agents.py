"""Agents over REST: create, apply, patch, list, delete, and what is refused."""

from typing import Any

import pytest
from nodus_core.journal.payloads import Scope

from tests.unit.api.rest import Rest, manifest

HELLO: dict[str, Any] = {
    "workingDir": "/workspace",
    "continuity": {"mode": "Snapshotted", "stateDir": "/workspace"},
    "setup": "printf 'workspace-ready\\n' > ready.txt",
    "system": "You are a careful assistant.\n",
    "model": {"access": "Nodus"},
    "perRunMaxCostUSD": "0.50",
}
REPOSITORY: dict[str, Any] = {
    "image": "nodus/agent-tools",
    "workingDir": "/workspace",
    "continuity": {"mode": "Snapshotted", "stateDir": "/workspace"},
    "source": {"git": {"repo": "your-org/your-repo", "ref": "main"}},
    "setup": "npm ci",
    "network": {"egress": {"policy": "Open"}},
    "model": {"access": "OnDemand", "name": "YOUR_TOOL_CAPABLE_MODEL_ID"},
}
OWN_KEY = {"model": {"access": "BYOK", "name": "claude-sonnet-5-5", "apiKeySecret": "anthropic-key"}}
ALLOW_LIST = {"network": {"egress": {"policy": "AllowList", "allow": ["github.com", "api.github.com"]}}}


@pytest.fixture
def rest() -> Rest:
    return Rest()


@pytest.mark.req(
    "NOD-001", "NOD-002", "NOD-007", "NOD-009", "NOD-023", "NEX-04", "NEX-13", "NEX-43", "NEX-45"
)
@pytest.mark.parametrize("spec", [HELLO, REPOSITORY, OWN_KEY, ALLOW_LIST, {"state": "Stopped"}, {}])
def test_an_agent_is_kept_exactly_as_it_was_written(rest: Rest, spec: dict[str, Any]) -> None:
    created = rest.agent("hello-agent", **spec)
    assert created.code == 201
    read = rest.get("agents/hello-agent")
    assert (read.code, read.json) == (200, created.json)
    assert read.json["spec"] == spec
    assert list(read.json) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert rest.world.executions.names == set()


@pytest.mark.req("NOD-009", "NOD-026")
def test_applying_again_changes_only_what_is_different(rest: Rest) -> None:
    first = rest.agent(**HELLO).json
    again = rest.apply("agents/hello-agent", first)
    assert (again.code, again.json) == (200, first)
    stored = rest.commits
    reordered = rest.agent(**dict(reversed(HELLO.items())))
    assert (reordered.code, reordered.json["metadata"]) == (200, first["metadata"])
    assert rest.commits == stored
    edited = rest.agent(**{**HELLO, "system": "Other."})
    assert edited.code == 200
    assert edited.json["metadata"]["generation"] == 2
    assert int(edited.json["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    assert edited.json["metadata"]["uid"] == first["metadata"]["uid"]


@pytest.mark.req("NOD-009")
def test_apply_replaces_the_spec_and_patch_merges_into_it(rest: Rest) -> None:
    rest.agent(**HELLO, maxParallelAgents=8)
    patched = rest.patch("agents/hello-agent", {"spec": {"maxParallelAgents": 0, "setup": None}})
    expected = {name: value for name, value in HELLO.items() if name != "setup"}
    assert patched.json["spec"] == {**expected, "maxParallelAgents": 0}
    applied = rest.agent(system="Only this.")
    assert applied.json["spec"] == {"system": "Only this."}


@pytest.mark.req("NOD-027", "NOD-471", "NEX-20")
def test_a_merge_patch_leaves_the_other_fields_alone(rest: Rest) -> None:
    rest.agent(**ALLOW_LIST, maxToolCalls=5)
    patched = rest.patch(
        "agents/hello-agent", {"spec": {"network": {"egress": {"allow": ["a.example.com"]}}}}
    )
    egress = {"policy": "AllowList", "allow": ["a.example.com"]}
    assert patched.json["spec"] == {"network": {"egress": egress}, "maxToolCalls": 5}
    unchanged = rest.patch("agents/hello-agent", {"spec": {"maxToolCalls": 5}})
    assert unchanged.json == patched.json


def test_a_merge_patch_is_checked_as_a_whole(rest: Rest) -> None:
    rest.agent(**ALLOW_LIST)
    stored = rest.commits
    refused = rest.patch("agents/hello-agent", {"spec": {"network": {"egress": {"policy": "Deny"}}}})
    assert (refused.code, refused.fields) == (422, ["spec.network.egress.allow"])
    assert rest.patch("agents/nobody", {"spec": {}}).code == 404
    assert rest.patch("agents/hello-agent", {"metadata": {"name": "other"}}).code == 422
    assert rest.patch("agents/hello-agent", {"spec": None}).fields == ["spec"]
    assert rest.commits == stored


@pytest.mark.req("NOD-002")
def test_a_client_cannot_write_status(rest: Rest) -> None:
    body = manifest("Agent", "a", {}, status={"phase": "Great"})
    for answer in (
        rest.post("agents", body),
        rest.apply("agents/a", body),
        rest.call("PUT", "agents/a", body),
        rest.patch("agents/a", {"status": {"phase": "Great"}}),
    ):
        assert answer.code in (200, 201)
        assert [*answer.json["status"]] == ["conditions"]


@pytest.mark.req("NODQ-92", "NOD-005")
@pytest.mark.parametrize(("written", "kept"), [("0.50", "0.50"), ("0.500000", "0.500000"), ("1", "1")])
@pytest.mark.parametrize("quoted", [True, False])
def test_money_is_kept_as_it_was_written(rest: Rest, written: str, kept: str, quoted: bool) -> None:
    amount = f'"{written}"' if quoted else written
    head = '"apiVersion":"nodus.dev/v1","kind":"Agent","metadata":{"name":"a"}'
    body = f'{{{head},"spec":{{"perRunMaxCostUSD":{amount}}}}}'
    assert rest.apply("agents/a", body).json["spec"] == {"perRunMaxCostUSD": kept}
    assert (
        rest.apply("agents/a", manifest("Agent", "a", {"perRunMaxCostUSD": kept})).json["metadata"][
            "generation"
        ]
        == 1
    )


def test_create_refuses_a_name_that_is_taken(rest: Rest) -> None:
    body = manifest("Agent", "a", {})
    assert rest.post("agents", body).code == 201
    stored = rest.commits
    refused = rest.post("agents", body)
    assert (refused.code, refused.json["reason"]) == (409, "AlreadyExists")
    assert "apply to change it" in refused.json["message"]
    assert refused.json["details"] == {"name": "a", "kind": "Agent"}
    assert rest.commits == stored


def test_a_stale_version_is_refused(rest: Rest) -> None:
    seen = rest.agent(system="one").json
    rest.agent(system="two")
    stale = {**seen, "spec": {"system": "three"}}
    refused = rest.apply("agents/hello-agent", stale)
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    version = {"metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]}}
    assert rest.patch("agents/hello-agent", version).code == 409
    assert rest.get("agents/hello-agent").json["spec"] == {"system": "two"}


def test_labels_are_kept_until_they_are_changed(rest: Rest) -> None:
    labels = {"team": "a", "example.com/tier": ""}
    body = {**manifest("Agent", "a", {}), "metadata": {"name": "a", "labels": labels}}
    assert rest.apply("agents/a", body).json["metadata"]["labels"] == labels
    kept = rest.apply("agents/a", manifest("Agent", "a", {"system": "x"})).json["metadata"]
    assert (kept["labels"], kept["generation"]) == (labels, 2)
    nulls = {**manifest("Agent", "n", {}), "metadata": {"name": "n", "labels": {"team": "a", "tier": None}}}
    assert rest.post("agents", {**nulls, "status": None}).json["metadata"]["labels"] == {"team": "a"}
    patched = rest.patch("agents/a", {"metadata": {"labels": {"team": None}}}).json["metadata"]
    assert (patched["labels"], patched["generation"]) == ({"example.com/tier": ""}, 2)
    bad = {**body, "metadata": {"name": "a", "labels": {"te am": "a", "x": "-", "n": 1}}}
    assert len(rest.apply("agents/a", bad).fields) == 3


@pytest.mark.req("NODQ-58")
def test_delete_removes_the_agent_and_its_texts(rest: Rest) -> None:
    uid = rest.agent(system="x" * 5000).json["metadata"]["uid"]
    assert rest.world.payloads.objects
    gone = rest.call("DELETE", "agents/hello-agent")
    assert gone.code == 200
    assert gone.json["status"] == "Success"
    assert gone.json["details"] == {"name": "hello-agent", "kind": "Agent", "uid": uid}
    assert rest.get("agents/hello-agent").code == 404
    assert rest.call("DELETE", "agents/hello-agent").json["reason"] == "NotFound"
    assert rest.world.payloads.objects == {}


@pytest.mark.req("NOD-003")
def test_projects_do_not_share_names(rest: Rest) -> None:
    rest.agent(system="web")
    assert rest.get("agents/hello-agent", project="lab").code == 404
    rest.apply("agents/hello-agent", manifest("Agent", "hello-agent", {"system": "lab"}), project="lab")
    assert rest.get("agents/hello-agent").json["spec"]["system"] == "web"
    assert rest.get("agents/hello-agent", project="lab").json["spec"]["system"] == "lab"


@pytest.mark.req("NODQ-71", "NOD-469")
def test_lists_are_paged_in_name_order(rest: Rest) -> None:
    for number in range(7):
        rest.agent(f"a{number}", system="x" * (5000 if number % 2 else 1))
    names: list[str] = []
    query = {"limit": "3"}
    for _ in range(3):
        page = rest.get("agents", query=query)
        assert (page.code, page.json["kind"], page.json["apiVersion"]) == (200, "AgentList", "nodus.dev/v1")
        names += [item["metadata"]["name"] for item in page.json["items"]]
        query["continue"] = page.json["metadata"].get("continue", "")
    assert names == [f"a{number}" for number in range(7)]
    assert query["continue"] == ""
    assert int(page.json["metadata"]["resourceVersion"]) > 0
    assert rest.get("agents", project="lab").json["items"] == []


def test_a_list_of_large_objects_ends_a_page_early(rest: Rest) -> None:
    for number in range(10):
        rest.agent(f"a{number}", system="\u0001" * 100_000)
    page = rest.get("agents").json
    assert 0 < len(page["items"]) < 10
    rest_of_it = rest.get("agents", query={"continue": page["metadata"]["continue"]}).json
    first = [item["metadata"]["name"] for item in page["items"]]
    assert rest_of_it["items"][0]["metadata"]["name"] == f"a{len(first)}"


@pytest.mark.req("NOD-470")
def test_lists_take_field_selectors_and_refuse_what_they_cannot_do(rest: Rest) -> None:
    for name in ("a", "b"):
        rest.agent(name)
    picked = rest.get("agents", query={"fieldSelector": "metadata.name=b"}).json
    assert [item["metadata"]["name"] for item in picked["items"]] == ["b"]
    others = rest.get("agents", query={"fieldSelector": "metadata.name!=b"}).json
    assert [item["metadata"]["name"] for item in others["items"]] == ["a"]
    for query in (
        {"fieldSelector": "spec.system=x"},
        {"fieldSelector": "metadata.name"},
        {"labelSelector": "a in b"},
        {"watch": "perhaps"},
        {"limit": "0"},
        {"limit": "501"},
        {"limit": "\uff11"},
        {"continue": "%%%"},
        {"continue": "_w"},
    ):
        refused = rest.get("agents", query=query)
        assert (refused.code, refused.json["reason"]) == (400, "BadRequest"), query


def test_a_write_refuses_parameters_that_it_would_ignore(rest: Rest) -> None:
    stored = rest.commits
    body = manifest("Agent", "a", {})
    assert rest.call("POST", "agents", body, query={"propagationPolicy": "Orphan"}).code == 400
    assert rest.commits == stored
    assert rest.call("POST", "agents", body, query={"fieldManager": "kubectl-create"}).code == 201


def test_a_deletion_that_is_committed_is_answered_so_whatever_its_texts_do(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(scope: Scope) -> None:
        raise KeyError("nobody has thought of this")

    rest.agent(system="long " * 2000)
    monkeypatch.setattr(rest.world.payloads, "delete_scope", refuse)
    assert rest.call("DELETE", "agents/hello-agent").code == 200
    assert rest.get("agents/hello-agent").code == 404
