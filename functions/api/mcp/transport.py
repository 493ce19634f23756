"""One HTTP request of an MCP client, from API Gateway's event to its response, through the SDK's own transport."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST
from nodus_core.aws.http_events import body_of, headers_of
from nodus_core.resources.document import MAX_BODY
from nodus_core.resources.media_types import JSON

from functions.api.gate import Gate
from functions.api.mcp.server import KEPT_HEADERS, Connection

# Whoever calls has a key, so no web page can: there is nothing that rebinding a name could reach.
_OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def answer(gate: Gate, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """The response to a request whose key was found good."""
    if (refused := _refused(body_of(event))) is not None:
        return refused
    headers = headers_of(event)
    kept = {name: headers[name] for name in KEPT_HEADERS if name in headers}
    return asyncio.run(_served(Connection(gate, kept, context), event, headers))


def _refused(body: bytes) -> dict[str, Any] | None:
    """The refusal of a message with an id that no answer could carry, which a client would wait for without end.

    JSON that cannot be read, and what else is no message, the SDK refuses itself.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or "id" not in message or type(message["id"]) in (int, str):
        return None
    error = {"code": INVALID_REQUEST, "message": "id must be a string or a whole number"}
    text = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    return {"statusCode": 400, "headers": {"Content-Type": JSON, "Cache-Control": "no-store"}, "body": text}


async def _served(
    connection: Connection, event: Mapping[str, Any], headers: Mapping[str, str]
) -> dict[str, Any]:
    """Without a session: nothing of this request is needed for the next one, which another process may get."""
    manager = StreamableHTTPSessionManager(
        connection.server(),
        json_response=True,
        stateless=True,
        security_settings=_OPEN,
        max_request_body_size=MAX_BODY,
    )
    response = _Response()
    async with manager.run():
        await manager.asgi_app(_scope(event, headers), _once(body_of(event)), response.take)
    return response.as_answer()


def _scope(event: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    path = event.get("rawPath", "")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": event["requestContext"]["http"]["method"],
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": event.get("rawQueryString", "").encode(),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        "client": None,
        "server": None,
    }


def _once(body: bytes) -> Any:
    """What an ASGI application receives: the body, and then nothing more ever."""
    waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    waiting.put_nowait({"type": "http.request", "body": body, "more_body": False})
    return waiting.get


class _Response:
    """What an ASGI application sends, gathered."""

    def __init__(self) -> None:
        self._code = 500
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    async def take(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._code = message["status"]
            self._headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]
            }
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")

    def as_answer(self) -> dict[str, Any]:
        """The response in API Gateway's payload format 2.0."""
        headers = {name: value for name, value in self._headers.items() if name.lower() != "content-length"}
        return {
            "statusCode": self._code,
            "headers": {**headers, "Cache-Control": "no-store"},
            "body": base64.b64encode(self._body).decode(),
            "isBase64Encoded": True,
        }
