"""`GET /healthz`: the function answers."""

from typing import Any

from aws_lambda_powertools.event_handler import Response

from functions.api.gate import Gate, reply


def add(gate: Gate) -> None:
    @gate.open("GET", "/healthz")
    def healthy() -> Response[Any]:
        return reply({"status": "ok"})
