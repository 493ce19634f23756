"""Starts what is due."""

from typing import Any

from aws_lambda_powertools import Logger

logger = Logger()


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Finds nothing due."""
    logger.info("ended")
    return {}
