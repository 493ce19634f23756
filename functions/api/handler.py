"""REST over the HTTP API (docs/protocols.md §1)."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from nodus_core.bootstrap import core
from nodus_core.conversations.shelf import Shelf

from functions.api import mcp
from functions.api.env import Environment
from functions.api.gate import Gate
from functions.api.routes import (
    agentruns,
    documents,
    health,
    images,
    logins,
    objects,
    sandbox_files,
    sandbox_previews,
    sandbox_terminals,
    sandboxes,
)
from functions.api.routes import mcp as mcp_route
from functions.api.service import Callers, Service

logger = Logger()
tracer = Tracer()
metrics = Metrics()


def build(service: Service) -> Gate:
    """The API over its use cases."""
    gate = Gate(service)
    sandbox_nouns = (sandboxes, sandbox_files, sandbox_terminals, sandbox_previews, images)
    for noun in (health, documents, logins, objects, agentruns, *sandbox_nouns, mcp_route):
        noun.add(gate)
    return gate


@cache
def _gate() -> Gate:
    ports = core(Environment)
    shelf = Shelf(ports.journal, ports.payloads, ports.clock, ports.allowed)
    return build(
        Service.over(
            shelf,
            ports.vault,
            ports.kicks,
            ports.schedules,
            ports.ids,
            bell=ports.bell,
            transfers=ports.transfers,
            wires=ports.endpoints.link_ws,
            address=ports.endpoints.http,
            callers=Callers(ports.identities, ports.judge, ports.key_rate),
            images=ports.images,
            gpus=ports.gpus,
            watch_window_s=float(ports.environment["NODUS_WATCH_WINDOW"]),
        )
    )


@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answers one request (payload format 2.0)."""
    gate = _gate()
    answer = mcp.answer(gate, event, context) if mcp.is_meant(event) else gate.answer(event, context)
    log(gate, event, answer)
    return answer


def log(gate: Gate, event: dict[str, Any], answer: dict[str, Any]) -> None:
    """One line per call: who, what, how it went; never the query, the body or the key."""
    status = answer["statusCode"]
    metrics.add_metric(name=f"Answered{status // 100}xx", unit=MetricUnit.Count, value=1)
    facts = {name: value for name, value in gate.facts.items() if name != "error"}
    call = {
        "method": event["requestContext"]["http"]["method"],
        "path": sandbox_previews.shown_path(event),
        "status": status,
    }
    if "error" in gate.facts:
        logger.error("failed", **call, **facts, exc_info=gate.facts["error"])
    else:
        logger.info("answered", **call, **facts)
