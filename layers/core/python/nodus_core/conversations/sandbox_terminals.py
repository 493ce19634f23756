"""Terminals that people open in sandboxes: interactive shells, one for each request key (NOD-444, decision 25).

open (a command row, like any) ──► taken by the daemon ──► its shell ends ──► its exit code
  │                                     ▲
  └── ticket (once, for a minute) ──► connection ── what is typed and shown passes the relay, and is kept nowhere
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from nodus_core.access.door import Place
from nodus_core.conversations.bells import ring
from nodus_core.conversations.machines_seen import MachinesSeen, Seen
from nodus_core.conversations.races import look_again
from nodus_core.conversations.sandbox_commands import SandboxCommands, check_same
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.receipts import binds
from nodus_core.kernel import ids
from nodus_core.kernel.connections import Ticket
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import SANDBOX, Receipt
from nodus_core.kernel.sandboxes import Command
from nodus_core.kernel.states import OPEN_COMMANDS, CommandState
from nodus_core.kernel.times import stamp
from nodus_core.resources.sandbox_terminal import SandboxTerminal
from nodus_core.sandboxes.tools import TERMINAL, Order

KIND = "SandboxTerminal"

MOST_OPEN = 8
"""Terminals of one sandbox whose shells have not ended; its daemon holds the same bound, whatever races here."""

TICKET_LIVES_S = 60
"""Seconds in which a ticket must be used."""

READ_AFTER = timedelta(minutes=5)
"""How long after its end a terminal's last output can still be read from its daemon."""

_TICKET_BYTES = 32

Shown = dict[str, Any]


@dataclass(frozen=True)
class SandboxTerminals:
    """Use cases of terminals. Each raises `Refusal` `NotFound` for what is not there.

    `address` is that of the WebSocket API, `entropy` gives random bytes.
    """

    shelf: Shelf
    commands: SandboxCommands
    address: str
    entropy: Callable[[int], str] = field(default=secrets.token_urlsafe, repr=False)

    def open(self, place: Place, name: str, asked: SandboxTerminal) -> tuple[Shown, bool]:
        """Opens a terminal, with a ticket to connect to it; returns whether the same request had opened it before.

        Raises `Refusal`: `SandboxNotRunning` (NOD-438), `TooManyRequests` when enough are open,
        `IdempotencyKeyConflict`, `Conflict` after too many lost races.
        """

        def attempt() -> tuple[Shown, bool]:
            seen, now = self._machines.to_change(place, name), self.shelf.clock.now()
            order, key = self._order(seen, asked), _receipt_key(seen, asked)
            kept = self.shelf.journal.receipt(key)
            if kept is not None and binds(kept, now):
                check_same(seen, kept, order, asked.request_key, "terminal")
                return self._with_ticket(seen, self._find(seen, kept.facts)), True
            machine = self._machines.running(seen)
            self._check_room(seen, machine.id)
            terminal = self.commands.pending(seen, machine, ids.terminal_id, order, now)
            self.commands.place(seen, terminal, Receipt(key, terminal.digest, terminal.id, now))
            ring(self.commands.asking.bell, machine)
            return self._with_ticket(seen, terminal), False

        return look_again(SANDBOX, name, attempt)

    def get(self, place: Place, name: str, terminal: str) -> Shown:
        """One terminal as it stands."""
        seen = self._machines.find(place, name)
        return self._shown(seen, self._find(seen, terminal))

    def all_open(self, place: Place, name: str) -> list[Shown]:
        """The terminals that are open, the oldest first."""
        seen = self._machines.find(place, name)
        return [] if seen.current is None else [self._shown(seen, row) for row in self._open(seen.current)]

    def attach(self, place: Place, name: str, terminal: str) -> Shown:
        """A ticket for another connection: of somebody who comes back, or who watches, too.

        Raises `Refusal`: `SandboxNotRunning`, `Conflict` when its shell ended more than five minutes ago.
        """
        seen = self._machines.to_change(place, name)
        row = self._find(seen, terminal)
        if self._machines.running(seen).id != row.sandbox or not self._is_there(row):
            message = f"terminal {terminal} of Sandbox {name!r} has ended; open another one"
            raise Refusal("Conflict", message, kind=KIND, name=terminal)
        return self._with_ticket(seen, row)

    def close(self, place: Place, name: str, terminal: str) -> tuple[Shown, bool]:
        """Ends a terminal's shell and all that runs in it; returns whether it had ended already."""

        def attempt() -> tuple[Shown, bool]:
            seen = self._machines.to_change(place, name)
            row = self._find(seen, terminal)
            ended = not self.commands.end(row)
            return self._shown(seen, self._find(seen, terminal)), ended

        return look_again(SANDBOX, name, attempt)

    @cached_property
    def _machines(self) -> MachinesSeen:
        return MachinesSeen(self.shelf)

    def _order(self, seen: Seen, asked: SandboxTerminal) -> Order:
        machine = self._machines.settings(seen)
        return Order(
            TERMINAL,
            {
                "command": asked.command,
                "cwd": asked.working_dir or machine.working_dir,
                "cols": asked.columns,
                "rows": asked.rows,
                "term": asked.term,
                "env": machine.env,
            },
        )

    def _check_room(self, seen: Seen, sandbox: str) -> None:
        if len(self._open(sandbox)) >= MOST_OPEN:
            message = (
                f"Sandbox {seen.name!r} has {MOST_OPEN} open terminals, which is all that it may have; "
                f"end one of them (nodus sandbox terminals {seen.name})"
            )
            raise Refusal("TooManyRequests", message, kind=SANDBOX, name=seen.name)

    def _open(self, sandbox: str) -> list[Command]:
        found = self.shelf.journal.open_commands(sandbox)
        return [row for row in found if row.kind == TERMINAL and row.state in OPEN_COMMANDS]

    def _find(self, seen: Seen, terminal: str) -> Command:
        """The terminal of that id, of whichever machine. Raises `Refusal` `NotFound`."""
        row = self.commands.row(seen, terminal) if ids.is_terminal(terminal) else None
        if row is not None:
            return row
        message = f"Sandbox {seen.name!r} has no terminal {terminal[:80]!r}"
        raise Refusal("NotFound", message, kind=KIND, name=terminal[:80])

    def _is_there(self, row: Command) -> bool:
        """Whether its daemon still has it."""
        if row.state is CommandState.DONE and row.finished_at is not None:
            return self.shelf.clock.now() - row.finished_at < READ_AFTER
        return row.state in OPEN_COMMANDS

    def _with_ticket(self, seen: Seen, row: Command) -> Shown:
        shown = self._shown(seen, row)
        if not self._is_there(row):
            return shown
        text, ends = self.entropy(_TICKET_BYTES), self.shelf.clock.now() + timedelta(seconds=TICKET_LIVES_S)
        self.shelf.journal.terminals.issue(Ticket(ids.digest(text), row.sandbox, row.id, ends))
        address = f"{self.address}?{urlencode({'ticket': text})}"
        shown["status"]["connect"] = {"url": address, "expiresAt": stamp(ends)}
        return shown

    def _shown(self, seen: Seen, row: Command) -> Shown:
        return self.commands.view(KIND, seen, row, _spec)


def _spec(request: Shown) -> Shown:
    return {
        **({} if request["command"] is None else {"command": request["command"]}),
        "workingDir": request["cwd"],
        "columns": request["cols"],
        "rows": request["rows"],
        "term": request["term"],
    }


def _receipt_key(seen: Seen, asked: SandboxTerminal) -> str:
    return ids.digest(json.dumps([seen.owner.uid, seen.name, "terminals", asked.request_key]))
