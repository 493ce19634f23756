"""Runs with the user's own key, at a provider of the user's, in the deployed cloud; and where the key is then."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from localstack.testing import TestCloud
from tests.contract.tls_providers import HOST, Provider, Request, Told, tls_provider
from tests.integration.runs.person import APPLY, Person, manifest
from tests.integration.runs.placed import placed

pytestmark = pytest.mark.timeout(240)

KEY = "sk-plum-9f31-KITE-77aa"
SECRET, FIELD = "anthropic-key", "ANTHROPIC_API_KEY"
ENVIRONMENT = {"type": "tool_use", "id": "toolu_1", "name": "run_command", "input": {"command": "env"}}


def tell(request: Request) -> Told | None:
    """Plays three prompts: one that looks at the environment, one that is refused, one whose answer is lost."""
    body = request.body.decode()
    echo = {"error": {"type": "authentication_error", "message": f"you sent {dict(request.headers)}"}}
    if "refuse me" in body:
        return Told(401, json.dumps(echo).encode(), {"X-Echo": request.headers["authorization"]})
    if "cut me off" in body:
        return None
    last = "tool_result" in body
    content = [{"type": "text", "text": f"I got {request.headers['authorization']}"} if last else ENVIRONMENT]
    reply = {"content": content, "stop_reason": "end_turn" if last else "tool_use"}
    return Told(body=json.dumps({**reply, "usage": {"input_tokens": 900, "output_tokens": 5}}).encode())


@pytest.fixture(scope="module")
def provider(local_cloud: TestCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """A provider that the operator has placed on this machine."""
    with (
        tls_provider(tmp_path_factory.mktemp("provider"), tell) as running,
        placed(local_cloud, HOST, running),
    ):
        yield running


@pytest.fixture
def owner(person: Person, provider: Provider) -> Person:
    """A person with a key in a Secret, and an agent that uses it."""
    body = manifest("Secret", SECRET, {"data": {FIELD: KEY, "OTHER": "x"}})
    answer = person.call("PATCH", f"secrets/{SECRET}", body, kind=APPLY)
    assert answer.status_code in (200, 201), answer.text
    own = {
        "access": "BYOK",
        "name": "claude-sonnet-5-5",
        "apiKeySecret": SECRET,
        "baseURL": provider.url.removesuffix("/v1"),
    }
    person.agent("own-key", model=own, perRunMaxCostUSD="0.000001")
    return person


@pytest.mark.req(
    *("NOD-109", "NOD-118", "NOD-119", "NOD-120", "NOD-121", "NOD-126", "NOD-086", "NOD-123"),
    *("FLD-13", "FLD-14", "NOD-465", "NEX-43"),
)
def test_runs_with_an_own_key_and_no_trace_of_it(owner: Person, provider: Provider) -> None:
    run = owner.start("own-key", "What is in your environment?")
    status = run.succeeded()
    assert (status["cost"]["totalUSD"], status["turns"][0]["chosenBy"]) == ("0", "configured")
    assert status["turns"][0]["usage"] == {"inputTokens": 1800, "outputTokens": 10}
    assert {step["guarantee"] for step in run.steps() if step["kind"] == "model"} == {"AtMostOnce"}
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in provider.requests)
    answer = owner.call("GET", f"{run.path}/answer").text
    assert answer == "I got Bearer (key)"

    refused = owner.start("own-key", "refuse me").ended()
    assert (refused["phase"], refused["reason"]) == ("Failed", "ModelRequestRefused")
    assert "you sent" in refused["message"]

    asked = len(provider.requests)
    cut = owner.start("own-key", "cut me off")
    cut.waits("NeedsResolution")
    assert len(provider.requests) == asked + 1
    assert cut.step("model.1")["state"] == "Uncertain"

    shown = [owner.call("GET", path).text for path in ("agents", "agentruns", "secrets", f"{run.path}/steps")]
    assert [place for place in traces(owner.cloud) if KEY in place[1]] == []
    assert KEY not in "".join(shown)
    value = owner.call("GET", f"secrets/{SECRET}").json()["metadata"]["uid"]
    assert value in kept(owner.cloud)
    gone = owner.call("DELETE", f"secrets/{SECRET}")
    assert gone.status_code == 200, gone.text
    assert value not in kept(owner.cloud)


def traces(cloud: TestCloud) -> Iterator[tuple[str, str]]:
    """Everything that is stored or logged, but for the values of Secrets: where it stands, and the text."""
    arguments = cloud.cloud.client_arguments()
    table = boto3.client("dynamodb", **arguments).get_paginator("scan")
    for page in table.paginate(TableName=cloud.cloud.output("TableName")):
        yield "journal", repr(page["Items"])
    store, bucket = boto3.client("s3", **arguments), cloud.cloud.output("PayloadBucket")
    for page in store.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            content: Any = store.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
            yield entry["Key"], content.decode(errors="replace")
    for folder in (cloud.state.logs, cloud.state.sandboxes):
        for path in filter(Path.is_file, folder.rglob("*")):
            yield str(path), path.read_bytes().decode(errors="replace")


def kept(cloud: TestCloud) -> list[str]:
    """Uids of the Secrets whose values are in the vault; other tests' Secrets may be among them."""
    client = boto3.client("secretsmanager", **cloud.cloud.client_arguments())
    pages = client.get_paginator("list_secrets").paginate()
    return [secret["Name"].rpartition("/")[2] for page in pages for secret in page["SecretList"]]
