"""A server in this process that keeps docs/protocols.md, section 1, and fails on demand.

Its runs go on by half a step whenever they are read (fake_runs.py), so a test never waits for a time.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from nodus import _kinds
from nodus_core.kernel.times import stamp
from nodus_core.resources.kinds import BY_NAME
from nodus_core.resources.tables import Tables

from tests.unit.client.fake_runs import Outcome, Run

TOKEN = "key-of-the-fake"
TOKEN_OF_NEW_KEYS = "nodus_1_shown_once"
KINDS = {kind.plural: kind.name for kind in _kinds.KINDS}
PREFIX = re.compile(
    rf"/apis/nodus\.dev/v1/(?:namespaces/([^/]+)/)?({'|'.join(KINDS)})(?:/([^/]+)(?:/([a-z-]+))?)?$"
)
ORGANIZATION = ""
"""The project of what belongs to no project."""
FIELDS = {
    "Agent": [
        "system",
        "model",
        "perRunMaxCostUSD",
        "maxToolCalls",
        "maxParallelAgents",
        "workingDir",
        "continuity",
        "source",
        "setup",
        "image",
        "network",
        "env",
        "secrets",
        "state",
    ],
    "AgentRun": [
        "agent",
        "model",
        "input",
        "keepAlive",
        "deadline",
        "parallelism",
        "group",
        "taskKey",
        "dependsOn",
    ],
    "Budget": ["limitUSD", "period", "action"],
    "Secret": ["data"],
    "AgentGroup": ["agent", "limits", "maxCostUSD", "sealed", "evaluation"],
    "Sandbox": [
        "image",
        "resources",
        "idleTimeout",
        "ttl",
        "network",
        "continuity",
        "maxCostUSD",
        "env",
        "secrets",
    ],
    "Project": ["displayName"],
    "ApiKey": ["role", "permissions", "projects", "ttl"],
}
LARGE_ANSWER_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Seen:
    """One request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Fault:
    """What goes wrong with the next ``times`` requests whose ``METHOD PATH`` matches ``pattern``.

    ``status``: answered instead of being done. ``lost``: done, then the connection is cut without an answer.
    """

    pattern: str
    times: int = 1
    status: int | None = None
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    lost: bool = False


@dataclass
class Answer:
    code: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class Refusal(Exception):
    def __init__(
        self, code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status_of(code, reason, message, causes)
        self.code = code


def status_of(
    code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """The body of a refusal."""
    head = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure"}
    return head | {"reason": reason, "message": message, "code": code, "details": {"causes": causes or []}}


class FakeServer:
    """The server: its objects, what it has seen, and what shall go wrong."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.runs: dict[tuple[str, str], Run] = {}
        self.promises: dict[tuple[str, str], tuple[Any, bytes]] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.when_seen: Callable[[Seen], object] = lambda _: None
        self.documents: dict[str, dict[str, Any]] = {"/version": {"gitVersion": "v0.1.0-fake"}}
        self.changes: list[tuple[int, str, tuple[str, str], dict[str, Any]]] = []
        self.page_size = 500
        self.pace = 1
        self.lock = threading.RLock()
        self._version = 100
        self._generated = 0
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def asked(self, pattern: str) -> list[Seen]:
        """The requests whose ``METHOD PATH`` matches."""
        return [seen for seen in self.seen if re.search(pattern, f"{seen.method} {seen.path}")]

    def object(self, plural: str, name: str, project: str = "default") -> dict[str, Any]:
        return self.objects[project, plural, name]

    def fault_for(self, seen: Seen) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.pattern, f"{seen.method} {seen.path}"):
                fault.times -= 1
                return fault
        return None

    def answer(self, seen: Seen) -> Answer:
        if seen.path.startswith("/stored/"):
            return self._stored(seen)
        try:
            return self._routed(seen)
        except Refusal as refusal:
            return Answer(refusal.code, json.dumps(refusal.status).encode())

    def _stored(self, seen: Seen) -> Answer:
        if {"authorization", "nodus-org"} & seen.headers.keys():
            return Answer(400, b"the key was sent to the object store", "text/plain")
        _, _, project, name = seen.path.split("/")
        return Answer(200, (self.runs[project, name].answer() or "").encode(), "text/plain")

    def _routed(self, seen: Seen) -> Answer:
        if seen.path == "/healthz":
            return _json(200, {"status": "ok"})
        if seen.path in self.documents:
            return _json(200, self.documents[seen.path])
        if seen.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "Unauthorized", "this key is not known")
        if seen.headers.get("nodus-org", "default") != "default":
            raise Refusal(403, "Forbidden", f"no access to organization {seen.headers['nodus-org']!r}")
        match = PREFIX.fullmatch(seen.path)
        if match is None:
            raise Refusal(404, "NotFound", f"no such path {seen.path}")
        project, plural, name, below = (
            match[1] or ORGANIZATION,
            match[2],
            match[3] and unquote(match[3]),
            match[4],
        )
        kind = _kinds.find(plural)
        everywhere = not match[1] and name is None and seen.method == "GET"
        if kind is None or (kind.namespaced is not bool(match[1]) and not everywhere):
            raise Refusal(404, "NotFound", f"no such path {seen.path}")
        if name is None:
            return (
                self._list(seen, project, plural)
                if seen.method == "GET"
                else self._create(seen, project, plural)
            )
        if below:
            return self._below(seen, project, name, below)
        return getattr(self, f"_{seen.method.lower()}")(seen, project, plural, name)

    def _list(self, seen: Seen, project: str, plural: str) -> Answer:
        if seen.query.get("watch") == "true":
            return self._watched(seen, project, plural)
        items = [
            thing
            for key, thing in sorted(self.objects.items())
            if key[1] == plural and project in (key[0], ORGANIZATION)
        ]
        shown = [self._shown(item) for item in items if _selected(item, seen.query)]
        return self._page(seen, KINDS[plural] + "List", shown, _tables(seen, plural))

    def _watched(self, seen: Seen, project: str, plural: str) -> Answer:
        """A window: what has changed since, at once, and where it stands now."""
        since = int(seen.query["resourceVersion"])
        events = [
            {"type": word, "object": thing}
            for version, word, where, thing in self.changes
            if version > since and where == (project, plural) and _selected(thing, seen.query)
        ]
        mark = {"metadata": {"resourceVersion": str(self._version)}, "kind": KINDS[plural]}
        events.append({"type": "BOOKMARK", "object": mark})
        if tables := _tables(seen, plural):
            events = [_as_row(tables, event, number) for number, event in enumerate(events)]
        return Answer(200, "\n".join(map(json.dumps, events)).encode() + b"\n")

    def _page(
        self, seen: Seen, kind: str, items: list[dict[str, Any]], tables: Tables | None = None
    ) -> Answer:
        start = int(seen.query.get("continue", "at-0").removeprefix("at-"))
        end = start + min(int(seen.query.get("limit", "100")), self.page_size)
        metadata = {"resourceVersion": str(self._version)}
        if end < len(items):
            metadata["continue"] = f"at-{end}"
        if tables is not None:
            return _json(200, tables.table(items[start:end], metadata))
        head = {"apiVersion": "nodus.dev/v1", "kind": kind, "metadata": metadata}
        return _json(200, head | {"items": items[start:end]})

    def _create(self, seen: Seen, project: str, plural: str) -> Answer:
        body = seen.json()
        key = (seen.path, seen.headers.get("idempotency-key", ""))
        if key in self.promises:
            first_body, first = self.promises[key]
            if first_body != body:
                raise Refusal(
                    409, "IdempotencyKeyConflict", "this Idempotency-Key was used for another request"
                )
            return Answer(201, first, headers={"Idempotent-Replayed": "true"})
        if body["kind"] == "AgentRunList":
            made = self._together(seen, project, plural, [self._named(item) for item in body["items"]])
        else:
            wanted = self._named(body)
            name = wanted["metadata"]["name"]
            self._check_free(project, plural, name)
            made = _json(201, self._store(seen, project, plural, name, wanted))
        if key[1]:
            self.promises[key] = (body, made.body)
        return made

    def _named(self, body: dict[str, Any]) -> dict[str, Any]:
        """The object under its name, or under one that is made of its `generateName`."""
        metadata = body["metadata"]
        if metadata.get("name") or not metadata.get("generateName"):
            return body
        self._generated += 1
        return body | {"metadata": {"name": f"{metadata['generateName']}{self._generated:05}"}}

    def _check_free(self, project: str, plural: str, name: str) -> None:
        if (project, plural, name) in self.objects:
            raise Refusal(409, "AlreadyExists", f"{plural} {name!r} already exists")

    def _together(self, seen: Seen, project: str, plural: str, items: list[dict[str, Any]]) -> Answer:
        """All runs of a list, or none."""
        if "idempotency-key" not in seen.headers:
            raise Refusal(400, "BadRequest", "a list is created with the header Idempotency-Key")
        for number, item in enumerate(items):
            try:
                self._check_free(project, plural, item["metadata"]["name"])
                self._check(project, "AgentRun", item, item.get("spec", {}))
            except Refusal as refusal:
                status, place = refusal.status, f"items[{number}]"
                causes = [
                    cause | {"field": f"{place}.{cause['field']}"} for cause in status["details"]["causes"]
                ]
                message = f"{place}: {status['message']}; nothing was created"
                raise Refusal(refusal.code, status["reason"], message, causes) from None
        made = [self._store(seen, project, plural, item["metadata"]["name"], item) for item in items]
        return _json(201, {"apiVersion": "nodus.dev/v1", "kind": "AgentRunList", "items": made})

    def _get(self, seen: Seen, project: str, plural: str, name: str) -> Answer:
        thing = self._found(project, plural, name)
        run = self.runs.get((project, name)) if plural == "agentruns" else None
        if run is not None:
            run.look()
        if "deletionTimestamp" in thing["metadata"]:
            del self.objects[project, plural, name]  # its sandbox is gone: seen once more, then no longer
        tables, shown = _tables(seen, plural), self._shown(thing)
        return _json(200, shown if tables is None else tables.table([shown], {}))

    def _patch(self, seen: Seen, project: str, plural: str, name: str) -> Answer:
        body = seen.json()
        if seen.headers["content-type"] == "application/merge-patch+json":
            thing = self._found(project, plural, name)
            return _json(200, self._store(seen, project, plural, name, _merged(thing, body)))
        if seen.headers["content-type"] != "application/apply-patch+yaml":
            raise Refusal(415, "UnsupportedMediaType", seen.headers["content-type"])
        old = self.objects.get((project, plural, name))
        if old is not None and old["spec"] != body.get("spec", {}):
            self._check_seen(old, body)
        stored = self._store(seen, project, plural, name, body)
        return _json(201 if old is None else 200, stored)

    def _put(self, seen: Seen, project: str, plural: str, name: str) -> Answer:
        self._check_seen(self._found(project, plural, name), seen.json())
        return _json(200, self._store(seen, project, plural, name, seen.json()))

    def _check_seen(self, old: dict[str, Any], body: dict[str, Any]) -> None:
        """Refuse a writer who has seen another object, or another version of it."""
        for field_name in ("uid", "resourceVersion"):
            if body["metadata"].get(field_name) not in (None, old["metadata"][field_name]):
                raise Refusal(409, "Conflict", f"{old['metadata']['name']!r} has another {field_name}")

    def _delete(self, seen: Seen, project: str, plural: str, name: str) -> Answer:
        thing = self._found(project, plural, name)
        wanted = seen.json().get("preconditions", {}) if seen.body else {}
        if any(thing["metadata"][field_name] != value for field_name, value in wanted.items()):
            raise Refusal(409, "Conflict", f"{plural} {name!r} is not the one of the preconditions")
        if seen.query.get("dryRun"):
            return _json(200, self._shown(thing))
        if plural != "agentruns":
            self._changed("DELETED", project, plural, thing)
            del self.objects[project, plural, name]
            return _json(200, {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success"})
        self.runs[project, name].cancelled = True
        thing["metadata"]["deletionTimestamp"] = _now()
        return _json(202, self._shown(thing))

    def _below(self, seen: Seen, project: str, name: str, below: str) -> Answer:
        thing = self._found(project, "agentruns", name)
        run = self.runs[project, name]
        if below == "cancel":
            finished = run.finished
            run.cancelled = run.cancelled or not finished
            return _json(200 if finished else 202, self._shown(thing))
        if below == "messages":
            return self._message(run, name, seen.json())
        if below == "resolution":
            return self._resolve(seen, thing, run)
        if below == "steps":
            run.look()
            return self._page(seen, "StepList", run.steps())
        answer = run.answer()
        if answer is None:
            raise Refusal(409, "AnswerNotReady", f"run {name!r} has no answer yet")
        if len(answer.encode()) > LARGE_ANSWER_BYTES:
            return Answer(307, b"", headers={"Location": f"/stored/{project}/{name}"})
        return Answer(200, answer.encode(), "text/plain; charset=utf-8")

    def _message(self, run: Run, name: str, body: dict[str, Any]) -> Answer:
        key, text = body["messageKey"], body["payload"]
        if run.messages.get(key, text) != text:
            raise Refusal(409, "MessageKeyConflict", f"messageKey {key!r} was used for another message")
        replayed = key in run.messages
        if run.finished and not replayed:
            raise Refusal(409, "AgentRunFinished", f"AgentRun {name!r} has finished")
        run.messages[key] = text
        turn = 2 + list(run.messages).index(key)
        return _json(200 if replayed else 202, {"kind": "Message", "messageKey": key, "turn": turn})

    def _resolve(self, seen: Seen, thing: dict[str, Any], run: Run) -> Answer:
        """A statement about a step that is held; the same request key gives the first answer again."""
        body = seen.json()
        key = (seen.path, body["requestKey"])
        if key in self.promises:
            first_body, first = self.promises[key]
            if first_body != body:
                raise Refusal(409, "IdempotencyKeyConflict", "this requestKey was used for another request")
            return Answer(202, first, headers={"Idempotent-Replayed": "true"})
        if body["step"] not in run.unresolved:
            raise Refusal(409, "Conflict", f"step {body['step']!r} was resolved by 'bob' at noon: Happened")
        run.resolve(body["step"])
        said = _json(202, self._shown(thing))
        self.promises[key] = (body, said.body)
        return said

    def _found(self, project: str, plural: str, name: str) -> dict[str, Any]:
        if (project, plural, name) not in self.objects:
            raise Refusal(404, "NotFound", f"{plural} {name!r} not found")
        return self.objects[project, plural, name]

    def _store(
        self, seen: Seen, project: str, plural: str, name: str, body: dict[str, Any]
    ) -> dict[str, Any]:
        kind, spec = KINDS[plural], body.get("spec", {})
        self._check(project, kind, body, spec)
        thing = self.objects.get((project, plural, name))
        words = {
            field: body["metadata"][field]
            for field in ("labels", "annotations")
            if body["metadata"].get(field) is not None
        }
        before: dict[str, Any] = {} if thing is None else thing["metadata"]
        if thing is not None and thing["spec"] == spec and all(before.get(f) == words[f] for f in words):
            return self._shown(thing)
        fresh: dict[str, Any] = {"uid": uuid.uuid4().hex, "generation": 0, "creationTimestamp": _now()}
        place = {"namespace": project} if project else {}
        metadata: dict[str, Any] = {"name": name} | place | (dict(before) or fresh) | words
        metadata |= {"resourceVersion": str(self._version + 1), "generation": metadata["generation"] + 1}
        stored = {"apiVersion": "nodus.dev/v1", "kind": kind, "metadata": metadata, "spec": spec}
        if seen.query.get("dryRun"):
            return stored
        self._version += 1
        self.objects[project, plural, name] = stored
        if kind == "AgentRun" and thing is None:
            outcome = self.outcomes.get(name) or self.outcomes.get(spec["input"]) or Outcome()
            self.runs[project, name] = Run(outcome, pace=self.pace)
        self._changed("MODIFIED" if thing else "ADDED", project, plural, stored)
        if kind == "ApiKey" and thing is None:
            return stored | {"status": {"prefix": "nodus_1", "token": TOKEN_OF_NEW_KEYS}}
        return self._shown(stored)

    def _changed(self, word: str, project: str, plural: str, thing: dict[str, Any]) -> None:
        if word == "DELETED":
            self._version += 1
            thing["metadata"]["resourceVersion"] = str(self._version)
        self.changes.append((self._version, word, (project, plural), dict(self._shown(thing))))

    def _check(self, project: str, kind: str, body: dict[str, Any], spec: dict[str, Any]) -> None:
        if body.get("apiVersion") != "nodus.dev/v1":
            raise Refusal(400, "BadRequest", f"apiVersion {body.get('apiVersion')!r} is not nodus.dev/v1")
        causes = [_cause(f"spec.{name}", "unknown field") for name in spec if name not in FIELDS[kind]]
        if kind == "AgentRun" and not spec.get("input"):
            causes.append(_cause("spec.input", "is required"))
        if causes:
            raise Refusal(422, "Invalid", f"{kind} is invalid", causes)
        if kind == "AgentRun":
            agent = self.objects.get((project, "agents", spec["agent"]))
            if agent is None and spec["agent"] != "claude-assistant":
                raise Refusal(404, "NotFound", f"agents {spec['agent']!r} not found")
            if agent is not None and agent["spec"].get("state") == "Stopped":
                raise Refusal(409, "AgentStopped", f"agent {spec['agent']!r} is stopped")

    def _shown(self, thing: dict[str, Any]) -> dict[str, Any]:
        if thing["kind"] == "ApiKey":
            return {"status": {"prefix": "nodus_1"}} | thing
        if thing["kind"] not in {"AgentRun", "Budget", "Secret"}:
            return thing
        if thing["kind"] == "Budget":
            limit = thing["spec"]["limitUSD"]
            status = {"phase": "Active", "spentUSD": "0", "reservedUSD": "0", "remainingUSD": limit}
            return thing | {"status": status}
        if thing["kind"] == "Secret":
            return thing | {"spec": {}, "status": {"fields": sorted(thing["spec"]["data"])}}
        return thing | {
            "status": self.runs[thing["metadata"]["namespace"], thing["metadata"]["name"]].status()
        }


def _tables(seen: Seen, plural: str) -> Tables | None:
    """The server's own tables, where a request asks for them."""
    if "as=Table" not in seen.headers.get("accept", ""):
        return None
    include: Any = seen.query.get("includeObject", "Metadata")
    return Tables(BY_NAME[KINDS[plural]], datetime.now(UTC), include)


def _as_row(tables: Tables, event: dict[str, Any], number: int) -> dict[str, Any]:
    """An event as a table of one row; of what is gone only the metadata is left, and the cells of usual tables."""
    thing = event["object"]
    last = {}
    if event["type"] == "DELETED":
        last = {column.name: column.cell(thing) for column in tables.kind.columns if not column.priority}
        thing = {"metadata": thing["metadata"]}
    return event | {"object": tables.table([thing], {}, headed=number == 0, cells=last)}


def _selected(thing: dict[str, Any], query: dict[str, str]) -> bool:
    """Whether the selectors of a request choose the object; `=` only."""
    for pair in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, wanted = pair.partition("=")
        value: Any = thing
        for field_name in path.split("."):
            value = (value or {}).get(field_name)
        if str(value) != wanted:
            return False
    labels = thing["metadata"].get("labels") or {}
    pairs = (pair.partition("=") for pair in filter(None, query.get("labelSelector", "").split(",")))
    return all(labels.get(key) == wanted for key, _, wanted in pairs)


def _cause(path: str, message: str) -> dict[str, str]:
    return {"reason": "FieldValueInvalid", "message": message, "field": path}


def _json(code: int, value: dict[str, Any]) -> Answer:
    return Answer(code, json.dumps(value).encode())


def _now() -> str:
    return stamp(datetime.now(UTC))


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


class _Http(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that went away is part of the tests
            super().handle_error(request, client_address)


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(self.command, url.path, query, headers, body)
            with server.lock:
                server.seen.append(seen)
                server.when_seen(seen)
                fault = server.fault_for(seen)
                answer = server.answer(seen) if fault is None or fault.lost else self.faulty(fault)
            if fault is not None and fault.lost:
                self.close_connection = True
                return
            self.reply(answer)

        def faulty(self, fault: Fault) -> Answer:
            code = fault.status or 500
            refusal = json.dumps(status_of(code, fault.reason, "injected")).encode()
            return Answer(code, refusal if fault.body is None else fault.body, headers=fault.headers)

        def reply(self, answer: Answer) -> None:
            self.send_response(answer.code)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        def log_message(self, format: str, *args: Any) -> None:
            """The tests look at ``seen`` instead."""

    return Handler
