"""What the server says of itself: its version, and the schema of its objects."""

from __future__ import annotations

from typing import Any

from nodus._config import Settings
from nodus._kinds import API_VERSION
from nodus._transport import Reply
from nodus._wire import BlockingWire, Request

VERSION = "/version"
SCHEMA = f"/openapi/v3/apis/{API_VERSION}"
SECONDS = 15.0
MOST_BYTES = 8 * 1024 * 1024


def read(settings: Settings, path: str) -> dict[str, Any]:
    """One of them; the same addresses as those of every server that kubectl can talk to.

    Raises:
        ApiError: the server has none.
        NodusError: it cannot be reached, or what answers is something else.
    """
    headers = {"Accept": "application/json", "Authorization": f"Bearer {settings.token}"}
    wire = BlockingWire()
    try:
        reply = Reply(
            *wire.exchange(Request("GET", settings.server + path, headers, None, SECONDS, MOST_BYTES))
        )
    finally:
        wire.close()
    if reply.code >= 400:
        raise reply.error()
    return reply.json()
