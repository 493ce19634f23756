"""REST over the HTTP API."""

import json
from typing import Any

from aws_lambda_powertools import Logger

logger = Logger()


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answers `GET /healthz`; every other path is not served.

    Args:
        event: an HTTP API request, payload format 2.0.
        context: Lambda's.

    Returns:
        An HTTP API response, payload format 2.0.
    """
    healthy = event.get("rawPath", "").endswith("/healthz")
    status = 200 if healthy else 404
    logger.info("answered", status=status)
    return {
        "statusCode": status,
        "headers": {"content-type": "application/json"},
        "body": json.dumps({"status": "ok" if healthy else "not found"}),
    }
