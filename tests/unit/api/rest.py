"""The REST face over a world in memory, driven with the events that API Gateway sends (payload format 2.0)."""

import base64
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from nodus_core.access.grant import Rate
from nodus_core.access.identities import Identities
from nodus_core.access.signed_calls import Judge, Judged
from nodus_core.conversations.directory import Directory
from nodus_core.conversations.images import ImageSources
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.sources import NOTHING_ALLOWED, Allowed
from nodus_core.journal.journal import Journal
from nodus_core.journal.store import Transaction
from nodus_core.kernel.errors import Refusal
from nodus_core.sandboxes.gpus import Gpus
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.memory_vault import MemoryVault
from nodus_core.testing.scripted_model import Script, plays, says
from nodus_core.testing.scripted_sandbox import Behaviour, exited
from nodus_core.testing.world import World

from functions.api.handler import build
from functions.api.service import Callers, Service

API = "nodus.dev/v1"
APPLY = "application/apply-patch+yaml"
LARGEST_RESPONSE = 6 * 1024 * 1024
UNHURRIED = Rate(1_000, 10_000)
"""The clock stands still in these tests: so many calls are let through in no time."""
MERGE = "application/merge-patch+json"
JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    code: int
    headers: Mapping[str, str]
    text: str
    raw: bytes = b""

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.text)

    @property
    def fields(self) -> list[str]:
        """The fields that a refusal names."""
        return [cause["field"] for cause in self.json.get("details", {}).get("causes", [])]


@dataclass(frozen=True)
class Context:
    """What Lambda says about an invocation."""

    aws_request_id: str = "11111111-2222-3333-4444-555555555555"


class Nobody:
    """AWS knows none of those who sign."""

    def whose(self, call: Judged) -> str:
        raise Refusal("Unauthorized", "AWS does not accept the signed request (InvalidClientTokenId)")


class Rest:
    """Organization `acme` with projects `web` and `lab`, its key, and a client's view of them."""

    def __init__(
        self,
        script: Script | None = None,
        behaviour: Behaviour = lambda kind, request: exited(),
        store: MemoryStore | None = None,
        vault: MemoryVault | None = None,
        *,
        rate: Rate = UNHURRIED,
        identities: Identities | None = None,
        images: ImageSources | None = None,
        gpus: Gpus | None = None,
        allowed: Allowed = NOTHING_ALLOWED,
    ) -> None:
        self.store = store or MemoryStore()
        self.world = World(script or plays([says("done")]), behaviour, store=self.store, vault=vault)
        world = self.world
        plain = Journal(self.store, world.ids)
        shelf = Shelf(plain, world.payloads, world.clock, allowed)
        callers = Callers(identities or Nobody(), Judge(frozenset({"api.test"})), rate)
        self.gate = build(
            Service.over(
                shelf,
                world.vault,
                world.kicks,
                world.schedules,
                world.ids,
                bell=world.sandboxes,
                transfers=world.transfers,
                callers=callers,
                images=images,
                gpus=gpus,
                wires="wss://link.test/v1",
                address="https://api.test/base",
            )
        )
        self.directory = Directory.over(shelf, world.ids)
        self.directory.create_organization("acme")
        for project in ("web", "lab"):
            self.directory.create_project("acme", project)
        self._keys = itertools.count(1)
        self.key = self.new_key()

    def new_key(
        self, org: str = "acme", projects: tuple[str, ...] = ("*",), permissions: tuple[str, ...] = ("*",)
    ) -> str:
        number = next(self._keys)
        name = "test" if number == 1 else f"test-{number}"
        return self.directory.create_key(org, name, projects, permissions)

    @property
    def commits(self) -> int:
        """How many transactions were applied so far, without those that count the calls themselves."""
        return len(self.changes)

    @property
    def changes(self) -> list[Transaction]:
        """They themselves."""
        return [commit for commit in self.store.commits if commit.name != "take-uses"]

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        project: str = "web",
        source: str = "192.0.2.1",
    ) -> Reply:
        """One call below the project, or at an absolute path when it begins with a slash."""
        whole = path if path.startswith("/") else f"/apis/{API}/namespaces/{project}/{path}"
        sent = {"authorization": f"Bearer {self.key if key is None else key}", "host": "api.test"}
        text = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        if text is not None:
            sent["content-type"] = kind or JSON
        event = api_event(method, whole, {**sent, **(headers or {})}, text, query or {})
        event["requestContext"]["http"]["sourceIp"] = source
        answer = self.gate.answer(event, Context())
        # As Lambda's runtime writes it, whose answers have 6 MB at most.
        assert len(json.dumps(answer)) <= LARGEST_RESPONSE, "Lambda drops this answer"
        body = answer["body"]
        raw = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
        return Reply(answer["statusCode"], _headers(answer), raw.decode(errors="replace"), raw)

    def get(self, path: str, **more: Any) -> Reply:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Reply:
        return self.call("POST", path, body, **more)

    def apply(self, path: str, body: Any, **more: Any) -> Reply:
        return self.call("PATCH", path, body, kind=APPLY, **more)

    def patch(self, path: str, body: Any, **more: Any) -> Reply:
        return self.call("PATCH", path, body, kind=MERGE, **more)

    def agent(self, name: str = "hello-agent", /, **spec: Any) -> Reply:
        """Applies an agent."""
        return self.apply(f"agents/{name}", manifest("Agent", name, spec))

    def run(self, name: str = "hello-run", /, **spec: Any) -> Reply:
        """Creates a run of `hello-agent`."""
        wanted = {"agent": "hello-agent", "input": "Print the Python version.", **spec}
        return self.post("agentruns", manifest("AgentRun", name, wanted))


def manifest(kind: str, name: str, spec: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": dict(spec), **more}


def api_event(
    method: str, path: str, headers: Mapping[str, str], body: str | bytes | None, query: Mapping[str, str]
) -> dict[str, Any]:
    """The event of an HTTP API; bodies of other than text types come in base64, as API Gateway sends them."""
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /apis/{proxy+}",
        "rawPath": path,
        "rawQueryString": urlencode(query),
        "headers": dict(headers),
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api123",
            "domainName": "api123.execute-api.eu-central-1.amazonaws.com",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "test",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "ANY /apis/{proxy+}",
            "stage": "$default",
            "time": "01/Jan/2030:00:00:00 +0000",
            "timeEpoch": 1893456000000,
        },
        "isBase64Encoded": False,
    }
    if query:
        event["queryStringParameters"] = dict(query)
    if body is not None:
        raw = body.encode() if isinstance(body, str) else body
        as_text = headers.get("content-type", "").startswith(("text/", "application/json"))
        event["body"] = raw.decode() if as_text and _is_utf8(raw) else base64.b64encode(raw).decode()
        event["isBase64Encoded"] = not (as_text and _is_utf8(raw))
    return event


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _headers(answer: Mapping[str, Any]) -> dict[str, str]:
    flat = {name.lower(): value for name, value in (answer.get("headers") or {}).items()}
    for name, values in (answer.get("multiValueHeaders") or {}).items():
        flat[name.lower()] = values[0]
    return flat
