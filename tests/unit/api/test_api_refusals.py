"""What the wire refuses before anything is stored, and in which words."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from nodus_core.journal.store import Key, Row, Transaction
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.testing.memory_store import MemoryStore

from tests.unit.api.rest import API, APPLY, MERGE, Rest, manifest

HEAD = '"apiVersion":"nodus.dev/v1","kind":"Agent","metadata":{"name":"a"}'


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    return made


def test_every_refusal_is_a_status(rest: Rest) -> None:
    refused = rest.agent("a", sytem="x")
    assert refused.headers["content-type"] == "application/json"
    assert refused.json == {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "reason": "Invalid",
        "message": "Agent 'a' is not accepted: spec.sytem is no field; did you mean system?",
        "code": 422,
        "details": {
            "name": "a",
            "kind": "Agent",
            "causes": [
                {
                    "reason": "FieldValueUnknown",
                    "message": "is no field; did you mean system?",
                    "field": "spec.sytem",
                }
            ],
        },
    }


@pytest.mark.req("NOD-478", "NODQ-61", "FLD-17")
@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"modle": {}}, "spec.modle", "did you mean model?"),
        ({"model": {"access": "Nodus", "family": ["haiku"]}}, "spec.model.family", "did you mean families?"),
        (
            {"network": {"egress": {"polcy": "Deny", "policy": "Deny"}}},
            "spec.network.egress.polcy",
            "policy?",
        ),
        ({"env": [{"name": "A", "value": "b", "vaule": ""}]}, "spec.env[0].vaule", "did you mean value?"),
        ({"xyzzy": 1}, "spec.xyzzy", "fields are system"),
    ],
)
def test_unknown_fields_are_refused_with_a_suggestion(
    rest: Rest, spec: dict[str, Any], field: str, words: str
) -> None:
    stored = rest.commits
    refused = rest.agent("a", **spec)
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", [field])
    assert words in refused.json["message"]
    assert rest.commits == stored


@pytest.mark.req("FLD-17", "NOD-011", "NOD-012", "NOD-016", "NODQ-90", "NODQ-92")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"system": 5}, "spec.system"),
        ({"system": True}, "spec.system"),
        ({"system": ["x"]}, "spec.system"),
        ({"maxToolCalls": "5"}, "spec.maxToolCalls"),
        ({"maxToolCalls": 5.0}, "spec.maxToolCalls"),
        ({"maxToolCalls": True}, "spec.maxToolCalls"),
        ({"maxToolCalls": -1}, "spec.maxToolCalls"),
        ({"maxToolCalls": 10**30}, "spec.maxToolCalls"),
        ({"maxParallelAgents": -1}, "spec.maxParallelAgents"),
        ({"model": "Nodus"}, "spec.model"),
        ({"model": {}}, "spec.model.access"),
        ({"model": {"access": "Foo"}}, "spec.model.access"),
        ({"model": {"access": "Nodus", "families": ["foo"]}}, "spec.model.families[0]"),
        ({"model": {"access": "Nodus", "families": ["Haiku"]}}, "spec.model.families[0]"),
        ({"model": {"access": "Nodus", "families": []}}, "spec.model.families"),
        ({"model": {"access": "Nodus", "families": ["haiku", "haiku"]}}, "spec.model.families"),
        ({"model": {"access": "Nodus", "name": "x"}}, "spec.model.name"),
        ({"model": {"access": "Nodus", "apiKeySecret": "x"}}, "spec.model.apiKeySecret"),
        ({"model": {"access": "OnDemand"}}, "spec.model.name"),
        ({"model": {"access": "OnDemand", "name": " "}}, "spec.model.name"),
        ({"model": {"access": "OnDemand", "name": "x", "families": ["haiku"]}}, "spec.model.families"),
        ({"model": {"access": "BYOK", "apiKeySecret": "s"}}, "spec.model.name"),
        ({"model": {"access": "BYOK", "name": "x"}}, "spec.model.apiKeySecret"),
        ({"model": {"access": "Nodus", "maxTokens": 0}}, "spec.model.maxTokens"),
        ({"perRunMaxCostUSD": "0"}, "spec.perRunMaxCostUSD"),
        ({"perRunMaxCostUSD": "-1"}, "spec.perRunMaxCostUSD"),
        ({"perRunMaxCostUSD": "1e3"}, "spec.perRunMaxCostUSD"),
        ({"perRunMaxCostUSD": "0.1234567"}, "spec.perRunMaxCostUSD"),
        ({"perRunMaxCostUSD": "100000.01"}, "spec.perRunMaxCostUSD"),
        ({"perRunMaxCostUSD": "\u0660.\u0665"}, "spec.perRunMaxCostUSD"),
        ({"perRunMaxCostUSD": True}, "spec.perRunMaxCostUSD"),
        ({"workingDir": "workspace"}, "spec.workingDir"),
        ({"workingDir": "/a/../b"}, "spec.workingDir"),
        ({"workingDir": "/"}, "spec.workingDir"),
        ({"workingDir": "/usr/src"}, "spec.workingDir"),
        ({"workingDir": "/var/lib"}, "spec.workingDir"),
        ({"continuity": {"mode": "Snapshotted"}}, "spec.continuity.stateDir"),
        ({"continuity": {"mode": "None", "stateDir": "/a"}}, "spec.continuity.stateDir"),
        ({"source": {"git": {"repo": "no-owner"}}}, "spec.source.git.repo"),
        ({"source": {"git": {"repo": "o/r", "ref": "--upload-pack=x"}}}, "spec.source.git.ref"),
        ({"setup": ""}, "spec.setup"),
        ({"image": "bad image"}, "spec.image"),
        ({"network": {"egress": {"policy": "AllowList"}}}, "spec.network.egress.allow"),
        (
            {"network": {"egress": {"policy": "AllowList", "allow": ["10.0.0.1"]}}},
            "spec.network.egress.allow[0]",
        ),
        (
            {"network": {"egress": {"policy": "AllowList", "allow": ["a b.c"]}}},
            "spec.network.egress.allow[0]",
        ),
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "spec.env"),
        ({"env": [{"name": "NODUS_LINK_WS", "value": "x"}]}, "spec.env[0].name"),
        ({"env": [{"name": "NODUS_TOKENS", "value": "x"}]}, "spec.env[0].name"),
        ({"env": [{"name": "1A", "value": "x"}]}, "spec.env[0].name"),
        ({"env": {"A": "1"}}, "spec.env"),
        ({"secrets": [{"name": "s", "env": "A"}]}, "spec.secrets[0].key"),
        ({"state": "Paused"}, "spec.state"),
    ],
)
def test_wrong_values_are_refused_by_field(rest: Rest, spec: dict[str, Any], field: str) -> None:
    stored = rest.commits
    refused = rest.agent("a", **spec)
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", [field])
    assert rest.commits == stored


@pytest.mark.req("NOD-040", "NOD-338", "FLD-17", "NODQ-21")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"input": ""}, "spec.input"),
        ({"input": "  \n"}, "spec.input"),
        ({"input": None}, "spec.input"),
        ({"agent": None}, "spec.agent"),
        ({"agent": "Hello"}, "spec.agent"),
        ({"keepAlive": "yes"}, "spec.keepAlive"),
        ({"parallelism": -1}, "spec.parallelism"),
        ({"taskKey": "a"}, "spec.taskKey"),
        ({"dependsOn": ["a"]}, "spec.dependsOn"),
        ({"group": "g", "taskKey": "A.b"}, "spec.taskKey"),
        ({"deadline": "2026-12-01 09:00"}, "spec.deadline"),
        ({"deadline": "2026-12-01T09:00:00"}, "spec.deadline"),
        ({"deadline": "2026-02-30T00:00:00Z"}, "spec.deadline"),
        ({"deadline": "soon"}, "spec.deadline"),
        ({"deadline": ""}, "spec.deadline"),
        ({"perRunMaxCostUSD": "1"}, "spec.perRunMaxCostUSD"),
    ],
)
def test_a_runs_wrong_values_are_refused_by_field(rest: Rest, spec: dict[str, Any], field: str) -> None:
    stored = rest.commits
    refused = rest.run(**spec)
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", [field])
    assert rest.commits == stored


@pytest.mark.req("NOD-101", "NODQ-29")
def test_a_hosted_model_is_coming_soon(rest: Rest) -> None:
    for refused in (
        rest.agent("a", model={"access": "Hosted", "name": "mine"}),
        rest.run(model={"access": "Hosted"}),
    ):
        assert (refused.code, refused.json["reason"]) == (422, "ComingSoon")
        assert refused.fields == ["spec.model.access"]
        assert "coming soon" in refused.json["message"]


@pytest.mark.req("FLD-13", "NOD-115", "NOD-116")
@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/v1",
        "https://[::ffff:a9fe:a9fe]/v1",
        "https://2852039166/v1",
        "https://0x7f.1/v1",
        "https://localhost./v1",
        "https://u:p@example.org/v1",
        "file:///etc/hosts",
        "https://[fd00:ec2::254]/",
        "https://100.64.0.7/",
    ],
)
def test_an_address_that_points_inward_is_refused_and_not_repeated(rest: Rest, url: str) -> None:
    model = {"access": "BYOK", "name": "m", "apiKeySecret": "s", "baseURL": url}
    refused = rest.agent("a", model=model)
    assert (refused.code, refused.fields) == (422, ["spec.model.baseURL"])
    assert url not in refused.text
    assert rest.agent("a", model={**model, "baseURL": "https://api.example.com/v1"}).code == 201


@pytest.mark.req("FLD-14", "NOD-028")
def test_a_refusal_repeats_no_value(rest: Rest) -> None:
    word = "plum-9f31-KITE-77aa"
    bodies: list[dict[str, Any]] = [
        {"model": {"access": word}},
        {"model": {"access": "BYOK", "name": "m", "apiKeySecret": f"{word} "}},
        {"env": [{"name": word, "value": word}]},
        {"env": word},
        {"perRunMaxCostUSD": word},
        {"image": f"{word} x", "workingDir": word, "source": {"git": {"repo": word}}, "maxToolCalls": word},
        {"continuity": {"mode": word}, "state": word, "network": {"egress": {"policy": word}}},
    ]
    for spec in bodies:
        refused = rest.agent("a", **spec)
        assert refused.code == 422
        assert word not in refused.text


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ("", "BadRequest", "not JSON"),
        ("{", "BadRequest", "not JSON"),
        ("[]", "BadRequest", "JSON object"),
        ('"x"', "BadRequest", "JSON object"),
        ("null", "BadRequest", "JSON object"),
        (f"{{{HEAD}}} {{}}", "BadRequest", "not JSON"),
        (
            f'{{{HEAD},"spec":{{"maxToolCalls":1,"maxToolCalls":2}}}}',
            "BadRequest",
            "'maxToolCalls' is given twice",
        ),
        (f'{{{HEAD},"spec":{{"maxToolCalls":NaN}}}}', "BadRequest", "NaN"),
        (f'{{{HEAD},"spec":{{"maxToolCalls":{"9" * 5000}}}}}', "BadRequest", "digits"),
        (f'{{{HEAD},"spec":{{"maxToolCalls":1e999999999}}}}', "BadRequest", "number"),
        (f'{{{HEAD},"spec":{{"maxToolCalls":1e99999999999999999999}}}}', "BadRequest", "too large"),
        (f'{{{HEAD},"spec":{{"maxToolCalls":-1E-99999999999999999999}}}}', "BadRequest", "too small"),
        (f'{{{HEAD},"spec":{"[" * 50}{"]" * 50}}}', "BadRequest", "levels"),
        (f'{{{HEAD},"spec":{"[" * 100_000}{"]" * 100_000}}}', "BadRequest", "levels"),
        (f'{{{HEAD},"spec":{{"env":[{"0," * 30_000}0]}}}}', "BadRequest", "values"),
        (f'{{{HEAD},"spec":{{"system":"a\\u0000b"}}}}', "Invalid", "NUL"),
        (f'{{{HEAD},"spec":{{"system":"a\\ud83cb"}}}}', "Invalid", "surrogate"),
        (f'{{{HEAD},"spec":{{"\\ud83c":"x"}}}}', "Invalid", "surrogate"),
        (f'{{{HEAD},"spec":{{}},"spce":1}}', "Invalid", "did you mean spec?"),
        (f"{{{HEAD}}}", "Invalid", "spec is required"),
        (f'{{{HEAD},"spec":[]}}', "Invalid", "spec must hold fields"),
        ('{"kind":"Agent","metadata":{"name":"a"},"spec":{}}', "Invalid", "apiVersion is required"),
        (f'{{{HEAD.replace("v1", "v2")},"spec":{{}}}}', "BadRequest", "nodus.dev/v2"),
        (f'{{{HEAD.replace("Agent", "AgentRun")},"spec":{{}}}}', "BadRequest", "kind must be Agent"),
        (
            f'{{{HEAD.replace(chr(34) + "a" + chr(34), "1")},"spec":{{}}}}',
            "Invalid",
            "metadata.name must be a text",
        ),
        (
            f'{{{HEAD.replace(chr(34) + "a" + chr(34), chr(34) + "A_b" + chr(34))},"spec":{{}}}}',
            "Invalid",
            "lower case",
        ),
        (b"\xff\xfe{}", "BadRequest", "UTF-8"),
    ],
)
def test_bodies_that_are_no_agent(rest: Rest, body: str | bytes, reason: str, words: str) -> None:
    stored = rest.commits
    refused = rest.post("agents", body)
    assert (refused.code, refused.json["reason"]) == (400 if reason == "BadRequest" else 422, reason)
    assert words in refused.json["message"]
    assert rest.commits == stored


def test_a_number_beyond_all_bounds_is_refused_wherever_a_body_is_read(rest: Rest) -> None:
    huge = '{"spec":{"limitUSD":1e99999999999999999999}}'
    rest.agent()
    rest.run()
    for answer in (
        rest.post("budgets", huge),
        rest.patch("agents/hello-agent", huge),
        rest.apply("agents/hello-agent", huge),
        rest.post("agentruns/hello-run/messages", '{"messageKey":1e99999999999999999999,"payload":"x"}'),
        rest.post("agentruns/hello-run/resolution", '{"requestKey":1e-99999999999999999999}'),
    ):
        assert (answer.code, answer.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("place", ["", "metadata", "spec", "labels"])
def test_a_refusal_names_twenty_fields_at_most(rest: Rest, place: str) -> None:
    """An answer is not larger than what a person can read, however much is wrong."""
    wrong = {f"x {number}": "no value!" for number in range(60 if place == "labels" else 9000)}
    body: dict[str, Any] = manifest("Agent", "a", {})
    holder = body["metadata"].setdefault("labels", {}) if place == "labels" else body.get(place, body)
    holder.update(wrong)
    refused = rest.post("agents", body)
    assert (refused.code, len(refused.fields)) == (422, 20)
    assert len(refused.text) < 10_000


def test_a_surrogate_pair_is_one_character(rest: Rest) -> None:
    assert (
        rest.post("agents", f'{{{HEAD},"spec":{{"system":"\\ud83c\\udf78"}}}}').json["spec"]["system"] == "🍸"
    )


def test_a_byte_order_mark_and_crlf_are_fine(rest: Rest) -> None:
    assert rest.post("agents", f'\ufeff{{{HEAD},\r\n"spec":{{}}}}\r\n').code == 201


@pytest.mark.req("NODQ-78")
def test_a_body_has_a_bound(rest: Rest) -> None:
    stored = rest.commits
    refused = rest.post("agents", " " * (5 * 1024 * 1024 + 1))
    assert (refused.code, refused.json["reason"]) == (413, "PayloadTooLarge")
    assert rest.commits == stored


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "agents", "text/plain"),
        ("POST", "agents", MERGE),
        ("POST", "agentruns", "application/x-www-form-urlencoded"),
        ("PATCH", "agents/a", "application/json"),
        ("PATCH", "agents/a", "application/json-patch+json"),
        ("PATCH", "agentruns/a", "application/strategic-merge-patch+json"),
    ],
)
def test_other_content_types_are_refused(rest: Rest, method: str, path: str, kind: str) -> None:
    stored = rest.commits
    refused = rest.call(method, path, manifest("Agent", "a", {}), kind=kind)
    assert (refused.code, refused.json["reason"]) == (415, "UnsupportedMediaType")
    assert rest.commits == stored


def test_content_types_may_have_parameters_and_any_case(rest: Rest) -> None:
    body = manifest("Agent", "a", {})
    assert rest.call("POST", "agents", body, kind="Application/JSON; charset=UTF-8").code == 201
    assert rest.call("PATCH", "agents/a", body, kind=f"{APPLY};x=y").code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/apis/nodus.dev/v2/namespaces/web/agents",
        "/apis/other.dev/v1/namespaces/web/agents",
        f"/apis/{API}/namespaces/web/agents/",
        f"/apis/{API}/namespaces/web/agents/a/b",
        f"/apis/{API}/namespaces/web//agents",
        f"/apis/{API}/namespaces/web/agents/../agents",
        f"/apis/{API}/namespaces/web/widgets",
        f"/apis/{API}/namespaces/web/agents/hello-agent%2F..%2Fx",
        f"/apis/{API}/namespaces/web/agents/%2e%2e",
        f"/apis/{API}/namespaces/web/agents/Hello-Agent",
        f"/apis/{API}/namespaces/web/agents/{'a' * 2000}",
        f"/apis/{API}/namespaces/web/agentruns/hello-agent/steps",
        f"/apis/{API}/namespaces/%77eb/agents",
        f"/apis/{API}/namespaces/web#x/agents",
        f"/apis/{API}/namespaces/obj#acme/agents",
        f"/apis/{API}/namespaces/{'w' * 2000}/agents",
        "/healthz/x",
    ],
)
def test_paths_that_lead_nowhere(rest: Rest, path: str) -> None:
    stored = rest.commits
    refused = rest.get(path)
    assert (refused.code, refused.json["kind"], refused.json["reason"]) == (404, "Status", "NotFound")
    assert rest.call("DELETE", path).code in (404, 405)
    assert rest.commits == stored


def test_a_method_that_is_not_there(rest: Rest) -> None:
    for method, path, allowed in (
        ("POST", "agents/hello-agent", "GET, PUT, PATCH, DELETE"),
        ("DELETE", "agents", "GET, POST"),
        ("GET", "agentruns/r/cancel", "POST"),
    ):
        refused = rest.call(method, path)
        assert (refused.code, refused.json["reason"]) == (405, "MethodNotAllowed")
        assert refused.headers["allow"] == allowed
    assert rest.call("GET", "toasters").json["reason"] == "NotFound"


def test_the_path_and_the_body_must_agree(rest: Rest) -> None:
    assert rest.apply("agents/a", manifest("Agent", "b", {})).fields == ["metadata.name"]
    body = {**manifest("Agent", "a", {}), "metadata": {"name": "a", "namespace": "lab"}}
    assert rest.apply("agents/a", body).fields == ["metadata.namespace"]
    nameless = {**manifest("Agent", "a", {}), "metadata": {}}
    assert rest.apply("agents/a", nameless).json["metadata"]["name"] == "a"
    assert rest.post("agents", nameless).fields == ["metadata.name"]
    assert rest.apply("agents/A_b", nameless).fields == ["metadata.name"]


class BrokenStore(MemoryStore):
    """A store whose reads and commits raise once there is an error."""

    error: Exception | None = None

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        if self.error:
            raise self.error
        return super().get(keys)

    def commit(self, transaction: Transaction, token: str) -> None:
        if self.error:
            raise self.error
        super().commit(transaction, token)


def test_a_fault_of_ours_tells_nothing_but_the_request() -> None:
    store = BrokenStore()
    rest = Rest(store=store)
    store.error = KeyError("table nodus-journal, key plum-9f31")
    failed = rest.agent("a")
    assert (failed.code, failed.json["reason"]) == (500, "InternalError")
    assert "11111111-2222-3333-4444-555555555555" in failed.json["message"]
    assert "plum" not in failed.text
    assert rest.gate.facts["error"] is store.error


KEYED = {"Idempotency-Key": "k"}
APPLIED, MERGED = {"content-type": APPLY}, {"content-type": MERGE}


@pytest.mark.req("FLD-16")
@pytest.mark.parametrize(
    ("method", "path", "headers", "safe"),
    [
        ("GET", "agentruns/a", {}, True),
        ("POST", "agents", {}, False),
        ("POST", "agentruns", {}, False),
        ("POST", "budgets", KEYED, True),
        ("POST", "agentruns", KEYED, True),
        ("PATCH", "secrets/a", APPLIED, True),
        ("PATCH", "agents/a", MERGED, False),
        ("PATCH", "agents/a", MERGED | KEYED, False),
        ("PATCH", "agentruns/a", APPLIED, False),
        ("DELETE", "agents/a", {}, False),
        ("DELETE", "agentruns/a", {}, False),
        ("POST", "agentruns/a/cancel", {}, True),
        ("POST", "agentruns/a/messages", {}, True),
        ("POST", "agentruns/a/resolution", {}, True),
    ],
)
def test_a_busy_store_says_when_to_come_again_only_where_that_is_safe(
    method: str, path: str, headers: dict[str, str], safe: bool
) -> None:
    store = BrokenStore()
    rest = Rest(store=store)
    store.error = StoreUnavailable("throttled", retry_after=2.4)
    busy = rest.call(method, path, headers=headers)
    assert (busy.code, busy.json["reason"]) == (503, "ServiceUnavailable")
    assert busy.headers.get("retry-after") == ("2" if safe else None)


def test_health_needs_no_key(rest: Rest) -> None:
    answer = rest.call("GET", "/healthz", headers={"authorization": ""})
    assert (answer.code, json.loads(answer.text)) == (200, {"status": "ok"})
