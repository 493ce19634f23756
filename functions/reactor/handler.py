"""Turns journal changes into kicks and events."""

from typing import Any

from aws_lambda_powertools import Logger

logger = Logger()


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Takes every record and does nothing with it."""
    logger.info("ended")
    return {"batchItemFailures": []}
