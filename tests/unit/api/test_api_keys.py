"""ApiKeys as resources, from the wire: what they show, what they may give, how they end."""

import json
from typing import Any

import pytest
from nodus_core.access.grant import Rate
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.sweeper import Sweeper
from nodus_core.kernel.ids import digest

from tests.unit.api.rest import Reply, Rest, manifest

KEYS = "/apis/nodus.dev/v1/apikeys"


@pytest.fixture
def rest() -> Rest:
    return Rest()


def new(rest: Rest, name: str = "ci", /, *, key: str | None = None, **spec: Any) -> Reply:
    wanted = {"role": "viewer", "projects": ["web"], **spec}
    wanted = {field: value for field, value in wanted.items() if value is not None}
    return rest.post(KEYS, manifest("ApiKey", name, wanted), key=key)


def holder(rest: Rest, **spec: Any) -> str:
    """The token of a key of all projects with these permissions."""
    made = new(rest, f"holder-{rest.commits}", **{"role": None, "projects": ["*"], **spec})
    assert made.code == 201, made.text
    return str(made.json["status"]["token"])


@pytest.mark.req("NOD-467", "NODQ-96")
def test_the_token_is_shown_once_and_works(rest: Rest) -> None:
    made = new(rest, "ci", permissions=["agents:read"], role=None, ttl="12h")
    assert made.code == 201
    token = made.json["status"]["token"]
    assert rest.get("agents", key=token).code == 200
    assert rest.get("agentruns", key=token).code == 403
    assert rest.get("agents", key=token, project="lab").code == 403

    read = rest.get(f"{KEYS}/ci").json
    (listed,) = [key for key in rest.get(KEYS).json["items"] if key["metadata"]["name"] == "ci"]
    assert read == listed
    assert read["spec"] == {
        "permissions": ["agents:read"],
        "projects": ["web"],
        "expiresAt": "2030-01-01T12:00:00Z",
    }
    assert read["status"].pop("conditions")[0]["type"] == "Ready"
    assert read["status"] == {
        "prefix": token[:12],
        "createdBy": "test",
        "lastUsedAt": "2030-01-01T00:00:00.000Z",
    }
    everything = repr(rest.store.rows())
    assert token not in everything + rest.get(KEYS).text
    assert digest(token) not in rest.get(KEYS).text


@pytest.mark.req("FLD-16")
def test_a_create_that_is_answered_again_shows_no_token(rest: Rest) -> None:
    body = manifest("ApiKey", "ci", {"role": "viewer", "projects": ["*"], "ttl": "1h"})
    first = rest.post(KEYS, body, headers={"idempotency-key": "k"})
    rest.world.clock.advance(60)
    again = rest.post(KEYS, body, headers={"idempotency-key": "k"})
    assert (again.code, again.headers["idempotent-replayed"]) == (201, "true")
    shown = first.json
    token = shown["status"].pop("token")
    assert again.json == shown
    assert token not in repr(rest.store.rows())


@pytest.mark.req("NOD-004")
def test_a_deleted_key_works_no_longer_than_30_seconds(rest: Rest) -> None:
    token = new(rest).json["status"]["token"]
    assert rest.get("agents", key=token).code == 200
    assert rest.call("DELETE", f"{KEYS}/ci").code == 200
    rest.world.clock.advance(30)
    refused = rest.get("agents", key=token)
    assert (refused.code, refused.json["reason"]) == (401, "Unauthorized")
    assert rest.get(f"{KEYS}/ci").code == 404
    left = [key for key in rest.store.rows() if digest(token) in key.pk]
    assert left == []


def test_an_expired_key_ends_on_the_second_although_it_is_known(rest: Rest) -> None:
    token = new(rest, ttl="10s").json["status"]["token"]
    assert rest.get("agents", key=token).code == 200
    rest.world.clock.advance(9)
    assert rest.get("agents", key=token).code == 200
    rest.world.clock.advance(1)
    refused = rest.get("agents", key=token)
    assert refused.code == 401
    assert "expired at 2030-01-01T00:00:10" in refused.json["message"]


def state(shown: dict[str, Any]) -> tuple[str, str, str]:
    (ready,) = shown["status"]["conditions"]
    assert ready["type"] == "Ready"
    return ready["status"], ready["reason"], ready["lastTransitionTime"]


def test_an_expired_key_says_so_from_the_second_on_at_which_it_ends(rest: Rest) -> None:
    made = "2030-01-01T00:00:00.000Z"
    new(rest, "short", ttl="10s")
    new(rest, "endless")
    assert state(rest.get(f"{KEYS}/short").json) == ("True", "Accepted", made)
    begun = rest.get(KEYS).json["metadata"]["resourceVersion"]
    rest.world.clock.advance(9.999)
    assert state(rest.get(f"{KEYS}/short").json)[0] == "True"
    rest.world.clock.advance(0.001)
    assert state(rest.get(f"{KEYS}/short").json) == ("False", "Expired", "2030-01-01T00:00:10.000Z")
    assert state(rest.get(f"{KEYS}/endless").json) == ("True", "Accepted", made)
    listed = {key["metadata"]["name"]: state(key)[0] for key in rest.get(KEYS).json["items"]}
    assert (listed["short"], listed["endless"]) == ("False", "True")
    labelled = rest.patch(f"{KEYS}/short", {"metadata": {"labels": {"a": "b"}}})
    assert state(labelled.json)[:2] == ("False", "Expired")
    query = {"watch": "true", "resourceVersion": begun, "timeoutSeconds": "0"}
    told = [json.loads(line)["object"] for line in rest.get(KEYS, query=query).text.splitlines()]
    assert [state(key)[1] for key in told if key["metadata"]["name"] == "short"] == ["Expired"]


def test_the_table_of_keys_says_which_have_expired(rest: Rest) -> None:
    new(rest, "short", ttl="10s")
    rest.world.clock.advance(10)
    table = rest.get(KEYS, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json
    names = [column["name"] for column in table["columnDefinitions"]]
    rows = [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]
    assert {row["Name"]: row["State"] for row in rows} == {"short": "Expired", "test": "Ready"}
    assert {row["Name"]: row["Expires"] for row in rows}["short"] == "2030-01-01T00:00:10Z"


def test_a_create_that_is_answered_again_shows_the_key_as_it_was_made(rest: Rest) -> None:
    body = manifest("ApiKey", "ci", {"role": "viewer", "projects": ["*"], "ttl": "10s"})
    first = rest.post(KEYS, body, headers={"idempotency-key": "k"})
    rest.world.clock.advance(60)
    again = rest.post(KEYS, body, headers={"idempotency-key": "k"})
    assert (again.code, state(again.json)) == (201, state(first.json))
    assert state(again.json)[0] == "True"


@pytest.mark.parametrize(
    ("held", "asked", "field"),
    [
        (
            {"permissions": ["apikeys:write", "agents:read"]},
            {"permissions": ["agents:write"]},
            "spec.permissions",
        ),
        ({"permissions": ["apikeys:write", "agents:read"]}, {"permissions": ["*"]}, "spec.permissions"),
        (
            {"permissions": ["apikeys:write", "agents:read"]},
            {"permissions": None, "role": "viewer"},
            "spec.permissions",
        ),
        ({"permissions": None, "role": "admin"}, {"permissions": ["*"]}, "spec.permissions"),
        ({"ttl": "1h"}, {}, "spec.expiresAt"),
        ({"ttl": "1h"}, {"ttl": "61m"}, "spec.expiresAt"),
        ({"rateLimit": {"requestsPerSecond": 5}}, {}, "spec.rateLimit.requestsPerSecond"),
        ({"rateLimit": {"burst": 5}}, {"rateLimit": {"burst": 6}}, "spec.rateLimit.burst"),
    ],
)
def test_a_key_gives_no_more_than_it_holds(
    rest: Rest, held: dict[str, Any], asked: dict[str, Any], field: str
) -> None:
    key = holder(rest, **{"permissions": ["apikeys:write"], **held})
    stored = rest.commits
    refused = new(rest, "more", key=key, **{"permissions": ["apikeys:write"], "role": None, **asked})
    assert (refused.code, refused.json["reason"], refused.fields) == (403, "Forbidden", [field])
    assert rest.commits == stored


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ({"permissions": ["*"]}, {"permissions": ["*"], "projects": ["*"]}),
        ({"permissions": None, "role": "admin"}, {"permissions": None, "role": "editor"}),
        (
            {"permissions": ["apikeys:write", "agents:read"]},
            {"permissions": ["agents:read"], "projects": ["*"]},
        ),
        ({"ttl": "1h"}, {"ttl": "1h"}),
        (
            {"rateLimit": {"requestsPerSecond": 5, "burst": 5}},
            {"rateLimit": {"requestsPerSecond": 5, "burst": 4}},
        ),
    ],
)
def test_a_key_gives_what_it_holds(rest: Rest, held: dict[str, Any], asked: dict[str, Any]) -> None:
    key = holder(rest, **{"permissions": ["apikeys:write"], **held})
    made = new(rest, "same", key=key, **{"permissions": ["apikeys:write"], "role": None, **asked})
    assert made.code == 201, made.text
    assert made.json["status"]["createdBy"].startswith("holder-")


def test_a_key_of_single_projects_makes_no_keys(rest: Rest) -> None:
    key = new(rest, "lab", role="admin", projects=["lab"]).json["status"]["token"]
    assert new(rest, "other", key=key, projects=["lab"]).code == 403
    assert rest.call("DELETE", f"{KEYS}/test", key=key).code == 403


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"role": None}, ["spec.permissions"]),
        ({"permissions": ["agents:read"]}, ["spec.permissions"]),
        ({"role": None, "permissions": []}, ["spec.permissions"]),
        ({"role": None, "permissions": ["agents:read", "agents:delete"]}, ["spec.permissions[1]"]),
        ({"role": "owner"}, ["spec.role"]),
        ({"projects": None}, ["spec.projects"]),
        ({"projects": []}, ["spec.projects"]),
        ({"projects": ["a b"]}, ["spec.projects[0]"]),
        ({"ttl": "0s"}, ["spec.expiresAt"]),
        ({"ttl": "99999d"}, ["spec.expiresAt"]),
        ({"ttl": "2031-01-01T00:00:00Z"}, ["spec.ttl"]),
        ({"expiresAt": "12h"}, ["spec.expiresAt"]),
        ({"expiresAt": "2029-12-31T23:59:59Z"}, ["spec.expiresAt"]),
        ({"expiresAt": "2031-02-30T00:00:00Z"}, ["spec.expiresAt"]),
        ({"expiresAt": "2031-01-01T00:00:00Z", "ttl": "1h"}, ["spec.ttl"]),
        ({"rateLimit": {"requestsPerSecond": 0}}, ["spec.rateLimit.requestsPerSecond"]),
        ({"rateLimit": {"burst": 10_001}}, ["spec.rateLimit.burst"]),
        ({"token": "nodus_mine"}, ["spec.token"]),
    ],
)
def test_what_is_no_key_is_refused(rest: Rest, spec: dict[str, Any], fields: list[str]) -> None:
    stored = rest.commits
    refused = new(rest, **spec)
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", fields)
    assert rest.commits == stored


def test_a_key_never_changes_but_for_its_labels(rest: Rest) -> None:
    made = new(rest, ttl="1h")
    labelled = rest.patch(f"{KEYS}/ci", {"metadata": {"labels": {"for": "ci"}}})
    assert (labelled.code, labelled.json["metadata"]["labels"]) == (200, {"for": "ci"})
    assert "token" not in labelled.json["status"]
    written = {"role": "viewer", "projects": ["web"], "ttl": "1h"}
    same = rest.apply(f"{KEYS}/ci", manifest("ApiKey", "ci", written))
    assert (same.code, same.json["spec"]) == (200, made.json["spec"])
    for change in ({"role": "admin"}, {"projects": ["*"]}, {"expiresAt": None}, {"rateLimit": {"burst": 1}}):
        refused = rest.patch(f"{KEYS}/ci", {"spec": change})
        assert (refused.code, refused.json["reason"]) == (422, "Invalid")


def test_a_key_is_limited_and_says_when_to_come_back() -> None:
    rest = Rest(rate=Rate(per_second=2, burst=3))
    assert [rest.get("agents").code for _ in range(4)] == [200, 200, 200, 429]
    refused = rest.get("agents")
    assert (refused.code, refused.json["reason"], refused.headers["retry-after"]) == (
        429,
        "TooManyRequests",
        "1",
    )
    assert refused.json["details"] == {"retryAfterSeconds": 1}
    assert rest.get("agents", key=rest.new_key()).code == 200  # each key has a rate of its own
    rest.world.clock.advance(0.5)
    assert [rest.get("agents").code for _ in range(2)] == [200, 429]


def test_a_keys_own_rate_counts(rest: Rest) -> None:
    token = new(rest, rateLimit={"requestsPerSecond": 1, "burst": 1}).json["status"]["token"]
    assert [rest.get("agents", key=token).code for _ in range(2)] == [200, 429]


def test_a_key_that_expired_a_week_ago_is_listed_no_more(rest: Rest) -> None:
    token = new(rest, "short", ttl="1h").json["status"]["token"]
    new(rest, "long", ttl="30d")
    new(rest, "endless")
    assert rest.get("agents", key=token).code == 200
    world = rest.world
    sweeper = Sweeper(
        world.kicks,
        world.task_sweep,
        world.pool,
        Reclaim(world.outside, world.vault, world.clock),
        Expiry(world.outside, world.payloads, world.clock),
        BatchKeeping(Shelf(world.outside, world.payloads, world.clock)),
        world.builds,
    )

    def listed() -> set[str]:
        sweeper.sweep(lambda: 20)
        return {key["metadata"]["name"] for key in rest.get(KEYS).json["items"]}

    world.clock.advance(3600 + 7 * 86_400 - 1)
    assert listed() == {"test", "short", "long", "endless"}
    world.clock.advance(1)
    assert listed() == {"test", "long", "endless"}
    assert [key for key in rest.store.rows() if digest(token) in key.pk] == []


def test_a_rehearsed_key_shows_no_token(rest: Rest) -> None:
    stored = rest.commits
    body = manifest("ApiKey", "ci", {"role": "viewer", "projects": ["*"]})
    tried = rest.post(KEYS, body, query={"dryRun": "All"})
    assert (tried.code, rest.commits) == (201, stored)
    assert "token" not in tried.json["status"]
