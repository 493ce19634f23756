"""The bell's connections: who may be rung, under which connection id."""

from typing import Any

from nodus_core.kernel.errors import Refusal
from nodus_core.sandboxes.link import Link

from functions.link.words import sandbox_name, token_of


def hear(link: Link, event: dict[str, Any]) -> str:
    """Takes note of a connection, its end, or a ping. Raises `Refusal` for a stranger's."""
    context = event["requestContext"]
    connection: str = context["connectionId"]
    match context.get("eventType"):
        case "CONNECT":
            query: dict[str, str] = event.get("queryStringParameters") or {}
            name = sandbox_name(query.get("sandbox", ""))
            link.connected(link.authorize(name, token_of(event)), connection)
        case "DISCONNECT" | "MESSAGE":
            pass  # a ring that finds the connection gone is no error, and a ping needs no answer
        case other:
            raise Refusal("BadRequest", f"the bell knows no {other!r}")
    return ""
