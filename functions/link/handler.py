"""The sandbox link, over HTTP and WebSocket."""

from typing import Any

from aws_lambda_powertools import Logger

logger = Logger()


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Refuses every call: no sandbox is known."""
    logger.info("ended")
    return {"statusCode": 503}
