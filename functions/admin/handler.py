"""Organizations, projects, keys, templates."""

from typing import Any

from aws_lambda_powertools import Logger

logger = Logger()


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Knows no operation."""
    logger.info("ended")
    return {"error": "UnknownOperation"}
