"""The bell of the sandboxes' WebSocket connections (docs/protocols.md §2)."""

from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated

PULL_NOW = b"pull"
"""Any text frame means this."""


class WebSocketBell:
    """`Bell` of one WebSocket API. `client` is botocore's for the API's management address."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def ring(self, connection: str) -> bool:
        with translated(f"ringing connection {connection}"):
            try:
                self._client.post_to_connection(ConnectionId=connection, Data=PULL_NOW)
            except ClientError as error:
                if code_of(error) not in ("GoneException", "410"):
                    raise
                return False
        return True
