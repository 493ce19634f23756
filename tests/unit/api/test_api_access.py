"""Keys, organizations, projects and permissions, from the wire."""

from typing import Any

import pytest

from tests.unit.api.rest import Rest, manifest

PLURALS = (
    *("agents", "agentruns", "agentgroups", "budgets", "connections", "endpoints", "environments"),
    *("environmentimages", "sandboxes", "secrets"),
)
VERBS = (("GET", ""), ("POST", ""), ("GET", "/a"), ("PUT", "/a"), ("PATCH", "/a"), ("DELETE", "/a"))
ALL_ROUTES = [
    *((method, plural + name) for plural in PLURALS for method, name in VERBS),
    ("POST", "agentruns/a/cancel"),
    ("POST", "agentruns/a/messages"),
    ("POST", "agentruns/a/resolution"),
    ("GET", "agentruns/a/steps"),
    ("GET", "agentruns/a/answer"),
    ("GET", "agentruns/a/team"),
]


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent("a", system="the agent of acme")
    return made


def test_this_file_knows_every_route(rest: Rest) -> None:
    known = {
        (method, rule.partition("<project>/")[2].replace("<name>", "a")) for method, rule in rest.gate.rules
    }
    assert known == set(ALL_ROUTES)


@pytest.mark.req("NOD-467")
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwdw==", "Bearer nodus_x", "nodus_x", "Bearer " + "x" * 5000],
)
@pytest.mark.parametrize(("method", "path"), ALL_ROUTES)
def test_no_route_is_open_to_a_wrong_key(rest: Rest, method: str, path: str, authorization: str) -> None:
    stored = rest.commits
    body = manifest("Agent", "a", {}) if method in ("POST", "PUT", "PATCH") else None
    refused = rest.call(method, path, body, headers={"authorization": authorization})
    assert (refused.code, refused.json["reason"]) == (401, "Unauthorized")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert rest.commits == stored


def test_a_key_without_its_header_is_refused(rest: Rest) -> None:
    event_headers = {"authorization": ""}
    assert rest.get("agents", headers=event_headers).code == 401


@pytest.mark.req("NOD-004", "NODQ-97")
def test_the_organization_may_be_left_out_and_must_be_the_keys(rest: Rest) -> None:
    assert rest.get("agents/a").code == 200
    assert rest.get("agents/a", headers={"nodus-org": "acme"}).code == 200
    rest.directory.create_organization("rival")
    rest.directory.create_project("rival", "web")
    foreign = rest.get("agents/a", headers={"nodus-org": "rival"})
    assert (foreign.code, foreign.json["reason"]) == (403, "Forbidden")
    unknown = rest.get("agents/a", headers={"nodus-org": "nobody"})
    assert unknown.text == foreign.text
    rivals = rest.new_key("rival")
    refused = rest.get("agents/a", key=rivals, headers={"nodus-org": "acme"})
    assert refused.code == 403
    assert "the agent of acme" not in refused.text
    assert rest.get("agents/a", key=rivals).code == 404


@pytest.mark.req("NOD-004")
def test_a_key_of_one_project_sees_no_other(rest: Rest) -> None:
    only_lab = rest.new_key(projects=("lab",))
    assert rest.get("agents", key=only_lab, project="lab").code == 200
    refused = rest.get("agents/a", key=only_lab)
    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    assert rest.get("agents", key=only_lab, project="none").text == refused.text


def test_an_unknown_project_is_not_found(rest: Rest) -> None:
    refused = rest.get("agents", project="none")
    assert (refused.code, refused.json["details"]) == (404, {"name": "none", "kind": "Project"})
    rest.directory.create_project("acme", "none")
    assert rest.get("agents", project="none").code == 200


@pytest.mark.req("NOD-479", "NODQ-96")
@pytest.mark.parametrize(("method", "path"), ALL_ROUTES)
def test_each_route_needs_its_permission(rest: Rest, method: str, path: str) -> None:
    plural = path.partition("/")[0]
    needed = f"{plural}:{'read' if method == 'GET' else 'write'}"
    words = [
        f"{noun}:{verb}"
        for noun in ("agents", "agentruns", "budgets", "secrets")
        for verb in ("read", "write")
    ]
    without = rest.new_key(permissions=tuple(word for word in words if word != needed))
    stored = rest.commits
    refused = rest.call(method, path, key=without)
    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    assert needed in refused.json["message"]
    assert rest.commits == stored
    assert rest.call(method, path, key=rest.new_key(permissions=(needed,))).code not in (401, 403)


@pytest.mark.req("NOD-030")
def test_the_templates_project_is_read_by_everyone_and_written_by_its_owner(rest: Rest) -> None:
    rest.directory.create_organization("nodus")
    rest.directory.create_project("nodus", "nodus")
    owner = rest.new_key("nodus")
    body = manifest("Agent", "t", {"system": "template"})
    assert rest.apply("agents/t", body, project="nodus").code == 403
    assert rest.apply("agents/t", body, project="nodus", key=owner).code == 201
    read = rest.get("agents/t", project="nodus", key=rest.new_key(projects=("lab",)))
    assert (read.code, read.json["spec"], read.json["metadata"]["namespace"]) == (
        200,
        {"system": "template"},
        "nodus",
    )
    assert len(rest.get("agents", project="nodus").json["items"]) == 1
    for refused in (
        rest.get("agentruns", project="nodus"),
        rest.call("DELETE", "agents/t", project="nodus"),
        rest.post("agentruns", manifest("AgentRun", "r", {"agent": "t", "input": "x"}), project="nodus"),
        rest.get("agents/t", project="nodus", key=rest.new_key(permissions=("agentruns:read",))),
    ):
        assert (refused.code, refused.json["reason"]) == (403, "Forbidden")


def test_a_key_is_looked_up_again_after_30_seconds(rest: Rest) -> None:
    reads: list[Any] = []
    plain_get = rest.store.get

    def counting(keys: Any) -> Any:
        reads.extend(key for key in keys if key.pk.startswith(("key#", "org#")))
        return plain_get(keys)

    rest.store.get = counting  # type: ignore[method-assign]
    rest.get("agents")
    first = len(reads)
    rest.world.clock.advance(29)
    rest.get("agents")
    assert len(reads) == first
    rest.world.clock.advance(2)
    rest.get("agents")
    assert len(reads) == first + 2


def test_the_log_line_names_who_and_where_and_no_secret(rest: Rest) -> None:
    rest.agent("a", system="plum-9f31")
    assert rest.gate.facts == {
        "request": "11111111-2222-3333-4444-555555555555",
        "org": "acme",
        "key": "test",
        "project": "web",
    }
    rest.get("agents/nobody")
    assert rest.gate.facts["reason"] == "NotFound"
