"""Turns journal changes into kicks and events, and takes up lines whose execution or sandbox has died."""

from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext
from nodus_core.bootstrap import core
from nodus_core.kernel.errors import RetryableError

from functions.reactor.env import Environment

logger = Logger()
tracer = Tracer()
metrics = Metrics()


@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Stream records in, those that failed out; or one event of Step Functions or ECS."""
    if "Records" in event:
        failures = [record for record in event["Records"] if not _taken(record)]
        logger.info("reacted", records=len(event["Records"]), failed=len(failures))
        return {"batchItemFailures": [{"itemIdentifier": _sequence(record)} for record in failures]}
    _event(event)
    logger.info("reacted", source=event.get("source"))
    return {}


def _taken(record: dict[str, Any]) -> bool:
    try:
        core(Environment).reactions.row_changed(record["dynamodb"]["NewImage"])
    except RetryableError as error:
        logger.warning("record is tried again: %s", error)
        return False
    return True


def _event(event: dict[str, Any]) -> None:
    detail: dict[str, Any] = event["detail"]
    match event["source"]:
        case "aws.states":
            core(Environment).reactions.line_died(detail["name"])
        case "aws.ecs":
            reason = detail.get("stoppedReason") or detail.get("stopCode") or "its task has stopped"
            core(Environment).reactions.task_stopped(detail.get("startedBy", ""), reason)
        case source:
            logger.warning("an event of %s means nothing to the reactor", source)


def _sequence(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])
