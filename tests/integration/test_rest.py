"""REST as deployed: gateway, function, journal, payloads, rights. What the unit tier cannot show."""

import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx2
import pytest
import yaml
from botocore.credentials import Credentials

from localstack.tenant import admin
from localstack.testing import TestCloud
from tests.integration.waiting import until
from tests.unit.access.signing import signed

# A first call of a function starts its process: seconds on a busy machine.
pytestmark = pytest.mark.timeout(240)

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class Rest:
    """A client that adds nothing but the key."""

    def __init__(self, cloud: TestCloud) -> None:
        context = yaml.safe_load(cloud.configuration.read_text())["contexts"]["local"]
        self.cloud = cloud
        self.server = context["server"]
        self.token = context["token"]
        # Of its own, so that the suite can run again in a cloud that runs already.
        self.project = f"rest-{secrets.token_hex(4)}"
        admin(cloud.cloud, operation="CreateProject", organization="default", project=self.project)
        self.http = httpx2.Client(timeout=60, follow_redirects=False)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        token: str | None = None,
        project: str | None = None,
        **headers: str,
    ) -> httpx2.Response:
        url = f"{self.server}/apis/nodus.dev/v1/namespaces/{project or self.project}/{path}"
        sent = {"Authorization": f"Bearer {token or self.token}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = None
        if body is not None:
            content = body if isinstance(body, (str, bytes)) else json.dumps(body)
            sent["Content-Type"] = kind
        return self.http.request(method, url, headers=sent, content=content)

    def apply(self, kind: str, name: str, spec: dict[str, Any], **more: Any) -> httpx2.Response:
        plural = f"{kind.lower()}s"
        return self.call("PATCH", f"{plural}/{name}", manifest(kind, name, spec), kind=APPLY, **more)

    def run(self, name: str, **spec: Any) -> httpx2.Response:
        wanted = {"agent": "rest-agent", "input": "Say hello.", **spec}
        return self.call("POST", "agentruns", manifest("AgentRun", name, wanted))

    def status(self, name: str) -> dict[str, Any]:
        return self.call("GET", f"agentruns/{name}").json()["status"]

    def ended(self, name: str) -> dict[str, Any]:
        """The run's status once it has a phase that never changes again."""
        final = ("Succeeded", "Failed", "Cancelled")
        return until(lambda: self.status(name), lambda status: status["phase"] in final)

    def key(self, **fields: Any) -> str:
        wanted = {
            "organization": "default",
            "projects": ["*"],
            "permissions": ["*"],
            "name": f"test-{secrets.token_hex(4)}",
            **fields,
        }
        return admin(self.cloud.cloud, operation="CreateKey", **wanted)["token"]


def manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "nodus.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def rest(local_cloud: TestCloud) -> Iterator[Rest]:
    made = Rest(local_cloud)
    with made.http:
        assert made.apply("Agent", "rest-agent", {"system": "Be brief."}).status_code == 201
        yield made


def test_health_needs_no_key(rest: Rest) -> None:
    answer = httpx2.get(f"{rest.server}/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.req("NODQ-01")
@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", "/nothing/here", 404, "NotFound"),
        ("GET", "/link/v1/pull", 404, "NotFound"),
        ("POST", "/healthz", 405, "MethodNotAllowed"),
        ("PUT", "/mcp", 405, "MethodNotAllowed"),
        ("GET", "/mcp", 405, "MethodNotAllowed"),
    ],
)
def test_what_no_route_takes_is_a_status_without_a_key(
    rest: Rest, method: str, path: str, code: int, reason: str
) -> None:
    answer = httpx2.request(method, f"{rest.server}{path}", timeout=60)
    assert (answer.status_code, answer.json()["kind"], answer.json()["reason"]) == (code, "Status", reason)


@pytest.mark.req("NOD-009", "NOD-002", "NOD-471", "FLD-17")
def test_an_agent_from_yaml_to_its_end(rest: Rest) -> None:
    text = "apiVersion: nodus.dev/v1\nkind: Agent\nmetadata:\n  name: a1\nspec:\n  system: 1.10\n"
    created = rest.call("PATCH", "agents/a1", text, kind=APPLY)
    assert (created.status_code, created.json()["spec"]) == (201, {"system": "1.10"})
    assert rest.call("GET", "agents/a1").json() == created.json()
    again = rest.apply("Agent", "a1", {"system": "1.10"})
    assert (again.status_code, again.json()) == (200, created.json())
    patched = rest.call("PATCH", "agents/a1", {"spec": {"maxParallelAgents": 0}}, kind=MERGE).json()
    assert patched["spec"] == {"system": "1.10", "maxParallelAgents": 0}
    assert (patched["metadata"]["generation"], created.json()["metadata"]["generation"]) == (2, 1)
    assert rest.call("POST", "agents", manifest("Agent", "a1", {})).json()["reason"] == "AlreadyExists"
    gone = rest.call("DELETE", "agents/a1")
    assert (gone.status_code, gone.json()["status"]) == (200, "Success")
    assert rest.call("GET", "agents/a1").json()["reason"] == "NotFound"


@pytest.mark.req("NOD-467", "NOD-479", "NODQ-97", "NOD-004")
def test_keys_open_only_what_they_are_for(rest: Rest) -> None:
    assert rest.call("GET", "agents", token="nodus_wrong").status_code == 401
    assert rest.http.get(f"{rest.server}/apis/nodus.dev/v1/namespaces/default/agents").status_code == 401
    assert rest.call("GET", "agents", Nodus_Org="default").status_code == 200
    foreign = rest.call("GET", "agents", Nodus_Org="acme")
    assert (foreign.status_code, foreign.json()["reason"]) == (403, "Forbidden")
    assert rest.call("GET", "agents", project="nowhere").status_code == 404
    reader = rest.key(permissions=["agents:read"])
    assert rest.call("GET", "agents/rest-agent", token=reader).status_code == 200
    assert rest.apply("Agent", "rest-agent", {}, token=reader).status_code == 403
    assert rest.call("GET", "agentruns", token=reader).status_code == 403
    assert rest.call("GET", "agents/claude-assistant", project="nodus", token=reader).status_code == 200
    assert rest.call("DELETE", "agents/claude-assistant", project="nodus").status_code == 403


JSON = "application/json"
REFUSED: list[tuple[tuple[str, str, Any, str], int, str]] = [
    (("POST", "agents", "{", JSON), 400, "BadRequest"),
    (("POST", "agents", b"\xff\xfe", JSON), 400, "BadRequest"),
    (("POST", "agents", "{}", "text/plain"), 415, "UnsupportedMediaType"),
    (("PATCH", "agents/x", "{}", JSON), 415, "UnsupportedMediaType"),
    (("POST", "agents", manifest("Agent", "x", {"sytem": ""}), JSON), 422, "Invalid"),
    (("POST", "agentruns", manifest("AgentRun", "x", {"agent": "x", "input": "y"}), JSON), 404, "NotFound"),
    (("GET", "agents?limit=501", None, ""), 400, "BadRequest"),
    (("GET", "agents/no%2Fsuch", None, ""), 404, "NotFound"),
    (("GET", "widgets", None, ""), 404, "NotFound"),
    (("PUT", "agents/rest-agent", "{}", JSON), 422, "Invalid"),
    (("PUT", "agents", "{}", JSON), 405, "MethodNotAllowed"),
]


@pytest.mark.req("NOD-478", "NODQ-01", "NODQ-61")
@pytest.mark.parametrize(("sent", "code", "reason"), REFUSED)
def test_refusals_are_statuses(rest: Rest, sent: tuple[str, str, Any, str], code: int, reason: str) -> None:
    method, path, body, kind = sent
    refused = rest.call(method, path, body, kind=kind)
    assert (refused.status_code, refused.json()["kind"], refused.json()["reason"]) == (code, "Status", reason)
    assert refused.json()["code"] == code


@pytest.mark.req("NOD-031", "NOD-032", "NOD-030", "NOD-071", "NOD-067", "NOD-042", "NOD-043")
def test_a_run_of_the_template_from_create_to_answer(rest: Rest) -> None:
    created = rest.run("r1", agent="claude-assistant", input="Use the shell to print the Python version.")
    assert (created.status_code, created.json()["status"]["phase"]) == (201, "Queued")
    done = rest.ended("r1")
    assert done["phase"] == "Succeeded", done
    (turn,) = done["turns"]
    assert turn["model"].startswith("scripted/")
    answer = rest.call("GET", "agentruns/r1/answer")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith(done["answer"]["preview"])
    steps = rest.call("GET", "agentruns/r1/steps").json()["items"]
    assert [step["name"] for step in steps][:3] == ["sandbox", "turn-1.route", "turn-1.model.1"]
    assert {step["state"] for step in steps} == {"Completed"}
    pages = [rest.call("GET", "agentruns/r1/steps?limit=2").json()]
    while "continue" in pages[-1]["metadata"]:
        more = pages[-1]["metadata"]["continue"]
        pages.append(rest.call("GET", f"agentruns/r1/steps?limit=2&continue={more}").json())
    assert [step for page in pages for step in page["items"]] == steps
    assert rest.call("PATCH", "agentruns/r1", {"spec": {"input": "x"}}, kind=MERGE).status_code == 422


@pytest.mark.req("NODQ-57", "NODQ-94", "NOD-044")
def test_a_deleted_run_leaves_nothing(rest: Rest) -> None:
    uid = rest.run("r2", input="Say hello. " + "x" * 10_000).json()["metadata"]["uid"]
    rest.ended("r2")
    until(lambda: rest.status("r2"), lambda status: status.get("sandbox", {}).get("phase") == "Deleted")
    assert objects_of(rest, uid)
    assert rest.call("DELETE", "agentruns/r2").status_code == 202
    until(lambda: rest.call("GET", "agentruns/r2").status_code, lambda code: code == 404)
    assert objects_of(rest, uid) == []
    assert rest.run("r2").status_code == 201
    early = rest.call("DELETE", "agentruns/r2")
    assert early.json()["metadata"]["deletionTimestamp"]
    until(lambda: rest.call("GET", "agentruns/r2").status_code, lambda code: code == 404)


def objects_of(rest: Rest, uid: str) -> list[str]:
    cloud = rest.cloud.cloud
    client = boto3.client("s3", **cloud.client_arguments())
    found = client.list_objects_v2(Bucket=cloud.output("PayloadBucket"), Prefix=f"default/{uid}/")
    return [entry["Key"] for entry in found.get("Contents", [])]


@pytest.mark.req("NOD-045", "NODQ-23")
def test_a_cancelled_run_ends_as_cancelled(rest: Rest) -> None:
    rest.run("r3")
    asked = rest.call("POST", "agentruns/r3/cancel")
    assert asked.status_code in (200, 202)
    assert rest.ended("r3")["phase"] == ("Cancelled" if asked.status_code == 202 else "Succeeded")
    assert rest.call("POST", "agentruns/r3/cancel").status_code == 200


@pytest.mark.req("NOD-039", "FLD-06")
def test_an_input_of_the_largest_size_is_stored_and_read_whole(rest: Rest) -> None:
    letters = "é" * 131_072
    assert rest.run("large", input=letters).status_code == 201
    read = rest.call("GET", "agentruns/large").json()
    assert read["spec"]["input"] == letters
    refused = rest.run("larger", input=letters + "x")
    assert (refused.status_code, refused.json()["reason"]) == (413, "PayloadTooLarge")
    assert rest.call("GET", "agentruns/larger").status_code == 404
    rest.call("DELETE", "agentruns/large")
    until(lambda: rest.call("GET", "agentruns/large").status_code, lambda code: code == 404)


@pytest.mark.req("FLD-16")
def test_equal_creates_at_once_make_one_run(rest: Rest) -> None:
    body = manifest("AgentRun", "once", {"agent": "rest-agent", "input": "Say hello."})
    with ThreadPoolExecutor(5) as callers:
        answers = list(
            callers.map(lambda _: rest.call("POST", "agentruns", body, Idempotency_Key="k-77"), range(10))
        )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["metadata"]["uid"] for answer in answers}) == 1
    replayed = [answer for answer in answers if answer.headers.get("idempotent-replayed") == "true"]
    assert len(replayed) == len(answers) - 1
    other = rest.call("POST", "agentruns", manifest("AgentRun", "twice", {}), Idempotency_Key="k-77")
    assert other.status_code in (409, 422)


def test_applies_at_once_lose_no_change(rest: Rest) -> None:
    rest.apply("Agent", "shared", {})
    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(lambda n: rest.apply("Agent", "shared", {"system": f"{n}"}), range(8)))
    done = [answer for answer in answers if answer.status_code == 200]
    assert {answer.json().get("reason") for answer in answers if answer not in done} <= {"Conflict"}
    generations = sorted(answer.json()["metadata"]["generation"] for answer in done)
    assert generations == list(range(2, 2 + len(done)))


@pytest.mark.req("NODQ-71")
def test_lists_are_paged(rest: Rest) -> None:
    for number in range(5):
        rest.apply("Agent", f"page-{number}", {"system": "x" * 5000})
    names: list[str] = []
    address = "agents?limit=2"
    while address:
        page = rest.call("GET", address).json()
        names += [item["metadata"]["name"] for item in page["items"]]
        more = page["metadata"].get("continue")
        address = f"agents?limit=2&continue={more}" if more else ""
    assert names == sorted(names)
    assert {f"page-{number}" for number in range(5)} <= set(names)


@pytest.mark.req("NODQ-98")
def test_an_aws_identity_logs_in_by_a_signed_request(rest: Rest) -> None:
    cloud = rest.cloud.cloud
    clients = cloud.client_arguments()
    role = f"dev-{secrets.token_hex(4)}"
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    arn = boto3.client("iam", **clients).create_role(RoleName=role, AssumeRolePolicyDocument=policy)["Role"][
        "Arn"
    ]
    session = boto3.client("sts", **clients).assume_role(RoleArn=arn, RoleSessionName="alice")["Credentials"]
    credentials = Credentials(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])

    def log_in(server: str) -> httpx2.Response:
        aws = signed(
            datetime.now(UTC),
            server,
            url=f"{cloud.endpoint}/",
            credentials=credentials,
            region=cloud.region,
        )
        body = {"apiVersion": "nodus.dev/v1", "kind": "Login", "spec": {"aws": aws, "ttl": "15m"}}
        return httpx2.post(f"{rest.server}/apis/nodus.dev/v1/logins", json=body, timeout=60)

    here = urlsplit(rest.server).netloc
    assert log_in(here).json()["reason"] == "Forbidden"
    wanted = {
        "organization": "default",
        "arn": arn,
        "projects": [rest.project],
        "permissions": ["agents:read"],
    }
    admin(cloud, operation="MapIdentity", **wanted)
    assert log_in("elsewhere.example").json()["reason"] == "Unauthorized"
    granted = log_in(here)
    assert granted.status_code == 201, granted.text
    token = granted.json()["status"]["token"]
    assert rest.call("GET", "agents", token=token).status_code == 200
    assert rest.call("GET", "agentruns", token=token).status_code == 403


@pytest.mark.req("NOD-467")
def test_a_key_is_limited_across_the_functions_processes(rest: Rest) -> None:
    name = f"slow-{secrets.token_hex(4)}"
    spec = {"role": "viewer", "projects": [rest.project], "rateLimit": {"requestsPerSecond": 1, "burst": 4}}
    made = httpx2.post(
        f"{rest.server}/apis/nodus.dev/v1/apikeys",
        json=manifest("ApiKey", name, spec),
        headers={"Authorization": f"Bearer {rest.token}"},
        timeout=60,
    )
    token = made.json()["status"]["token"]
    began = time.monotonic()
    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(lambda _: rest.call("GET", "agents", token=token), range(24)))
    passed = sum(answer.status_code == 200 for answer in answers)
    assert 4 <= passed <= 4 + (time.monotonic() - began) + 1
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert (refused.json()["reason"], refused.headers["retry-after"]) == ("TooManyRequests", "1")
