"""The sandbox link: HTTP for the daemons' words, WebSocket for their bells and for terminals."""

from typing import Any

from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext
from nodus_core.bootstrap import core
from nodus_core.kernel.errors import Reason, Refusal, RetryableError

from functions.link import bell, words
from functions.link.env import Environment

logger = Logger()
tracer = Tracer()

MOST_LOGGED = 200

CODES: dict[Reason, int] = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "NotFound": 404,
    "Conflict": 409,
    "Gone": 410,
}
"""Of the words that the link refuses in; any other one is a fault of ours."""


@tracer.capture_lambda_handler(capture_response=False)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answers one call of a daemon, or takes what a connection says."""
    status, body = _answer(event)
    if event["requestContext"].get("eventType") == "MESSAGE":
        body = ""  # whoever has said it gets no answer, and says it again
    sandbox, verb = _about(event)
    logger.info("answered", status=status, sandbox=sandbox, verb=verb)
    return {"statusCode": status, "headers": {"content-type": "application/json"}, "body": body}


def _about(event: dict[str, Any]) -> tuple[str, str]:
    """Which sandbox said what, as far as it can be told: a stranger's words are cut."""
    context = event["requestContext"]
    if "connectionId" in context:
        query: dict[str, str] = event.get("queryStringParameters") or {}
        verb, sandbox = str(context.get("eventType")).lower(), query.get("sandbox", "")
    else:
        sandbox, verb = words.addressed(event)
    return sandbox[:MOST_LOGGED], verb[:MOST_LOGGED]


def _answer(event: dict[str, Any]) -> tuple[int, str]:
    try:
        if "connectionId" in event["requestContext"]:
            ports = core(Environment)
            return 200, bell.hear(ports.link, ports.relay, event)
        return 200, words.hear(core(Environment).link, event)
    except Refusal as refusal:
        if refusal.reason not in CODES:
            raise
        return CODES[refusal.reason], words.to_json({"error": refusal.reason, "message": refusal.message})
    except RetryableError as error:
        logger.warning("try again: %s", error)
        return 503, words.to_json({"error": "ServiceUnavailable", "message": "try again"})
