"""Turns journal changes into kicks and events, and takes up lines whose execution or sandbox has died."""

from datetime import datetime
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from nodus_core.aws.task_times import began_of
from nodus_core.bootstrap import core
from nodus_core.journal.ports import Event
from nodus_core.kernel.errors import NodusError, RetryableError

from functions.reactor.env import Environment

logger = Logger()
tracer = Tracer()
metrics = Metrics()

Record = dict[str, Any]


@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Stream records in, those that failed out; or one event of Step Functions, of ECS, or of a schedule of ours."""
    if "Records" in event:
        failed = _batch(event["Records"])
        metrics.add_metric(name="Heard", unit=MetricUnit.Count, value=len(event["Records"]))
        logger.info("reacted", records=len(event["Records"]), failed=len(failed))
        return {"batchItemFailures": [{"itemIdentifier": _sequence(record)} for record in failed]}
    _event(event)
    metrics.add_metric(name="Heard", unit=MetricUnit.Count, value=1)
    logger.info("reacted", source=event.get("source"))
    return {}


def _batch(records: list[Record]) -> list[Record]:
    """Kicks for all records, then the events of all; returns the records that are to be tried again."""
    failed: list[Record] = []
    events: list[tuple[Record, Event]] = []
    for record in records:
        try:
            event = core(Environment).reactions.row_changed(record["dynamodb"]["NewImage"])
        except NodusError as error:
            failed += _retried(record, error)
        else:
            events += [(record, event)] if event is not None else []
    try:
        core(Environment).reactions.tell([event for _, event in events])
    except NodusError as error:
        for record, _ in events:
            failed += _retried(record, error)
    return failed


def _retried(record: Record, error: NodusError) -> list[Record]:
    """The record, if trying again may help; else it is given up: the sweeper makes up for a lost kick."""
    if isinstance(error, RetryableError):
        logger.warning("record %s is tried again: %s", _sequence(record), error)
        return [record]
    logger.error("record %s is given up: %s", _sequence(record), error)
    return []


def _event(event: dict[str, Any]) -> None:
    detail: dict[str, Any] = event["detail"]
    match event["source"]:
        case "aws.states":
            core(Environment).reactions.line_died(detail["name"])
        case "aws.ecs":
            reason = detail.get("stoppedReason") or detail.get("stopCode") or "its task has stopped"
            began, ended = _moment(began_of(detail)), _moment(detail.get("stoppedAt"))
            task = detail["taskArn"]
            core(Environment).reactions.task_stopped(detail.get("startedBy", ""), task, reason, began, ended)
        case "nodus.schedules":
            core(Environment).reactions.deadline_came(detail["line"])
        case source:
            logger.warning("an event of %s means nothing to the reactor", source)


def _moment(text: str | None) -> datetime | None:
    """A time of an event, which ECS tells beside that of others; one that cannot be read is not known."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else None


def _sequence(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"])
