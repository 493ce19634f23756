"""The function itself: one line a call, and what the line holds."""

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
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Nodus")
    made = Rest()
    monkeypatch.setattr(api, "_gate", lambda: made.gate)
    return made


def lines(captured: Any) -> list[dict[str, Any]]:
    """The log lines, without the metrics."""
    found = [json.loads(line) for line in (captured.out + captured.err).splitlines() if line.startswith("{")]
    return [line for line in found if "_aws" not in line]


def send(rest: Rest, body: Any, query: dict[str, str] | None = None) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {rest.key}", "content-type": "application/json"}
    path = "/apis/nodus.dev/v1/namespaces/web/agents"
    return api.handler(api_event("POST", path, headers, json.dumps(body), query or {}), LambdaContext())  # type: ignore[arg-type]


def test_a_call_leaves_one_line_without_secrets(rest: Rest, capsys: pytest.CaptureFixture[str]) -> None:
    answer = send(rest, manifest("Agent", "a", {"system": "plum-9f31"}))
    assert answer["statusCode"] == 201
    (line,) = lines(capsys.readouterr())
    assert line["message"] == "answered"
    assert (line["method"], line["status"], line["org"], line["project"]) == ("POST", 201, "acme", "web")
    assert "plum-9f31" not in json.dumps(line)
    assert rest.key not in json.dumps(line)


def test_a_refusal_is_logged_by_its_reason(rest: Rest, capsys: pytest.CaptureFixture[str]) -> None:
    send(rest, manifest("Agent", "a", {"sytem": "plum-9f31"}), {"secret": "plum-9f31"})
    (line,) = lines(capsys.readouterr())
    assert (line["status"], line["reason"], line["level"]) == (400, "BadRequest", "INFO")
    assert "plum-9f31" not in json.dumps(line)


def test_a_fault_is_logged_with_its_trace(rest: Rest, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(keys: Any) -> Any:
        raise KeyError("a bug")

    rest.store.get = broken  # type: ignore[method-assign]
    assert send(rest, manifest("Agent", "a", {}))["statusCode"] == 500
    (line,) = lines(capsys.readouterr())
    assert (line["level"], line["message"], line["exception_name"]) == ("ERROR", "failed", "KeyError")
    assert "broken" in line["exception"]
