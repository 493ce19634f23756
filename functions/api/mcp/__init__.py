"""The API for models: an MCP server over streamable HTTP, without a session, whose tools are calls of REST.

It stands beside the routes and not among them: a tool's call goes through the same gate as any other. The request
is counted as a use of its key when it is admitted, and the call of a tool in it is not counted again.
"""

from collections.abc import Mapping
from typing import Any

from functions.api.gate import Gate

PATH = "/mcp"
NO_CONTENT = 204
"""What the route answers to a caller with a good key."""


def is_meant(event: Mapping[str, Any]) -> bool:
    """Whether a request is for the MCP server."""
    return event.get("rawPath") == PATH


def answer(gate: Gate, event: dict[str, Any], context: Any) -> dict[str, Any]:
    """The response to a request of an MCP client; without a good key that of the route (401, or 403)."""
    admitted = gate.answer(event, context)
    if admitted["statusCode"] != NO_CONTENT:
        return admitted
    # The SDK takes longer to import than a REST call to answer, and most processes are never asked for it.
    from functions.api.mcp import transport  # noqa: PLC0415

    return transport.answer(gate, event, context)
