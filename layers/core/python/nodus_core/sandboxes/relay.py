"""Terminals between people and daemons: passes on what one says to the other (docs/protocols.md §2, terminals).

Nothing is kept here, and anything may be lost: both sides say again what the other has not confirmed. Whose a
connection is says its row alone, never a message: so nobody reaches a terminal of another sandbox.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock, Wires
from nodus_core.kernel.connections import Connection
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState

MOST_FRAME_BYTES = 32 * 1024
"""A message is one frame of API Gateway's."""

OF_PEOPLE = ("client", "n", "after", "ask", "size", "at", "data")
OF_DAEMONS = ("n", "input", "at", "data", "end")
"""Fields of the messages of either side; what else stands in one is not passed on."""

WORK_NOTED = timedelta(seconds=20)
"""How often it is noted that somebody types: a Sandbox is idle after minutes."""

_MOST_KNOWN = 2000

log = logging.getLogger(__name__)

Frame = Mapping[str, Any]


@dataclass(frozen=True)
class Relay:
    """Use cases of connections that carry terminals."""

    journal: Journal
    wires: Wires
    clock: Clock
    _known: OrderedDict[str, Connection] = field(default_factory=OrderedDict[str, Connection], repr=False)

    def admit(self, ticket: str, connection: str) -> None:
        """Somebody connects with a ticket, which is used up. Raises `Refusal` `Unauthorized`."""
        found = self.journal.ticket(digest(ticket))
        if found is None:
            raise _no_ticket()
        place = Connection(connection, found.sandbox, found.terminal)
        try:
            self.journal.terminals.admit(found, place, self.clock.now())
        except ConditionFailed:
            raise _no_ticket() from None

    def hear(self, connection: str, text: str) -> None:
        """Passes a message on; one that is none, or has nowhere to go, is dropped."""
        message = _message(text)
        if message is None or message.get("action") != "terminal":
            return  # a ping, which only keeps the connection open
        speaker, frame = self._whose(connection), message.get("frame")
        if speaker is None or not isinstance(frame, dict):
            return
        if speaker.terminal is None:
            self._to_person(speaker, message, _only(frame, OF_DAEMONS))
        else:
            self._to_daemon(speaker, speaker.terminal, _only(frame, OF_PEOPLE))

    def left(self, connection: str) -> None:
        """A connection has ended: the daemon need not wait for it any more."""
        gone = self._whose(connection)
        self._known.pop(connection, None)
        if gone is None:
            return
        self.journal.terminals.leave(connection)
        if gone.terminal is not None:
            self._tell_gone(gone)

    def _to_person(self, daemon: Connection, message: Frame, frame: Frame) -> None:
        """What a daemon shows goes to a connection that watches this very terminal of its own sandbox."""
        target = self._whose(str(message.get("to")))
        if (
            target is None
            or target.sandbox != daemon.sandbox
            or target.terminal is None
            or target.terminal != message.get("terminal")
        ):
            log.warning("sandbox %s sends to a connection that is not its terminal's", daemon.sandbox)
            return
        if not self.wires.post(target.id, _text(frame)):
            self.left(target.id)

    def _to_daemon(self, person: Connection, terminal: str, frame: Frame) -> None:
        sandbox = self.journal.sandbox(person.sandbox)
        if sandbox is None or sandbox.state is not SandboxState.RUNNING or sandbox.connection is None:
            return  # the client asks the API what has become of it
        if frame.get("data"):
            self._note_work(sandbox)
        self.wires.post(sandbox.connection, _text({"terminal": terminal, "from": person.id, "frame": frame}))

    def _tell_gone(self, person: Connection) -> None:
        sandbox = self.journal.sandbox(person.sandbox)
        if sandbox is not None and sandbox.connection is not None:
            message = {"terminal": person.terminal, "from": person.id, "gone": True}
            self.wires.post(sandbox.connection, _text(message))

    def _note_work(self, sandbox: Sandbox) -> None:
        """What is typed is work, which keeps a Sandbox from being idle; what is shown is none (NOD-399)."""
        now = self.clock.now()
        if sandbox.worked_at is not None and now - sandbox.worked_at < WORK_NOTED:
            return
        try:
            self.journal.machines.works(sandbox.id, now)
        except ConditionFailed:
            return  # it has stopped meanwhile

    def _whose(self, connection: str) -> Connection | None:
        found = self._known.get(connection) or self.journal.connection(connection)
        if found is not None:
            self._known[connection] = found
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return found


def _message(text: str) -> Frame | None:
    if len(text) > MOST_FRAME_BYTES:
        return None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _only(frame: Frame, names: tuple[str, ...]) -> Frame:
    return {name: frame[name] for name in names if name in frame}


def _text(message: Frame) -> str:
    return json.dumps(message, separators=(",", ":"))


def _no_ticket() -> Refusal:
    return Refusal("Unauthorized", "the ticket is not, or no longer, good: ask for another one")
