"""What the server takes, the schema that it publishes takes, too: a client that checks first loses nothing."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from nodus_core.documents import openapi3
from nodus_core.kernel.errors import Refusal
from nodus_core.resources.manifest import check_spec

from tests.unit.api import test_api_limits as limits

DOCUMENT = openapi3.document("test")


def published(kind: str) -> Draft202012Validator:
    """The published schema of a kind's objects."""
    return Draft202012Validator({"$ref": f"#/components/schemas/dev.nodus.v1.{kind}", **DOCUMENT})


def problems(kind: str, spec: dict[str, Any]) -> list[str]:
    body = {"apiVersion": "nodus.dev/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return [f"{error.json_path}: {error.message[:200]}" for error in published(kind).iter_errors(body)]


def own_key(**more: str) -> dict[str, Any]:
    return {"model": {"access": "BYOK", "name": "m", "apiKeySecret": "a.b-c", **more}}


def key(**more: Any) -> dict[str, Any]:
    return {"role": "viewer", "projects": ["*"], **more}


def run(**more: Any) -> dict[str, Any]:
    return {"agent": "a", "input": "\ufeff", **more}


TAKEN = [
    ("Agent", {}),
    ("Agent", {"system": "", "setup": "\n:\n", "workingDir": "//wörk space"}),
    ("Agent", {"perRunMaxCostUSD": "0.000001", "maxToolCalls": 0}),
    ("Agent", {"perRunMaxCostUSD": "0000000000100"}),
    ("Agent", {"model": {"access": "Nodus", "families": ["opus", "haiku"]}}),
    ("Agent", {"model": {"access": "OnDemand", "name": "openai/gpt oss\n20b"}}),
    ("Agent", own_key(baseURL="HTTPS://api.example.com:8443/é")),
    ("Agent", own_key(apiKeyField="_", protocol="OpenAI")),
    ("Agent", limits.allowing("API.Example.COM", "xn--bcher-kva.example", "1.a-b.io")),
    ("Agent", {"image": "registry.example.com:5000/a/b@sha256:00"}),
    ("Agent", limits.git(ref="a/b+c_")),
    ("Agent", limits.variable("_", "\x07")),
    ("AgentRun", run(deadline="0s")),
    ("AgentRun", run(deadline="00001d99999h0m9999999s")),
    ("AgentRun", run(deadline="2030-01-01t00:00:00.123456789z")),
    ("AgentRun", run(deadline="2030-01-01T00:00:00+05:45")),
    ("AgentRun", run(group="g", taskKey="0", dependsOn=["a-b"])),
    ("AgentGroup", {**limits.evaluated(timeout="60s", split="a-1"), "maxCostUSD": "1"}),
    ("ApiKey", key(projects=["*", "web"], expiresAt="2030-01-01t00:00:00.1-01:00")),
    ("ApiKey", key(ttl="1d12h")),
    ("Environment", limits.published({"a-b": limits.tasks(answer="")}, version="A_1.b", image="i")),
    ("Project", {"displayName": "Ünser Projekt"}),
    ("Sandbox", {"resources": {"cpu": "0.25", "memory": "0.50", "gpu": 0}, "idleTimeout": "60s"}),
    ("Sandbox", {"resources": {"cpu": "0001.0", "memory": "8"}, "ttl": "365d"}),
    ("Secret", {"data": {"-.x_9": " "}}),
]


@pytest.mark.parametrize(("kind", "spec"), TAKEN, ids=str)
def test_what_is_taken_fits_the_published_schema(kind: str, spec: dict[str, Any]) -> None:
    check_spec(kind, "x", spec)
    assert problems(kind, spec) == []


AT_LIMITS = [
    *(("Agent", limit) for limit in limits.OF_AGENTS),
    *(("Budget", limit) for limit in limits.OF_BUDGETS),
    *(("Secret", limit) for limit in limits.OF_SECRETS),
    *(("AgentGroup", limit) for limit in limits.OF_GROUPS),
    *(("Environment", limit) for limit in limits.OF_ENVIRONMENTS),
    *(("Connection", limit) for limit in limits.OF_CONNECTIONS),
]


@pytest.mark.parametrize(("kind", "limit"), AT_LIMITS, ids=str)
def test_what_is_at_its_limit_fits_the_published_schema(kind: str, limit: limits.Limit) -> None:
    assert problems(kind, dict(limit.fits)) == []


REFUSED = [
    ("Agent", {"perRunMaxCostUSD": "1,00"}),
    ("Agent", {"image": "-"}),
    ("Agent", {"workingDir": "tmp"}),
    ("Agent", {"model": {"access": "Hosted"}}),
    ("Agent", own_key(baseURL="http://api.example.com")),
    ("Agent", own_key(apiKeyField="a b")),
    ("Agent", limits.allowing("localhost")),
    ("Agent", limits.allowing("\u212aelvin.example")),
    ("Agent", limits.variable("1A")),
    ("AgentRun", run(deadline="tomorrow")),
    ("AgentRun", run(deadline="")),
    ("ApiKey", key(projects=["Web"])),
    ("ApiKey", key(expiresAt="1h")),
    ("ApiKey", key(ttl="2030-01-01T00:00:00Z")),
    ("Environment", limits.published({"test": []})),
    ("Sandbox", {"idleTimeout": "1 minute"}),
    ("Sandbox", {"resources": {"cpu": "one", "memory": "2"}}),
    ("Secret", {"data": {"F": ""}}),
]


@pytest.mark.parametrize(("kind", "spec"), REFUSED, ids=str)
def test_the_published_schema_says_what_form_a_text_must_have(kind: str, spec: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        check_spec(kind, "x", spec)
    assert problems(kind, spec) != []
