"""The function itself: one line a call, and what the line holds."""

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from functions.api import handler as api
from tests.unit.api.rest import Context, Rest, api_event, manifest


class LambdaContext(Context):
    function_name = "nodus-api"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:nodus-api"


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch) -> Rest:
    made = Rest()
    monkeypatch.setattr(api.metrics.provider, "namespace", "Nodus")
    monkeypatch.setattr(api, "_gate", lambda: made.gate)
    return made


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the function logs."""
    stream = io.StringIO()
    monkeypatch.setattr(api.logger.registered_handler, "stream", stream)
    return stream


def only_line(log: io.StringIO) -> dict[str, Any]:
    (line,) = log.getvalue().splitlines()
    return json.loads(line)


def send(rest: Rest, body: Any, query: dict[str, str] | None = None) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {rest.key}", "content-type": "application/json"}
    path = "/apis/nodus.dev/v1/namespaces/web/agents"
    return api.handler(api_event("POST", path, headers, json.dumps(body), query or {}), LambdaContext())  # type: ignore[arg-type]


def test_a_call_leaves_one_line_without_secrets(rest: Rest, log: io.StringIO) -> None:
    answer = send(rest, manifest("Agent", "a", {"system": "plum-9f31"}))
    assert answer["statusCode"] == 201
    line = only_line(log)
    assert line["message"] == "answered"
    assert (line["method"], line["status"], line["org"], line["project"]) == ("POST", 201, "acme", "web")
    assert "plum-9f31" not in json.dumps(line)
    assert rest.key not in json.dumps(line)


def test_a_refusal_is_logged_by_its_reason(rest: Rest, log: io.StringIO) -> None:
    send(rest, manifest("Agent", "a", {"sytem": "plum-9f31"}), {"secret": "plum-9f31"})
    line = only_line(log)
    assert (line["status"], line["reason"], line["level"]) == (400, "BadRequest", "INFO")
    assert "plum-9f31" not in json.dumps(line)


def test_a_fault_is_logged_with_its_trace(rest: Rest, log: io.StringIO) -> None:
    def broken(keys: Any) -> Any:
        raise KeyError("a bug")

    rest.store.get = broken  # type: ignore[method-assign]
    assert send(rest, manifest("Agent", "a", {}))["statusCode"] == 500
    line = only_line(log)
    assert (line["level"], line["message"], line["exception_name"]) == ("ERROR", "failed", "KeyError")
    assert "broken" in line["exception"]


def unmatched(method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer to what API Gateway has no other route for."""
    event = api_event(method, path, headers, None, {})
    event["routeKey"] = event["requestContext"]["routeKey"] = "$default"
    return api.handler(event, LambdaContext())  # type: ignore[arg-type]


@pytest.mark.req("NODQ-01", "NOD-478")
@pytest.mark.parametrize(
    ("method", "path", "code", "reason", "allow"),
    [
        ("GET", "/", 404, "NotFound", None),
        ("GET", "/favicon.ico", 404, "NotFound", None),
        ("POST", "/link/v1/nothing", 404, "NotFound", None),
        ("GET", "/apis/apps/v1/deployments", 404, "NotFound", None),
        ("GET", "/MCP", 404, "NotFound", None),
        ("GET", f"/{'x' * 8000}", 404, "NotFound", None),
        ("POST", "/healthz", 405, "MethodNotAllowed", "GET"),
        ("DELETE", "/openapi.json", 405, "MethodNotAllowed", "GET"),
        ("PUT", "/mcp", 405, "MethodNotAllowed", "POST"),
        ("OPTIONS", "/apis/nodus.dev/v1/namespaces/web/agents/a", 405, "MethodNotAllowed", None),
    ],
)
def test_what_no_route_takes_is_refused_as_a_status_whoever_asks(
    rest: Rest, log: io.StringIO, *, method: str, path: str, code: int, reason: str, allow: str | None
) -> None:
    rest.agent("a")
    key = {"authorization": f"Bearer {rest.key}"}

    def unread(keys: Any) -> Any:
        raise AssertionError(f"read {keys}")

    rest.store.get = unread  # type: ignore[method-assign]
    refused = unmatched(method, path, {})
    status = json.loads(refused["body"])
    assert (refused["statusCode"], status["code"]) == (code, code)
    assert (status["kind"], status["apiVersion"], status["reason"]) == ("Status", "v1", reason)
    assert status["message"]
    if allow is not None:
        assert refused["headers"]["Allow"] == allow
    # A good key is told no more, a bad one no less.
    for headers in (key, {"authorization": "Bearer nodus_wrong"}):
        assert unmatched(method, path, headers) == refused
    assert {json.loads(line)["status"] for line in log.getvalue().splitlines()} == {code}


def test_a_method_that_is_not_taken_does_not_tell_what_is_stored(rest: Rest) -> None:
    rest.agent("a")
    base = "/apis/nodus.dev/v1/namespaces"
    there, missing, nowhere = (
        unmatched("POST", f"{base}/{place}", {})
        for place in ("web/agents/a", "web/agents/b", "none/agents/a")
    )
    assert there["statusCode"] == 405
    assert there["headers"]["Allow"] == "GET, PUT, PATCH, DELETE"
    assert there == missing == nowhere
