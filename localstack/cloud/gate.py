"""What the emulator must never see.

MiniStack has endpoints that ask for no credentials: wipe everything, change its configuration, read mail,
queues and instance credentials. Whoever reaches it could also run code as this user. So everything but the
deployed APIs must be signed (MiniStack then checks the signature), and a web page that got its own name
resolved to loopback is turned away by the Host header.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEALTH = "/_ministack/health"
# APIs check their own keys.
UNSIGNED_PREFIXES = ("/_aws/execute-api/",)
# Answered without a look at any signature: MiniStack's own, credentials of instances and tasks, sign-in pages.
CLOSED_PREFIXES = (
    *("/_ministack/", "/_localstack/", "/_aws/", "/latest", "/v2/credentials", "/oauth2/", "/logout"),
)
LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")


class Gate:
    """Lets signed requests and requests to deployed APIs through to `inner`, refuses the rest with 403.

    What comes over TLS is for the deployed REST API alone, whose path `api_path` tells (None: nothing is deployed).
    """

    def __init__(self, inner: Application, api_path: Callable[[], str | None]) -> None:
        self._inner = inner
        self._api_path = api_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._inner(scope, receive, send)
            return
        path = self._api_path() if scope["scheme"] in {"https", "wss"} else ""
        scope = below(scope, path or "")
        reason = "nothing is deployed here yet" if path is None else refusal(scope)
        if reason is None:
            await self._inner(as_secure(scope), receive, send)
        elif scope["type"] == "http":
            await refuse(send, reason)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": reason})


def below(scope: Scope, path: str) -> Scope:
    """The request with its path taken as one below `path`."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return {**scope, "path": path + scope["path"], "raw_path": path.encode() + raw}


def as_secure(scope: Scope) -> Scope:
    """Say that the request came over TLS, as CDK's own bucket policy and `enforce_ssl` demand.

    Loopback is as private as TLS here; without this, IAM refuses every request to such a bucket.
    """
    headers = [pair for pair in scope["headers"] if pair[0].lower() != b"x-forwarded-proto"]
    return {**scope, "headers": [*headers, (b"x-forwarded-proto", b"https")]}


def refusal(scope: Scope) -> str | None:
    """Why this request may not pass, None when it may."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "")
    if not LOCAL_HOST.fullmatch(host):
        return f"the local cloud answers on loopback names only, not as {host!r}"
    path: str = scope["path"]
    if not {".", ".."}.isdisjoint(path.split("/")):
        return "a path here has no . and no .. in it"
    if path == HEALTH or path.startswith(UNSIGNED_PREFIXES):
        return None
    if scope["type"] == "websocket":
        return "the only WebSockets here are those of deployed APIs"
    if path.startswith(CLOSED_PREFIXES):
        return f"{path} is closed: it asks for no credentials"
    if not is_signed(headers, scope.get("query_string", b"")):
        return (
            "requests to AWS services must be signed; the credentials are in cloud.json of the state folder"
        )
    return None


def is_signed(headers: MutableMapping[str, str], query: bytes) -> bool:
    """Whether the request carries a signature; whether the signature is right is MiniStack's to judge."""
    if headers.get("authorization", "").startswith("AWS4-"):
        return True
    names = {name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)}
    # The second is how boto3 presigns S3 addresses in us-east-1 unless told otherwise.
    return "X-Amz-Signature" in names or {"AWSAccessKeyId", "Signature"} <= names


async def refuse(send: Send, reason: str) -> None:
    """Answer 403 in the form that AWS clients show."""
    body = json.dumps({"__type": "AccessDeniedException", "message": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
