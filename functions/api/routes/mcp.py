"""`/mcp`: whether its caller has a key. What then happens there is the MCP server's (`functions.api.mcp`)."""

from typing import Any

from aws_lambda_powertools.event_handler import Response

from functions.api.gate import Gate
from functions.api.mcp import PATH

METHODS = ("GET", "POST", "DELETE")


def add(gate: Gate) -> None:
    def admitted() -> Response[Any]:
        gate.caller(gate.call())
        return Response(204)

    for method in METHODS:
        gate.open(method, PATH)(admitted)
