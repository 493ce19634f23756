"""What holds for the objects of every kind: the same verbs, the same metadata, the same refusals."""

import json
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.promises import promise
from nodus_core.conversations.shelf import Outcome, key_of
from nodus_core.resources.manifest import read_manifest

from tests.unit.api.rest import API, JSON, Reply, Rest, manifest
from tests.unit.api.together import together

TASKS = [{"id": f"t{number}", "prompt": "What is 1 + 1?", "answer": "two"} for number in range(3)]
ENVIRONMENT = {
    "version": "v1",
    "splits": {"test": TASKS},
    "grader": {"image": "nodus/agent-tools", "command": "grade"},
}
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "agents": ("Agent", {"system": "You are careful."}),
    "agentruns": ("AgentRun", {"agent": "hello-agent", "input": "Say hi."}),
    "agentgroups": ("AgentGroup", {"agent": "hello-agent", "limits": {"maxActive": 2}, "maxCostUSD": "0.60"}),
    "budgets": ("Budget", {"limitUSD": "5"}),
    "connections": ("Connection", {"type": "GitHub", "github": {"installationId": 42}}),
    "endpoints": ("Endpoint", {"model": {"access": "OnDemand", "name": "openai/gpt-oss-20b"}}),
    "environments": ("Environment", ENVIRONMENT),
    "environmentimages": ("EnvironmentImage", {"image": "nodus/agent-tools", "setup": "true"}),
    "sandboxes": ("Sandbox", {"resources": {"cpu": 1, "memory": 2}, "idleTimeout": "10m", "ttl": "24h"}),
    "secrets": ("Secret", {"data": {"KEY": "s3cret"}}),
}
LATER = [
    *("agentgroups", "endpoints", "environments"),
]
every_kind = pytest.mark.parametrize("plural", SPECS)


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    return made


def wanted(plural: str, name: str = "a", **metadata: Any) -> dict[str, Any]:
    kind, spec = SPECS[plural]
    body = manifest(kind, name, spec)
    return {**body, "metadata": {**body["metadata"], **metadata}}


def reason(reply: Reply) -> tuple[int, str]:
    return reply.code, reply.json["reason"]


def gone(rest: Rest, plural: str) -> bool:
    rest.world.settle()
    return rest.get(f"{plural}/a").code == 404


@pytest.mark.req("NOD-001", "NOD-002", "NOD-469", "NODQ-04", "NODQ-104")
@every_kind
def test_every_kind_takes_the_same_verbs(rest: Rest, plural: str) -> None:
    created = rest.post(plural, wanted(plural, labels={"team": "web"}))
    assert created.code == 201
    assert {*created.json} == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert rest.get(f"{plural}/a").json["metadata"] == created.json["metadata"]
    assert [item["metadata"]["name"] for item in rest.get(plural).json["items"]][-1] in ("a", "hello-agent")
    assert reason(rest.post(plural, wanted(plural))) == (409, "AlreadyExists")

    patched = rest.patch(f"{plural}/a", {"metadata": {"labels": {"more": "yes"}}})
    assert patched.json["metadata"]["labels"] == {"team": "web", "more": "yes"}
    applied = rest.apply(f"{plural}/a", wanted(plural, labels={"team": "lab"}))
    assert applied.json["metadata"]["labels"] == {"team": "lab"}
    assert applied.json["metadata"]["generation"] == 1
    put = rest.call("PUT", f"{plural}/a", wanted(plural))
    assert (put.code, put.json["metadata"].get("labels")) == (200, None)

    assert rest.call("DELETE", f"{plural}/a").code in (200, 202)
    assert gone(rest, plural)


@every_kind
def test_a_put_never_creates_and_holds_to_its_version(rest: Rest, plural: str) -> None:
    assert reason(rest.call("PUT", f"{plural}/a", wanted(plural))) == (404, "NotFound")
    first = rest.post(plural, wanted(plural)).json["metadata"]
    rest.patch(f"{plural}/a", {"metadata": {"labels": {"x": "y"}}})
    stored = rest.commits
    stale = wanted(plural, labels={"z": "z"}, resourceVersion=first["resourceVersion"])
    assert reason(rest.call("PUT", f"{plural}/a", stale)) == (409, "Conflict")
    other = wanted(plural, labels={"z": "z"}, uid="another")
    assert reason(rest.call("PUT", f"{plural}/a", other)) == (409, "Conflict")
    assert rest.commits == stored
    seen = rest.get(f"{plural}/a").json
    assert rest.call("PUT", f"{plural}/a", seen).json["metadata"] == seen["metadata"]  # what was read


@pytest.mark.req("NOD-051", "NODQ-38")
def test_a_put_of_a_run_changes_its_labels_and_annotations_only(rest: Rest) -> None:
    rest.post("agentruns", wanted("agentruns"))
    body = wanted("agentruns", labels={"a": "b"}, annotations={"example.com/note": "mine"})
    assert rest.call("PUT", "agentruns/a", body).json["metadata"]["annotations"] == {
        "example.com/note": "mine"
    }
    refused = rest.call("PUT", "agentruns/a", {**body, "spec": {**body["spec"], "input": "Else."}})
    assert (refused.code, refused.fields) == (422, ["spec.input"])


@pytest.mark.parametrize(
    "kind", ["application/json-patch+json", "application/strategic-merge-patch+json", JSON]
)
def test_a_patch_of_another_type_is_told_what_is_taken(rest: Rest, kind: str) -> None:
    refused = rest.call("PATCH", "agents/hello-agent", "[]", kind=kind)
    assert reason(refused) == (415, "UnsupportedMediaType")
    assert "application/merge-patch+json" in refused.json["message"]


# --- dry runs ---------------------------------------------------------------------------------------------------


@every_kind
def test_a_dry_run_checks_everything_and_stores_nothing(rest: Rest, plural: str) -> None:
    dry = {"dryRun": "All"}
    stored, started = rest.commits, len(rest.world.executions.names)
    created = rest.post(plural, wanted(plural), query=dry)
    assert (created.code, created.json["metadata"]["name"]) == (201, "a")
    assert rest.apply(f"{plural}/a", wanted(plural), query=dry).code == 201
    assert (rest.commits, len(rest.world.executions.names)) == (stored, started)
    assert rest.get(f"{plural}/a").code == 404
    bad = rest.post(plural, {**wanted(plural), "spec": {"nonsense": 1}}, query=dry)
    assert reason(bad) == (422, "Invalid")

    rest.post(plural, wanted(plural))
    stored, started = rest.commits, len(rest.world.executions.names)
    shown = rest.get(f"{plural}/a").json
    assert reason(rest.post(plural, wanted(plural), query=dry)) == (409, "AlreadyExists")
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert rest.patch(f"{plural}/a", labelled, query=dry).json["metadata"]["labels"] == {"a": "b"}
    assert rest.call("PUT", f"{plural}/a", wanted(plural, annotations={"n": "m"}), query=dry).code == 200
    assert rest.call("DELETE", f"{plural}/a", query=dry).code in (200, 202)
    in_body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    assert rest.call("DELETE", f"{plural}/a", in_body).code in (200, 202)
    assert (rest.commits, len(rest.world.executions.names)) == (stored, started)
    assert rest.get(f"{plural}/a").json == shown
    assert reason(rest.post(plural, wanted(plural, "b"), query={"dryRun": "Some"})) == (400, "BadRequest")


def test_a_dry_run_shows_long_texts_and_keeps_none(rest: Rest) -> None:
    notes = {"example.com/long": "x" * 9000}
    body = manifest("Agent", "a", {"system": "y" * 9000})
    body["metadata"]["annotations"] = notes
    shown = rest.post("agents", body, query={"dryRun": "All"}).json
    assert (shown["metadata"]["annotations"], shown["spec"]) == (notes, body["spec"])
    assert not rest.world.payloads.objects


def test_a_dry_run_of_a_secret_keeps_no_value(rest: Rest) -> None:
    rest.post("secrets", wanted("secrets"))
    kept = {place: dict(versions) for place, versions in rest.world.vault.places.items()}
    changed = {"spec": {"data": {"KEY": "other"}}}
    assert rest.patch("secrets/a", changed, query={"dryRun": "All"}).code == 200
    assert rest.post("secrets", wanted("secrets", "b"), query={"dryRun": "All"}).code == 201
    assert rest.call("DELETE", "secrets/a", query={"dryRun": "All"}).code == 200
    assert rest.world.vault.places == kept
    assert rest.patch("secrets/a", {"spec": {"data": {"KEY": "s3cret"}}}).json["metadata"]["generation"] == 1


# --- metadata ---------------------------------------------------------------------------------------------------


def test_annotations_are_kept_whatever_their_length(rest: Rest) -> None:
    notes = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"x": "y" * 200_000}), "n": ""}
    body = wanted("agents", annotations=notes)
    assert rest.post("agents", body).json["metadata"]["annotations"] == notes
    assert [item["metadata"].get("annotations") for item in rest.get("agents").json["items"]] == [notes, None]
    changed = rest.patch("agents/a", {"metadata": {"annotations": {"n": None, "m": "1"}}}).json
    assert {*changed["metadata"]["annotations"]} == {*notes} - {"n"} | {"m"}
    assert changed["metadata"]["generation"] == 1
    assert rest.apply("agents/a", manifest("Agent", "a", SPECS["agents"][1])).json == changed
    assert (
        rest.patch("agents/a", {"metadata": {"annotations": None}}).json["metadata"].get("annotations")
        is None
    )


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({"a": "x" * 262_144}, "metadata.annotations"),
        ({"a": 1}, "metadata.annotations.a"),
        ({"not a key": "x"}, "metadata.annotations.not a key"),
        (["a"], "metadata.annotations"),
    ],
)
def test_annotations_that_are_none(rest: Rest, annotations: Any, field: str) -> None:
    refused = rest.post("agents", wanted("agents", annotations=annotations))
    assert (refused.code, refused.fields) == (422, [field])


@pytest.mark.req("NOD-118", "NOD-465")
def test_a_note_that_holds_a_secrets_values_is_refused(rest: Rest) -> None:
    stored = rest.commits
    notes = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(wanted("secrets"))}
    refused = rest.post("secrets", wanted("secrets", annotations=notes))
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    assert "--server-side" in refused.json["message"]
    assert rest.commits == stored
    rest.post("secrets", wanted("secrets"))
    assert rest.patch("secrets/a", {"metadata": {"annotations": notes}}).code == 422
    assert rest.get("secrets/a").json["metadata"].get("annotations") is None


def test_what_the_server_writes_is_taken_and_ignored(rest: Rest) -> None:
    theirs = {
        "managedFields": [{"manager": "kubectl"}],
        "selfLink": "/x",
        "finalizers": [],
        "creationTimestamp": None,
        "generation": 99,
        "deletionGracePeriodSeconds": 5,
    }
    made = rest.post("agents", wanted("agents", **theirs))
    assert (made.code, made.json["metadata"]["generation"]) == (201, 1)
    assert not {*made.json["metadata"]} & {"managedFields", "selfLink", "finalizers"}


@pytest.mark.parametrize(
    ("field", "value"), [("ownerReferences", [{"uid": "x"}]), ("finalizers", ["example.com/mine"])]
)
def test_what_nothing_would_act_on_is_refused(rest: Rest, field: str, value: Any) -> None:
    refused = rest.post("agents", wanted("agents", **{field: value}))
    assert (refused.code, refused.fields) == (422, [f"metadata.{field}"])


@every_kind
def test_names_are_generated(rest: Rest, plural: str) -> None:
    body = wanted(plural)
    body["metadata"] = {"generateName": "made-"}
    names = {rest.post(plural, body).json["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("made-") and len(name) == len("made-") + 5 for name in names)


@pytest.mark.req("FLD-16")
@every_kind
def test_a_generated_name_is_the_same_for_the_same_key(rest: Rest, plural: str) -> None:
    body = wanted(plural)
    body["metadata"] = {"generateName": "made-", "annotations": {"n": "m"}}
    first = rest.post(plural, body, headers={"idempotency-key": "k"})
    again = rest.post(plural, body, headers={"idempotency-key": "k"})
    assert (first.code, again.code, again.headers["idempotent-replayed"]) == (201, 201, "true")
    assert again.json == first.json
    other = {**body, "metadata": {"generateName": "else-"}}
    refused = rest.post(plural, other, headers={"idempotency-key": "k"})
    assert reason(refused) == (409, "IdempotencyKeyConflict")


def test_a_generated_name_must_fit(rest: Rest) -> None:
    for prefix in ("Made-", "x" * 249, "-", "a b", 5):
        body = {**wanted("agents"), "metadata": {"generateName": prefix}}
        assert rest.post("agents", body).fields == ["metadata.generateName"], prefix
    given = wanted("agents", generateName="other-")
    assert rest.post("agents", given).json["metadata"]["name"] == "a"


# --- deleting ---------------------------------------------------------------------------------------------------


@every_kind
def test_a_delete_takes_the_object_that_is_meant_only(rest: Rest, plural: str) -> None:
    first = rest.post(plural, wanted(plural)).json["metadata"]
    rest.patch(f"{plural}/a", {"metadata": {"labels": {"x": "y"}}})
    stored = rest.commits
    for preconditions in ({"uid": "another"}, {"resourceVersion": first["resourceVersion"]}):
        refused = rest.call("DELETE", f"{plural}/a", {"preconditions": preconditions})
        assert reason(refused) == (409, "Conflict")
    assert rest.commits == stored
    now = rest.get(f"{plural}/a").json["metadata"]
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": now["uid"], "resourceVersion": now["resourceVersion"]},
    }
    query = {"propagationPolicy": "Background", "gracePeriodSeconds": "0"}
    assert rest.call("DELETE", f"{plural}/a", options, query=query).code in (200, 202)
    assert gone(rest, plural)


def test_options_that_are_none_delete_nothing(rest: Rest) -> None:
    for options in ({"propagation": "x"}, {"preconditions": {"uid": 5}}, {"dryRun": ["Some"]}):
        assert reason(rest.call("DELETE", "agents/hello-agent", options)) == (422, "Invalid")
    assert rest.get("agents/hello-agent").code == 200


@pytest.mark.req("NODQ-94")
def test_a_run_that_is_being_deleted_says_what_it_waits_for(rest: Rest) -> None:
    rest.run("r")
    deleting = rest.call("DELETE", "agentruns/r").json["metadata"]
    assert deleting["finalizers"] == ["nodus.dev/sandbox"]
    assert deleting["deletionTimestamp"]


# --- every answer -----------------------------------------------------------------------------------------------


def test_every_answer_names_its_request(rest: Rest) -> None:
    request = "11111111-2222-3333-4444-555555555555"
    for reply in (
        rest.get("/healthz"),
        rest.get("agents"),
        rest.get("agents/nobody"),
        rest.get("/nowhere"),
        rest.call("DELETE", "agents"),
        rest.get("agents", headers={"authorization": ""}),
        rest.run("r"),
    ):
        assert reply.headers["x-request-id"] == request
    rest.gate.service.verbs.clear()  # type: ignore[attr-defined] - a fault of ours
    failed = rest.post("agents", wanted("agents"))
    assert reason(failed) == (500, "InternalError")
    assert request in failed.json["message"]


# --- kinds that nothing acts on yet -----------------------------------------------------------------------------


@pytest.mark.req("NOD-007")
@pytest.mark.parametrize("plural", LATER)
def test_a_kind_without_behaviour_says_so_and_starts_nothing(rest: Rest, plural: str) -> None:
    started = len(rest.world.executions.names)
    made = rest.post(plural, wanted(plural)).json
    (ready,) = made["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "NotAvailable")
    assert ready["lastTransitionTime"] == made["metadata"]["creationTimestamp"]
    assert made["status"].get("phase") == ("Pending" if plural == "agentgroups" else None)
    rest.world.settle()
    assert len(rest.world.executions.names) == started
    assert rest.get("agentruns").json["items"] == []


@pytest.mark.req("NOD-023", "NOD-018")
def test_an_agent_says_what_of_it_is_not_honoured_yet(rest: Rest) -> None:
    def conditions(**spec: Any) -> dict[str, tuple[str, str]]:
        shown = rest.agent(**spec).json["status"]["conditions"]
        return {said["type"]: (said["status"], said["reason"]) for said in shown}

    assert conditions() == {"Ready": ("True", "Accepted")}
    assert conditions(state="Stopped") == {"Ready": ("False", "Stopped")}
    source = {"git": {"repo": "octo/site"}}
    assert conditions(source=source) == {"Ready": ("True", "Accepted")}
    folder = {"mode": "Snapshotted", "stateDir": "/workspace/state"}
    assert conditions(continuity=folder, source=source) == {"Ready": ("False", "NotAvailable")}
    assert conditions(continuity=folder) == {"Ready": ("True", "Accepted")}
    assert conditions(continuity=folder, workingDir="/elsewhere") == {"Ready": ("False", "NotAvailable")}
    assert (
        "spec.continuity.stateDir"
        in rest.get("agents/hello-agent").json["status"]["conditions"][0]["message"]
    )


@pytest.mark.req("NOD-026", "NOD-036")
def test_runs_pin_the_revision_of_their_agent(rest: Rest) -> None:
    rest.run("first")
    rest.agent(system="Another one.")
    rest.run("second")
    shown = {name: rest.get(f"agentruns/{name}").json["status"] for name in ("first", "second")}
    assert {name: status["agentGeneration"] for name, status in shown.items()} == {"first": 1, "second": 2}


# --- at once ----------------------------------------------------------------------------------------------------


@pytest.mark.req("FLD-16")
@every_kind
def test_of_creates_at_once_under_one_key_all_get_the_same_object(rest: Rest, plural: str) -> None:
    place = Place("acme", "web", "test")
    asked_for = read_manifest(wanted(plural), SPECS[plural][0], "web")

    def create(_: int) -> Outcome:
        asked = promise(key_of(place, asked_for.kind, "a"), "POST", "/x", "k", asked_for)
        return rest.gate.service.verbs[asked_for.kind].create(place, asked_for, asked)

    outcomes, refusals = together(8, create)
    assert not refusals
    assert len({outcome.object.uid for outcome in outcomes}) == 1
    assert [outcome.replayed for outcome in outcomes].count(False) == 1


def test_of_writes_at_once_from_the_same_version_one_wins(rest: Rest) -> None:
    seen = rest.get("agents/hello-agent").json
    place = Place("acme", "web", "test")

    def write(number: int) -> Outcome:
        body = {**seen, "spec": {"system": f"{number}"}}
        return rest.gate.service.verbs["Agent"].update(place, read_manifest(body, "Agent", "web"))

    outcomes, refusals = together(8, write)
    assert (len(outcomes), {refusal.reason for refusal in refusals}) == (1, {"Conflict"})
    assert rest.get("agents/hello-agent").json["metadata"]["generation"] == 2


@every_kind
def test_a_change_between_look_and_delete_keeps_what_was_not_meant(rest: Rest, plural: str) -> None:
    kind, objects = SPECS[plural][0], rest.gate.service.reading.shelf.journal.objects
    seen = rest.post(plural, wanted(plural)).json["metadata"]["resourceVersion"]
    if plural == "agentruns":
        rest.world.settle()
        seen = rest.get(f"{plural}/a").json["metadata"]["resourceVersion"]
    commit = {"agentruns": "mark_deleted", "sandboxes": "stop"}.get(plural, "remove")
    holder = rest.gate.service.reading.shelf.journal.turns if commit == "stop" else objects
    plain, done = getattr(holder, commit), []

    def racing(*arguments: Any, **more: Any) -> Any:
        if not done:
            done.append(rest.patch(f"{plural}/a", {"metadata": {"labels": {"changed": "yes"}}}).code)
        return plain(*arguments, **more)

    setattr(holder, commit, racing)
    refused = rest.call("DELETE", f"{plural}/a", {"preconditions": {"resourceVersion": seen}})
    assert (done, reason(refused)) == ([200], (409, "Conflict"))
    shown = rest.get(f"{plural}/a").json
    assert (shown["kind"], shown["metadata"]["labels"]) == (kind, {"changed": "yes"})
    assert "deletionTimestamp" not in shown["metadata"]


@pytest.mark.req("NOD-077", "NODQ-56")
def test_annotations_of_a_run_go_with_its_texts(rest: Rest) -> None:
    """`kubectl apply` notes the prompt there."""
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 9000}
    uid = rest.post("agentruns", wanted("agentruns", annotations=notes)).json["metadata"]["uid"]
    rest.world.settle()
    assert rest.get("agentruns/a").json["metadata"]["annotations"] == notes
    assert Expiry(rest.world.outside, rest.world.payloads, rest.world.clock).expire(uid, lambda: 20.0)
    assert "annotations" not in rest.get("agentruns/a").json["metadata"]
    assert not any("x" * 9000 in text for text in rest.world.payloads.objects.values())


KUBERNETES: dict[str, str] = {"timeout": "30s", "pretty": "true"}
"""What client-go sends along with any call (`kubectl --request-timeout`)."""


def test_what_client_go_adds_to_any_call_is_taken(rest: Rest) -> None:
    body = manifest("Agent", "x", {})
    position = rest.get("agents").json["metadata"]["resourceVersion"]
    for reply in (
        rest.post("agents", body, query=KUBERNETES),
        rest.get("agents/x", query={**KUBERNETES, "resourceVersion": "0"}),
        rest.get("agents", query=KUBERNETES),
        rest.get(
            "agents",
            query={**KUBERNETES, "watch": "1", "resourceVersion": position, "timeoutSeconds": "0"},
        ),
        rest.apply("agents/x", manifest("Agent", "x", {"system": "x"}), query=KUBERNETES),
        rest.patch("agents/x", {"spec": {"system": "y"}}, query=KUBERNETES),
        rest.call("PUT", "agents/x", body, query=KUBERNETES),
        rest.call("DELETE", "agents/x", query=KUBERNETES),
        rest.get(f"/apis/{API}", query=KUBERNETES),
    ):
        assert reply.code in (200, 201), reply.text
    for query in ({"timeouts": "30s"}, {"resourceVersions": "0"}, {"watch": "true"}):
        refused = rest.get("agents/x", query=query)
        assert (refused.code, refused.json["reason"]) == (400, "BadRequest")


@every_kind
@pytest.mark.parametrize("seen", [{"uid": "agent-1"}, {"resourceVersion": "1893456000000001"}])
def test_what_was_seen_before_is_not_made_again(rest: Rest, plural: str, seen: dict[str, str]) -> None:
    kind, spec = SPECS[plural]
    body = manifest(kind, "gone", spec)
    body["metadata"] |= seen
    commits, texts = rest.commits, len(rest.world.payloads.objects)
    for reply in (rest.apply(f"{plural}/gone", body), rest.post(plural, body)):
        assert (reply.code, reply.json["reason"]) == (409, "Conflict")
        assert "metadata.uid" in reply.json["message"]
    if plural == "agentruns":
        whole = {"apiVersion": API, "kind": "AgentRunList", "items": [manifest(kind, "a", spec), body]}
        refused = rest.post(plural, whole, headers={"idempotency-key": "k"})
        assert (refused.code, refused.json["reason"]) == (409, "Conflict")
        assert "items[1]" in refused.json["message"]
    assert rest.get(f"{plural}/gone").code == 404
    assert (rest.commits, len(rest.world.payloads.objects)) == (commits, texts)
