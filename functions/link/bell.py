"""Connections of the WebSocket API: the daemons' bells, and people who watch terminals."""

from typing import Any

from nodus_core.kernel.errors import Refusal
from nodus_core.sandboxes.link import Link
from nodus_core.sandboxes.relay import Relay

from functions.link.words import sandbox_name, token_of

LONGEST_TICKET = 200


def hear(link: Link, relay: Relay, event: dict[str, Any]) -> str:
    """Takes note of a connection or its end, or passes a message on. Raises `Refusal` for a stranger's."""
    context = event["requestContext"]
    connection: str = context["connectionId"]
    match context.get("eventType"):
        case "CONNECT":
            _admit(link, relay, event, connection)
        case "MESSAGE":
            relay.hear(connection, str(event.get("body") or ""))
        case "DISCONNECT":
            relay.left(connection)
        case other:
            raise Refusal("BadRequest", f"the link knows no {other!r}")
    return ""


def _admit(link: Link, relay: Relay, event: dict[str, Any], connection: str) -> None:
    query: dict[str, str] = event.get("queryStringParameters") or {}
    if "ticket" in query:
        relay.admit(query["ticket"][:LONGEST_TICKET], connection)
    else:
        name = sandbox_name(query.get("sandbox", ""))
        link.connected(link.authorize(name, token_of(event)), connection)
