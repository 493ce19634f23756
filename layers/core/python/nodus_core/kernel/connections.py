"""Connections of the WebSocket API: a daemon's bell, and those of people who watch a terminal."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Ticket:
    """The right to connect to one terminal, once, until a moment. `hash` is the sha256 hex of the ticket's text."""

    hash: str
    sandbox: str
    terminal: str
    expires_at: datetime


@dataclass(frozen=True)
class Connection:
    """Whose an open connection is: that of a sandbox's daemon, or of somebody who watches its `terminal`.

    It never changes, and no id of a connection is given twice.
    """

    id: str
    sandbox: str
    terminal: str | None = None
