"""Advances one line."""

from typing import Any

from aws_lambda_powertools import Logger

logger = Logger()


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Ends the execution: no line is known."""
    logger.info("ended")
    return {"next": "done"}
