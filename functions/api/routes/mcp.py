"""`/mcp`: whether its caller has a key. What then happens there is the MCP server's (`functions.api.mcp`)."""

from typing import Any

from aws_lambda_powertools.event_handler import Response

from functions.api.gate import Gate
from functions.api.mcp import PATH


def add(gate: Gate) -> None:
    # POST alone: without a session there is none to end (DELETE), and no stream to wait at (GET), which the protocol
    # has a server say with 405.
    @gate.open("POST", PATH)
    def admitted() -> Response[Any]:
        gate.caller(gate.call())
        return Response(204)
