"""The store of archives: bytes of any number that go between it and a sandbox and never pass through a function."""

from datetime import timedelta
from typing import Protocol

from nodus_core.journal.payloads import Scope


class Archives(Protocol):
    """Archives by owner and name; they are deleted with their owner's payloads. All calls raise `StoreUnavailable`."""

    def put_url(self, scope: Scope, name: str, valid: timedelta) -> str:
        """An address to which an archive can be PUT for a while; the last one stays."""
        ...

    def get_url(self, scope: Scope, name: str, valid: timedelta) -> str:
        """An address from which anybody may GET an archive for a while."""
        ...

    def size(self, scope: Scope, name: str) -> int | None:
        """Bytes of an archive; None: there is none."""
        ...

    def delete(self, scope: Scope, name: str) -> None:
        """Deletes an archive; one that is not there is fine."""
        ...
