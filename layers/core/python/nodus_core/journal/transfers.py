"""The port of contents on their way into a sandbox or out of it: too large for a call, and kept for a day at most."""

from typing import Protocol

from nodus_core.journal.payloads import Scope

ADDRESS_S = 900
"""Seconds for which an address works; what has begun by then goes on."""


class Transfers(Protocol):
    """Contents by name, below the scope of what their sandbox belongs to. Each call raises `StoreUnavailable`."""

    def address_to_put(self, scope: Scope, name: str, size: int) -> str:
        """An address to which anybody may PUT a content of exactly `size` bytes, with this `Content-Length`."""
        ...

    def address_to_get(self, scope: Scope, name: str) -> str:
        """An address from which anybody may GET it."""
        ...

    def put(self, scope: Scope, name: str, content: bytes) -> None: ...

    def get(self, scope: Scope, name: str, most: int) -> bytes | None:
        """Its first `most` bytes; None: it is not there."""
        ...

    def size(self, scope: Scope, name: str) -> int | None:
        """How many bytes it has; None: it is not there."""
        ...

    def remove(self, scope: Scope, name: str) -> None:
        """Removes it; one that is not there is fine."""
        ...
