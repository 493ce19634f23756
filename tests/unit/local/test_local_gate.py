"""What the gate in front of the emulated AWS lets through."""

import asyncio
from typing import Any

import pytest

from localstack.cloud.gate import Gate, refusal

SIGNED = (
    "authorization",
    "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/s3/aws4_request, Signature=00",
)
HEALTH = "/_ministack/health"


def scope(path: str, *headers: tuple[str, str], kind: str = "http", query: str = "") -> dict[str, Any]:
    given = {"host": "127.0.0.1:24000", **dict(headers)}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    return {"type": kind, "path": path, "headers": pairs, "query_string": query.encode()}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:24000", "localhost:1", "[::1]", "[::1]:24000"])
def test_loopback_names_are_let_in(host: str) -> None:
    assert refusal(scope(HEALTH, ("host", host))) is None


@pytest.mark.parametrize(
    "host",
    [
        *("", "attacker.example", "attacker.example:24000", "attacker.example]", "[::1].attacker.example"),
        *(
            "[attacker.example]",
            "[::1]x",
            "]",
            "localhost.attacker.example",
            "127.0.0.1:24000:1",
            "localhost:x",
        ),
        *("127.0.0.1\n", "user@127.0.0.1"),
    ],
)
def test_every_other_name_is_turned_away(host: str) -> None:
    assert "loopback" in (refusal(scope(HEALTH, ("host", host))) or "")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/_ministack/reset",
            "/_ministack/config",
            "/_localstack/health",
            "/_aws/ses",
            "/_aws/lambda-url/x/",
        ),
        *("/_ministack/cfn-response/x", "/_ministack/cfn-signal/x"),
        *("/latest/meta-data/iam/security-credentials/", "/latest/api/token", "/v2/credentials/x"),
        *("/oauth2/token", "/logout"),
    ],
)
def test_a_signature_opens_nothing_that_does_not_check_it(path: str) -> None:
    assert "asks for no credentials" in (refusal(scope(path, SIGNED)) or "")
    assert refusal(scope(path, SIGNED, kind="websocket")) is not None


def test_services_are_reached_signed_only_and_apis_without() -> None:
    assert refusal(scope("/", SIGNED)) is None
    assert "must be signed" in (refusal(scope("/")) or "")
    assert refusal(scope("/bucket/key", query="X-Amz-Signature=0")) is None
    assert refusal(scope("/bucket/key", query="AWSAccessKeyId=a&Signature=b")) is None
    assert "must be signed" in (refusal(scope("/bucket/key", query="Signature=b")) or "")
    assert refusal(scope("/_aws/execute-api/h1/apis/x")) is None
    assert refusal(scope("/_aws/execute-api/h1/link", kind="websocket")) is None
    assert refusal(scope("/elsewhere", kind="websocket")) is not None


async def _reached(scheme: str, path: str, deployed: str | None) -> tuple[list[str], list[int]]:
    """Paths that came through the gate, and codes that it answered itself."""
    paths: list[str] = []
    codes: list[int] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        paths.append(scope["path"])
        assert scope["raw_path"].decode() == scope["path"]

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            codes.append(message["status"])

    asked = {**scope(path), "scheme": scheme, "raw_path": path.encode()}
    await Gate(inner, lambda: deployed)(asked, None, send)  # type: ignore[arg-type]
    return paths, codes


def test_the_tls_listener_leads_to_the_deployed_api_alone() -> None:
    api = "/_aws/execute-api/abc"
    assert asyncio.run(_reached("https", "/apis/nodus.dev/v1", api)) == ([f"{api}/apis/nodus.dev/v1"], [])
    # What is closed on the other listener is no more than a path of the API on this one.
    assert asyncio.run(_reached("https", "/_ministack/reset", api)) == ([f"{api}/_ministack/reset"], [])
    assert asyncio.run(_reached("https", "/apis", None)) == ([], [403])
    assert asyncio.run(_reached("http", f"{api}/apis", None)) == ([f"{api}/apis"], [])


def test_nobody_leaves_the_api_by_dots_in_a_path() -> None:
    api = "/_aws/execute-api/abc"
    for path in ("/../../_ministack/reset", "/./apis", "/apis/.."):
        assert asyncio.run(_reached("https", path, api)) == ([], [403])
        assert asyncio.run(_reached("http", api + path, None)) == ([], [403])
