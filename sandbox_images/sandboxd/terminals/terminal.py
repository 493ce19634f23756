"""One terminal and those who watch it.

Each side says how much it has of the other's bytes, and gives the next ones again until it hears that they came: what
is lost, doubled or late on the way changes nothing. One message at a time is on its way to a client, so none overtakes.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandboxd.execcore.spec import CommandUser
from sandboxd.terminals.frames import MOST_DATA_BYTES, Said, shown
from sandboxd.terminals.pseudo import Pseudo
from sandboxd.terminals.scrollback import Scrollback

MOST_WATCHING = 8
MOST_CLIENTS = 64
"""Clients of which is known how much they have typed, so that nothing is typed twice."""

BEHIND_BYTES = 128 * 1024
"""A client that is so far behind makes the program wait; what is kept is more, so nothing is lost for it."""

AGAIN_S = 2.0
MOST_TIMES = 5
"""How often a message is sent that nobody confirms."""

SILENT_S = 75.0
"""A client that says nothing for so long is gone; an idle one says something every 20 s."""

ECHO_S = 0.01
"""An answer to typed text waits so long for its echo, to take it along."""

Send = Callable[[str, dict[str, Any]], None]


@dataclass
class _Watching:
    """A connection of a client: up to where it has the output, and what is on its way to it."""

    client: str
    number: int = -1
    has: int = 0
    sent: int = 0
    sent_s: float = 0.0
    heard_s: float = 0.0
    times: int = 0
    owed: bool = False
    told_end: bool = False

    @property
    def waits(self) -> bool:
        """Whether something is on its way that has not been confirmed."""
        return self.sent > self.has or (self.told_end and self.times > 0)


class Terminal:
    """A pseudo-terminal, its output, and its clients.

    Args:
        send: takes a connection and the message for it.
        later: calls something after so many seconds.
    """

    def __init__(
        self,
        user: CommandUser,
        size: tuple[int, int],
        send: Send,
        later: Callable[[float, Callable[[], None]], Any],
    ) -> None:
        self.pseudo = Pseudo(user, size, self._put_out)
        self._send = send
        self._later = later
        self._output = Scrollback()
        self._typed: OrderedDict[str, int] = OrderedDict()
        self._watching: dict[str, _Watching] = {}
        self._size = size
        self._end: Mapping[str, Any] | None = None

    @property
    def is_watched(self) -> bool:
        return bool(self._watching)

    def hear(self, connection: str, said: Said) -> None:
        """Takes a client's message, and answers it."""
        watching = self._of(connection, said)
        if said.number <= watching.number:
            return
        watching.number, watching.heard_s = said.number, time.monotonic()
        if said.size is not None and said.size != self._size:
            self._size = said.size
            self.pseudo.resize(said.size)
        self._type(said)
        if said.after > watching.has:
            watching.has, watching.times = min(said.after, self._output.end), 0
        watching.owed = watching.owed or said.asks or bool(said.data)
        if said.data and not watching.waits:
            self._later(ECHO_S, lambda: self._show(connection))
        else:
            self._show(connection)
        self._flow()

    def leave(self, connection: str) -> None:
        """A connection is gone."""
        self._watching.pop(connection, None)
        self._flow()

    def ended(self, how: Mapping[str, Any]) -> None:
        """The program has ended: its last output, and how, are shown to all."""
        self.pseudo.drain()
        self.pseudo.close()
        self._end = how
        for connection in tuple(self._watching):
            self._show(connection)

    def look(self) -> None:
        """From time to time: sends again what was not confirmed, and forgets those who are gone."""
        now = time.monotonic()
        for connection, watching in tuple(self._watching.items()):
            overdue = watching.waits and now - watching.sent_s >= AGAIN_S
            if now - watching.heard_s >= SILENT_S or (overdue and watching.times >= MOST_TIMES):
                del self._watching[connection]
            elif overdue:
                self._tell(connection, watching)
        self._flow()

    def _of(self, connection: str, said: Said) -> _Watching:
        """The connection; a new one takes the place of its client's former one, else of the quietest one."""
        found = self._watching.get(connection)
        if found is not None and found.client == said.client:
            return found
        former = [name for name, other in self._watching.items() if other.client == said.client]
        if not former and len(self._watching) >= MOST_WATCHING:
            former = [min(self._watching, key=lambda name: self._watching[name].heard_s)]
        for name in (*former, connection):
            self._watching.pop(name, None)
        made = self._watching[connection] = _Watching(said.client, has=min(said.after, self._output.end))
        made.sent = made.has
        return made

    def _type(self, said: Said) -> None:
        """Types what is new of a client's text; what comes before its turn is given again by the client."""
        had = self._typed.pop(said.client, said.at)
        if said.at <= had < said.at + len(said.data):
            had += self.pseudo.write(said.data[had - said.at :])
        self._typed[said.client] = had
        while len(self._typed) > MOST_CLIENTS:
            self._typed.popitem(last=False)

    def _put_out(self, data: bytes) -> None:
        self._output.feed(data)
        for connection in tuple(self._watching):
            self._show(connection)
        self._flow()

    def _show(self, connection: str) -> None:
        """Sends what a client lacks, or the answer that it is owed, unless something is on its way to it."""
        watching = self._watching.get(connection)
        if watching is None or watching.waits:
            return
        news = watching.has < self._output.end or (self._end is not None and not watching.told_end)
        if news or watching.owed:
            self._tell(connection, watching)

    def _tell(self, connection: str, watching: _Watching) -> None:
        at, data = self._output.read(watching.has, MOST_DATA_BYTES)
        end = self._end if at + len(data) == self._output.end else None
        watching.sent, watching.sent_s, watching.owed = at + len(data), time.monotonic(), False
        watching.times += 1
        watching.told_end = end is not None
        self._send(
            connection,
            shown(
                number=watching.number, taken=self._typed.get(watching.client, 0), at=at, data=data, end=end
            ),
        )
        if not data and end is None:
            watching.times = 0

    def _flow(self) -> None:
        """Lets the program go on unless somebody who is there is far behind."""
        now = time.monotonic()
        far = any(
            self._output.end - watching.has > BEHIND_BYTES and now - watching.heard_s < AGAIN_S * MOST_TIMES
            for watching in self._watching.values()
        )
        self.pseudo.read_on(not far)
