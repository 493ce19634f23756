"""Commits on who watches terminals.

ticket ──admit (once, in time)──► connection ──leave──► gone
"""

from datetime import datetime, timedelta

from nodus_core.journal.keys import ticket_key, wire_key
from nodus_core.journal.store import Absent, AtLeast, Delete, Put
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.connections import Connection, Ticket
from nodus_core.kernel.times import stamp

KEPT = timedelta(hours=3)
"""After which the table may remove the row of a connection: API Gateway ends every connection after two hours."""


class Terminals:
    """Each commit raises `ConditionFailed`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def issue(self, ticket: Ticket) -> None:
        """Somebody may connect. Condition: there is no such ticket yet."""
        row = stored(ticket_key(ticket.hash), ticket, ttl=_ttl(ticket.expires_at))
        self._writer.commit("issue-ticket", Put(row, when=Absent()))

    def admit(self, ticket: Ticket, connection: Connection, now: datetime) -> None:
        """Somebody has connected; the ticket is used up. Condition: it was not, and its time is not over."""
        self._writer.commit(
            "admit-watcher",
            Delete(ticket_key(ticket.hash), when=AtLeast("expires_at", stamp(now))),
            connected(connection, now),
        )

    def leave(self, connection: str) -> None:
        """A connection is gone, or was never there: no condition."""
        self._writer.commit("leave-wire", Delete(wire_key(connection)))


def connected(connection: Connection, now: datetime) -> Put:
    """The operation that keeps whose a connection is."""
    return Put(stored(wire_key(connection.id), connection, ttl=_ttl(now)))


def _ttl(since: datetime) -> int:
    return int((since + KEPT).timestamp())
