"""Advances one line: the task of `line.asl.json`."""

from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from nodus_core.bootstrap import core
from nodus_core.kernel.times import stamp

# Imported before the first call, when Lambda gives a whole core and nobody waits: nearly every line asks a model.
from nodus_core.providers import anthropic_sdk  # noqa: F401
from pydantic import BaseModel, ConfigDict, Field

from functions.line.env import Environment

logger = Logger()
tracer = Tracer()
metrics = Metrics()


class Order(BaseModel):
    """Input of the state: ids only (docs/protocols.md §6)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    line: str = Field(min_length=1)
    generation: int = Field(ge=1)


@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Works on the line until it must wait, or the invocation's time is nearly up."""
    order = Order.model_validate(event)
    directive = core(Environment).worker.advance(
        order.line, order.generation, lambda: context.get_remaining_time_in_millis() / 1000
    )
    metrics.add_metric(name=f"Advanced_{directive.next}", unit=MetricUnit.Count, value=1)
    # One line at the end of every call: it also ends the emulator's wait for the call's log.
    logger.info("advanced", line=order.line, generation=order.generation, next=directive.next)
    return {"next": directive.next, **({"at": stamp(directive.at)} if directive.at else {})}
