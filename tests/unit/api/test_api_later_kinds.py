"""Fields, ranges and fixed words of the kinds that are kept and checked, and that nothing acts on yet."""

from typing import Any

import pytest

from tests.unit.api.rest import Reply, Rest, manifest
from tests.unit.api.test_api_objects import ENVIRONMENT, TASKS


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    made.post("environments", manifest("Environment", "sums", ENVIRONMENT))
    return made


def group(rest: Rest, name: str = "g", /, **spec: Any) -> Reply:
    return rest.post("agentgroups", manifest("AgentGroup", name, {"agent": "hello-agent", **spec}))


def evaluation(**more: Any) -> dict[str, Any]:
    return {"environment": {"name": "sums", "version": "v1"}, "tasks": 2, **more}


def sandbox(rest: Rest, name: str = "s", /, **spec: Any) -> Reply:
    return rest.post("sandboxes", manifest("Sandbox", name, spec))


@pytest.mark.req("NOD-303", "NOD-310", "NOD-313", "NODQ-06", "NODQ-07", "NODQ-09", "NOD-372", "NOD-377")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"agent": None}, "spec.agent"),
        ({"limits": {"maxActive": 0}}, "spec.limits.maxActive"),
        ({"limits": {"maxActive": 1001}}, "spec.limits.maxActive"),
        ({"limits": {"maxPending": 0}}, "spec.limits.maxPending"),
        ({"limits": {"maxPending": 10_001}}, "spec.limits.maxPending"),
        ({"maxCostUSD": "0"}, "spec.maxCostUSD"),
        ({"maxCostUSD": "0.6", "limits": {"maxCostUSD": "0.7"}}, "spec.maxCostUSD"),
        ({"sealed": "yes"}, "spec.sealed"),
        ({"evaluation": {"tasks": 2}}, "spec.evaluation.environment"),
        ({"evaluation": {"environment": {"name": "sums"}}}, "spec.evaluation.environment.version"),
        ({"evaluation": evaluation(tasks=101)}, "spec.evaluation.tasks"),
        ({"evaluation": evaluation(tasks=51, repetitions=2)}, "spec.evaluation"),
        ({"evaluation": evaluation(timeout="59s")}, "spec.evaluation.timeout"),
        ({"evaluation": evaluation(timeout="25h")}, "spec.evaluation.timeout"),
        ({"evaluation": evaluation(tasks=4)}, "spec.evaluation.tasks"),
        ({"evaluation": evaluation(split="train", tasks=1)}, "spec.evaluation.tasks"),
        (
            {"evaluation": {**evaluation(), "environment": {"name": "sums", "version": 1}}},
            "spec.evaluation.environment.version",
        ),
    ],
)
def test_groups_that_are_refused(rest: Rest, spec: dict[str, Any], field: str) -> None:
    stored = rest.commits
    refused = group(rest, **spec)
    assert (refused.code, refused.fields) == (422, [field])
    assert rest.commits == stored


@pytest.mark.req("NOD-302", "NOD-310", "NOD-367", "NOD-372", "NOD-377")
def test_groups_at_their_bounds(rest: Rest) -> None:
    for number, spec in enumerate(
        [
            {},
            {"limits": {"maxActive": 1, "maxPending": 1}},
            {"limits": {"maxActive": 1000, "maxPending": 10_000}, "sealed": True},
            {"evaluation": evaluation(repetitions=50, seed=42, split="test", timeout="1m")},
            {"evaluation": evaluation(timeout="24h")},
        ]
    ):
        made = group(rest, f"g{number}", **spec)
        assert (made.code, made.json["spec"]) == (201, {"agent": "hello-agent", **spec})


@pytest.mark.req("NOD-303", "NOD-366")
def test_a_group_names_what_is_there(rest: Rest) -> None:
    unknown = group(rest, agent="nobody")
    assert (unknown.code, unknown.json["reason"], unknown.fields) == (404, "NotFound", ["spec.agent"])
    other = {"name": "sums", "version": "v2"}
    missing = group(rest, evaluation={"environment": other})
    assert (missing.code, missing.fields) == (404, ["spec.evaluation.environment"])


@pytest.mark.req("NODQ-05", "NOD-340", "NODQ-92")
def test_the_groups_cap_stands_in_one_place(rest: Rest) -> None:
    limits = {"maxActive": 2, "maxCostUSD": "0.60"}
    wanted = {"agent": "hello-agent", "limits": {"maxActive": 2}, "maxCostUSD": "0.60"}
    assert group(rest, "a", limits=limits).json["spec"] == wanted
    assert group(rest, "b", limits=limits, maxCostUSD="0.6").json["spec"] == {**wanted, "maxCostUSD": "0.6"}
    assert group(rest, "c", limits={"maxCostUSD": 1}).json["spec"] == {
        "agent": "hello-agent",
        "maxCostUSD": "1",
    }
    patched = rest.patch("agentgroups/a", {"spec": {"limits": {"maxCostUSD": "0.60"}}})
    assert patched.json["metadata"]["generation"] == 1


@pytest.mark.req("NOD-311", "NOD-345", "NOD-346", "NOD-351", "NOD-352", "NODQ-38", "NOD-471")
def test_what_of_a_group_may_change(rest: Rest) -> None:
    rest.agent("other")
    group(rest, limits={"maxActive": 2, "maxPending": 9}, maxCostUSD="0.60")

    def patch(**spec: Any) -> Reply:
        return rest.patch("agentgroups/g", {"spec": spec})

    assert patch(limits={"maxActive": 4}).json["spec"]["limits"] == {"maxActive": 4, "maxPending": 9}
    assert patch(maxCostUSD="1.00").json["spec"]["maxCostUSD"] == "1.00"
    assert patch(maxCostUSD="0.50").fields == ["spec.maxCostUSD"]
    assert patch(agent="other").fields == ["spec.agent"]
    assert patch(evaluation=evaluation()).fields == ["spec.evaluation"]
    assert patch(sealed=True).json["spec"]["sealed"] is True
    assert patch(sealed=False).fields == ["spec.sealed"]
    assert patch(sealed=None).fields == ["spec.sealed"]
    assert patch(maxCostUSD=None).code == 200
    assert patch(maxCostUSD="9").fields == ["spec.maxCostUSD"]


@pytest.mark.req("NODQ-40")
def test_a_groups_name_leaves_room_for_its_members(rest: Rest) -> None:
    assert group(rest, "g" * 189).code == 201
    assert group(rest, "g" * 190).fields == ["metadata.name"]


@pytest.mark.req("NODQ-08")
def test_what_is_published_under_a_version_never_changes(rest: Rest) -> None:
    other = {"splits": {"test": TASKS[:1]}}
    assert rest.patch("environments/sums", {"spec": other}).fields == ["spec.version"]
    assert rest.patch("environments/sums", {"spec": {**other, "version": "v2"}}).code == 200


@pytest.mark.req("NODQ-08")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"version": None}, "spec.version"),
        ({"version": "a b"}, "spec.version"),
        ({"grader": {"image": "x"}}, "spec.grader.command"),
        ({"splits": {}}, "spec.splits"),
        ({"splits": {"test": []}}, "spec.splits.test"),
        ({"splits": {"test": [TASKS[0], TASKS[0]]}}, "spec.splits.test"),
        ({"splits": {"test": [{"id": "a"}]}}, "spec.splits.test[0].prompt"),
        ({"splits": {"Test": TASKS}}, "spec.splits.Test"),
    ],
)
def test_environments_that_are_refused(rest: Rest, spec: dict[str, Any], field: str) -> None:
    refused = rest.post("environments", manifest("Environment", "e", {**ENVIRONMENT, **spec}))
    assert (refused.code, refused.fields) == (422, [field])


@pytest.mark.req("NODQ-62", "NOD-398")
@pytest.mark.parametrize(
    ("cpu", "memory"),
    [(1, 2), (2, 4), (4, 8), ("0.25", "0.5"), (0.25, 2), (0.5, 4), (1, 8), (4, 30), (8, 20), (16, 120)],
)
def test_pairs_of_processors_and_memory_that_there_are(rest: Rest, cpu: Any, memory: Any) -> None:
    made = sandbox(rest, resources={"cpu": cpu, "memory": memory})
    assert made.json["spec"]["resources"] == {"cpu": str(cpu), "memory": str(memory)}


@pytest.mark.req("NODQ-62", "NODQ-66")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resources": {"cpu": 3, "memory": 8}}, "spec.resources.cpu"),
        ({"resources": {"cpu": True, "memory": 8}}, "spec.resources.cpu"),
        ({"resources": {"cpu": "1e3", "memory": 8}}, "spec.resources.cpu"),
        ({"resources": {"cpu": 1, "memory": 1}}, "spec.resources.memory"),
        ({"resources": {"cpu": 1, "memory": 2.5}}, "spec.resources.memory"),
        ({"resources": {"cpu": 0.25, "memory": 1.5}}, "spec.resources.memory"),
        ({"resources": {"cpu": 8, "memory": 18}}, "spec.resources.memory"),
        ({"resources": {"cpu": 1}}, "spec.resources.memory"),
        ({"idleTimeout": "59s"}, "spec.idleTimeout"),
        ({"idleTimeout": 600}, "spec.idleTimeout"),
        ({"ttl": "366d"}, "spec.ttl"),
        ({"maxCostUSD": "-1"}, "spec.maxCostUSD"),
        ({"network": {"egress": {"policy": "AllowList"}}}, "spec.network.egress.allow"),
        ({"phase": "Running"}, "spec.phase"),
    ],
)
def test_sandboxes_that_are_refused(rest: Rest, spec: dict[str, Any], field: str) -> None:
    refused = sandbox(rest, **spec)
    assert (refused.code, refused.fields) == (422, [field])


@pytest.mark.req("NODQ-63")
def test_a_gpu_is_not_there(rest: Rest) -> None:
    refused = sandbox(rest, resources={"cpu": 4, "memory": 16, "gpu": 1})
    assert (refused.code, refused.json["reason"]) == (422, "GPUUnavailable")
    assert refused.fields == ["spec.resources.gpu"]
    assert sandbox(rest, resources={"cpu": 4, "memory": 16, "gpu": 0}).code == 201


@pytest.mark.req("NOD-023", "NODQ-70")
def test_agents_and_sandboxes_take_the_same_settings(rest: Rest) -> None:
    settings: dict[str, Any] = {
        "env": [{"name": "MODE", "value": "1"}],
        "secrets": [{"name": "deploy-key", "env": "KEY", "key": "id"}],
        "network": {"egress": {"policy": "AllowList", "allow": ["github.com"]}},
    }
    assert rest.agent("a", **settings).json["spec"] == settings
    rest.post("secrets", manifest("Secret", "deploy-key", {"data": {"id": "a secret value"}}))
    assert sandbox(rest, **settings).json["spec"] == settings


@pytest.mark.req("NODQ-04", "NOD-099", "NOD-101")
def test_endpoints(rest: Rest) -> None:
    def endpoint(**spec: Any) -> Reply:
        return rest.post("endpoints", manifest("Endpoint", "e", spec))

    model = {"access": "OnDemand", "name": "openai/gpt-oss-20b"}
    assert endpoint(model={**model, "name": "endpoint/other"}).fields == ["spec.model"]
    assert endpoint(model={"access": "Hosted"}).json["reason"] == "ComingSoon"
    assert endpoint(model=model, maxConcurrency=0).fields == ["spec.maxConcurrency"]
    assert endpoint(model=model, apiKeys=[]).fields == ["spec.apiKeys"]
    assert (
        endpoint(model=model, apiKeys=["ci"], maxConcurrency=1, maxCostUSD=5).json["spec"]["maxCostUSD"]
        == "5"
    )


@pytest.mark.req("NODQ-102")
def test_connections(rest: Rest) -> None:
    def connection(**spec: Any) -> Reply:
        return rest.post("connections", manifest("Connection", "c", spec))

    assert connection(type="GitLab", github={"installationId": 1}).fields == ["spec.type"]
    assert connection(type="GitHub").fields == ["spec.github"]
    assert connection(type="GitHub", github={"installationId": 0}).fields == ["spec.github.installationId"]
    github = {"installationId": 7, "repositories": ["your-org/your-repo"]}
    assert connection(type="GitHub", github=github).json["spec"]["github"] == github
