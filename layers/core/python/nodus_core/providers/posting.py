"""What sending one body can give, said without any SDK, so that importing this is quick."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from nodus_core.providers import redaction


@dataclass(frozen=True)
class Timeouts:
    """Seconds: `connect` until a connection stands, `reply` from sending to the last byte of the answer."""

    connect: float = 10
    reply: float = 600


@dataclass(frozen=True)
class Answer:
    """A whole answer. `headers` finds names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body for reading by people; what is no UTF-8 shows as U+FFFD."""
        return self.body.decode("utf-8-sig", errors="replace")

    def without(self, key: str) -> "Answer":
        """The answer with another text wherever the key stands in it, in whatever spelling."""
        kept = {name.lower(): redaction.redact(value, key) for name, value in self.headers.items()}
        return Answer(self.status, kept, redaction.redact_bytes(self.body, key))


class NeverSendable(Exception):
    """The request was not sent, and never can be: where it should go is not allowed, or not who it should be."""


class ConnectionFailure(Exception):
    """There was no whole answer. `sent` is False when the request certainly did not reach the provider."""

    def __init__(self, cause: BaseException, *, sent: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.sent = sent


class Sender(Protocol):
    """A connection pool to one endpoint; several threads may send at once."""

    def send(self, body: bytes) -> Answer:
        """Sends a body and returns the answer, whatever its status. Raises: ConnectionFailure."""
        ...

    def close(self) -> None:
        """Closes the idle connections."""
        ...
