"""Events of API Gateway as functions get them (payload format 2.0, and a WebSocket API's): headers and body."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from nodus_core.kernel.errors import Refusal


def headers_of(event: Mapping[str, Any]) -> dict[str, str]:
    """The headers, their names in lower case."""
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def body_of(event: Mapping[str, Any]) -> bytes:
    """The body; API Gateway sends what is no text as base64. Raises `Refusal` `BadRequest`."""
    text = event.get("body") or ""
    try:
        return base64.b64decode(text, validate=True) if event.get("isBase64Encoded") else text.encode()
    except (binascii.Error, ValueError):
        raise Refusal("BadRequest", "the body cannot be read") from None
