"""The WebSocket connections of sandboxes and of people: rung, and written to (docs/protocols.md §2)."""

from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated

PULL_NOW = "pull"
"""Any text frame that is no message means this."""


class WebSocketBell:
    """`Bell` and `Wires` of one WebSocket API. `client` is botocore's for the API's management address."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def ring(self, connection: str) -> bool:
        return self.post(connection, PULL_NOW)

    def post(self, connection: str, text: str) -> bool:
        with translated(f"writing to connection {connection}"):
            try:
                self._client.post_to_connection(ConnectionId=connection, Data=text.encode())
            except ClientError as error:
                if code_of(error) not in ("GoneException", "410"):
                    raise
                return False
        return True
