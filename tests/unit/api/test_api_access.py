"""Keys, organizations, projects and permissions, from the wire."""

from typing import Any

import pytest
from nodus_core.access.permissions import ROLES, SCOPES
from nodus_core.resources.kinds import BY_NAME, KINDS
from nodus_core.sandboxes.preview_headers import METHODS

from functions.api.gate import BASE_PATH, Rule
from tests.unit.api.rest import MERGE, Reply, Rest, manifest

ROUTES = [rule for rule in Rest().gate.rules if rule.permission is not None]
"""Every route that needs a key, as the gate knows them: a new one is tested here by itself."""
OPEN = {
    ("POST", "/apis/nodus.dev/v1/logins"),
    ("GET", "/healthz"),
    ("GET", "/version"),
    ("GET", "/api"),
    ("GET", "/apis"),
    ("GET", "/apis/nodus.dev"),
    ("GET", "/apis/nodus.dev/v1"),
    ("GET", "/openapi.json"),
    ("GET", "/openapi/v2"),
    ("GET", "/openapi/v3"),
    ("GET", "/openapi/v3/apis/nodus.dev/v1"),
    ("POST", "/mcp"),
    *((method, "/preview/.+") for method in METHODS),
}
"""Those that need no permission: a login, what the API says of itself, MCP, whose tools are calls of the rest, and
previews, whose address is the credential (test_api_sandbox_previews)."""


def route_id(rule: Rule) -> str:
    return f"{rule.method} {rule.path.partition('/v1/')[2]}"


every_route = pytest.mark.parametrize("rule", ROUTES, ids=route_id)


def path_of(rule: Rule, project: str = "web", name: str = "a") -> str:
    return rule.path.replace("<project>", project).replace("<name>", name)


def expected_permission(rule: Rule) -> str:
    """What a route is to need, by its path and method alone (NODQ-96)."""
    below = rule.path.removeprefix("/apis/nodus.dev/v1/").removeprefix("namespaces/<project>/")
    plural = below.partition("/")[0].replace("imagechoices", "environmentimages")
    return f"{plural}:{'read' if rule.method == 'GET' else 'write'}"


def body_of(rule: Rule) -> Any:
    """A body that a route reads as far as it needs to judge the name in its path."""
    if rule.path.endswith("/messages"):
        return {"payload": "go on", "messageKey": "k"}
    if rule.path.endswith("/resolution"):
        return {"step": "turn-1.model.1", "outcome": "DidNotHappen", "requestKey": "k"}
    return {"metadata": {"labels": {"a": "b"}}} if rule.method == "PATCH" else None


def ask(rest: Rest, rule: Rule, **more: Any) -> Reply:
    """Makes the call of a route; its names may be given."""
    names = {word: more.pop(word) for word in ("project", "name") if word in more}
    body = body_of(rule)
    return rest.call(
        rule.method, path_of(rule, **names), body, kind=MERGE if rule.method == "PATCH" else None, **more
    )


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent("a", system="the agent of acme")
    return made


def test_every_route_is_behind_the_gate_and_needs_the_permission_of_its_kind(rest: Rest) -> None:
    app = rest.gate.app
    assert len(rest.gate.rules) == len(app._static_routes) + len(app._dynamic_routes)  # none goes around it
    assert {(rule.method, rule.path) for rule in rest.gate.rules if rule.permission is None} == OPEN
    assert {route_id(rule): rule.permission for rule in ROUTES} == {
        route_id(rule): expected_permission(rule) for rule in ROUTES
    }
    assert {rule.permission for rule in ROUTES} <= set(SCOPES)


@pytest.mark.req("NOD-467")
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwdw==", "Bearer nodus_x", "nodus_x", "Bearer " + "x" * 5000],
)
@every_route
def test_no_route_is_open_to_a_wrong_key(rest: Rest, rule: Rule, authorization: str) -> None:
    stored = rest.commits
    refused = ask(rest, rule, headers={"authorization": authorization})
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


@pytest.mark.req("NOD-479", "NODQ-96", "NOD-475")
@every_route
def test_a_key_of_one_scope_can_do_nothing_else(rest: Rest, rule: Rule) -> None:
    stored = rest.commits
    for scope in SCOPES:
        if scope == rule.permission:
            continue
        refused = ask(rest, rule, key=one_scope(rest, scope))
        assert (refused.code, refused.json["reason"]) == (403, "Forbidden"), scope
        assert str(rule.permission) in refused.json["message"]
    assert rest.commits == stored + len(SCOPES) - 1  # the keys themselves
    assert ask(rest, rule, key=one_scope(rest, str(rule.permission))).code not in (401, 403)


def one_scope(rest: Rest, scope: str) -> str:
    return rest.new_key(permissions=(scope,))


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_the_scopes_that_it_stands_for(rest: Rest, role: str) -> None:
    key = rest.new_key(permissions=(role,))
    for rule in ROUTES:
        reached = ask(rest, rule, key=key, name="nobody").code != 403
        assert reached == (rule.permission in ROLES[role]), route_id(rule)


def test_roles_grow_from_viewer_to_admin() -> None:
    assert ROLES["viewer"] < ROLES["editor"] < ROLES["admin"] == set(SCOPES)
    assert {word for word in ROLES["viewer"] if word.endswith(":write")} == set()
    managed = {"budgets:write", "projects:write", "organizations:write", "apikeys:read", "apikeys:write"}
    assert ROLES["admin"] - ROLES["editor"] == managed


@pytest.mark.req("NOD-004")
@every_route
def test_what_is_anothers_is_as_what_is_not(rest: Rest, rule: Rule) -> None:
    rest.directory.create_organization("rival")
    rest.directory.create_project("rival", "vault")
    rest.directory.create_project("rival", "web")
    theirs = rest.new_key("rival")
    own = {"Agent": {"system": "plum-9f31"}, "Budget": {"limitUSD": "1"}, "Secret": {"data": {"a": "b"}}}
    for project in ("vault", "web"):
        for kind, spec in own.items():
            plural = BY_NAME[kind].plural
            made = rest.apply(f"{plural}/theirs", manifest(kind, "theirs", spec), project=project, key=theirs)
            assert made.code == 201
    there, nowhere = ask(rest, rule, name="theirs"), ask(rest, rule, name="absent")
    assert there.code == nowhere.code
    assert there.text.replace("theirs", "absent") == nowhere.text
    there, nowhere = ask(rest, rule, project="vault"), ask(rest, rule, project="vanes")
    assert there.text.replace("vault", "vanes") == nowhere.text
    there, nowhere = (ask(rest, rule, headers={"nodus-org": org}) for org in ("rival", "nobody"))
    assert (there.code, there.text) == (403, nowhere.text)


@pytest.mark.req("NOD-004")
def test_a_key_of_single_projects_reaches_nothing_of_the_organization(rest: Rest) -> None:
    only_lab = rest.new_key(projects=("lab",))
    through_projects = {f"{BASE_PATH}/{kind.plural}" for kind in KINDS if kind.namespaced}
    for rule in ROUTES:
        if "<project>" not in rule.path and rule.path not in through_projects:
            refused = ask(rest, rule, key=only_lab, name="lab")
            assert (refused.code, refused.json["reason"]) == (403, "Forbidden"), route_id(rule)


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
