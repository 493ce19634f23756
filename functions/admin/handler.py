"""Organizations, projects, keys, credits, templates: for the operator, who invokes it by IAM (docs/protocols.md §5)."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from nodus_core.bootstrap import core
from nodus_core.conversations.shelf import Shelf
from nodus_core.kernel.errors import Refusal

from functions.admin.env import Environment
from functions.admin.operations import Operations

logger = Logger()
tracer = Tracer()
metrics = Metrics()


@cache
def _operations() -> Operations:
    ports = core(Environment)
    return Operations.over(Shelf(ports.journal, ports.payloads, ports.clock), ports.ids)


@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Performs one operation; a refused one is answered with `error` (a word) and `message`."""
    operation = str(event.get("operation"))[:80]
    try:
        answer = _operations().perform(event)
    except Refusal as refusal:
        answer = {"error": refusal.reason, "message": refusal.message}
    metrics.add_metric(name="Operations", unit=MetricUnit.Count, value=1)
    # Never the answer: it may hold a new key.
    logger.info("performed", operation=operation, refused=answer.get("error"))
    return answer
