"""The function itself: one line a call, and what the line holds."""

import io
import json
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
