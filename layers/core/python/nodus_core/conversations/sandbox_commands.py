"""Commands of people in Sandboxes of their own and in those of runs: each is run at most once.

The history of a Sandbox's commands outlives its machine. In a run's sandbox they run beside the agent's own, and are
no steps of the run (NOD-445).

placed (the machine runs) ──► taken by the daemon ──► ended, with its output
        └── the machine goes first ──► it was not run, or what became of it is not known; it is never run again (NOD-443)
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.asking import Asking
from nodus_core.conversations.bells import ring
from nodus_core.conversations.commands import canonical, digest_of, end, pending
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.listing import PageOf, token, untoken
from nodus_core.conversations.machines_seen import MachinesSeen, Seen
from nodus_core.conversations.races import look_again
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal import keys
from nodus_core.journal.changes import micros
from nodus_core.journal.codec import from_row
from nodus_core.journal.receipts import binds
from nodus_core.kernel import ids
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import SANDBOX, Receipt
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import OPEN_COMMANDS, CommandState
from nodus_core.kernel.times import stamp
from nodus_core.resources.durations import duration
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.sandbox_command import SandboxCommand
from nodus_core.sandboxes.outcome import why_not_run, word_of
from nodus_core.sandboxes.tools import DEFAULT_TIMEOUT_S, Order, persons_order

KIND = "SandboxCommand"

Shown = dict[str, Any]


@dataclass(frozen=True)
class SandboxCommands:
    """Use cases of commands. Each raises `Refusal` `NotFound` for what is not there."""

    shelf: Shelf
    kicks: Kicks
    asking: Asking

    def run(self, place: Place, name: str, asked: SandboxCommand) -> tuple[Shown, bool]:
        """Places a command; returns it, and whether the same request had placed it before (NOD-442).

        Raises `Refusal`: `SandboxNotRunning` while its machine does not run (NOD-438), `IdempotencyKeyConflict`,
        `Conflict` after too many lost races.
        """

        def attempt() -> tuple[Shown, bool]:
            seen = self._machines.to_change(place, name)
            order, key, now = self._order(seen, asked), _receipt_key(seen, asked), self.shelf.clock.now()
            kept = self.shelf.journal.receipt(key)
            if kept is not None and binds(kept, now):
                check_same(seen, kept, order, asked.request_key, "command")
                return self._shown(seen, self._find(seen, json.loads(kept.facts)["id"])), True
            machine = self._machines.running(seen)
            command = self.pending(seen, machine, ids.persons_command, order, now)
            receipt = Receipt(key, command.digest, json.dumps({"id": command.id}), now)
            self.place(seen, command, receipt)
            ring(self.asking.bell, machine)
            return self._shown(seen, command), False

        return look_again(SANDBOX, name, attempt)

    def get(self, place: Place, name: str, command: str) -> Shown:
        """One command as it stands."""
        seen = self._machines.find(place, name)
        return self._shown(seen, self._find(seen, command))

    def page(self, place: Place, name: str, limit: int, after: str | None) -> PageOf:
        """The newest commands first, those of earlier machines behind (NOD-437). `BadRequest` for a bad token."""
        seen = self._machines.find(place, name)
        ordinal, behind = _position(after, seen)
        found: list[Shown] = []
        while ordinal >= seen.first:
            page = self.shelf.journal.store.query(
                keys.sandbox_partition(seen.machine(ordinal)),
                _PREFIX,
                after=behind,
                limit=limit - len(found),
                newest_first=True,
            )
            found += [self._shown(seen, from_row(Command, row)) for row in page.rows]
            if page.after is not None:
                return PageOf(found, token(f"{ordinal} {page.after}"))
            ordinal, behind = ordinal - 1, None
            if len(found) >= limit and ordinal >= seen.first:
                return PageOf(found, token(f"{ordinal} "))
        return PageOf(found, None)

    def of_its_machine(self, place: Place, name: str, command: str) -> tuple[Command, Sandbox]:
        """A command, and the machine that it ran in, which runs still.

        Raises `Refusal` `OutputGone` when that machine is gone, and what it had put out with it (NOD-440).
        """
        seen = self._machines.find(place, name)
        row = self._find(seen, command)
        if row.sandbox != seen.current:
            message = (
                f"command {command} ran in a machine of Sandbox {name!r} that is gone, and its output with it"
            )
            raise Refusal("OutputGone", message, kind=SANDBOX, name=name)
        return row, self._machines.running(seen)

    def cancel(self, place: Place, name: str, command: str) -> tuple[Shown, bool]:
        """Ends a command, and neither the sandbox nor another command (NOD-436); whether it had ended already."""

        def attempt() -> tuple[Shown, bool]:
            seen = self._machines.to_change(place, name)
            ended = not self.end(self._find(seen, command))
            return self._shown(seen, self._find(seen, command)), ended

        return look_again(SANDBOX, name, attempt)

    def end(self, row: Command) -> bool:
        """Asks for the end of a command that has not ended; returns whether it had not. Raises `ConditionFailed`."""
        sandboxes = self.shelf.journal.sandboxes
        if row.state not in OPEN_COMMANDS:
            return False
        end(sandboxes, row, self.shelf.clock.now())
        machine = self.shelf.journal.sandbox(row.sandbox)
        if machine is not None:
            ring(self.asking.bell, machine)
        return True

    @cached_property
    def _machines(self) -> MachinesSeen:
        return MachinesSeen(self.shelf)

    def _order(self, seen: Seen, asked: SandboxCommand) -> Order:
        machine = self._machines.settings(seen)
        timeout = duration(asked.timeout) if asked.timeout else None
        seconds = int(timeout.total_seconds()) if timeout else DEFAULT_TIMEOUT_S
        return persons_order(asked.command, asked.working_dir or machine.working_dir, seconds, machine.env)

    def place(self, seen: Seen, command: Command, receipt: Receipt) -> None:
        """Gives a command to the machine. Raises `ConditionFailed`."""
        machines, now = self.shelf.journal.machines, self.shelf.clock.now()
        if seen.is_a_runs:
            machines.place_beside(command, receipt, now)
        else:
            machines.place(seen.head, command, receipt, now)
            self.kicks.nudge(seen.owner.uid)

    def pending(
        self, seen: Seen, machine: Sandbox, named: Callable[[int, str], str], order: Order, now: datetime
    ) -> Command:
        """A row that is to be placed, its request kept; `named` makes its id of a moment and a digest."""
        name = named(micros(now), ids.digest(self.shelf.journal.writer.ids.fresh("command")))
        request = self.shelf.payloads.put(seen.scope, canonical(order.request))
        return pending(machine.id, name, order, request, now)

    def row(self, seen: Seen, name: str) -> Command | None:
        """The row of that id, of whichever machine."""
        found = (self.shelf.journal.command(seen.machine(ordinal), name) for ordinal in seen.ordinals)
        return next((row for row in found if row is not None), None)

    def _find(self, seen: Seen, command: str) -> Command:
        """The command of that id, of whichever machine. Raises `Refusal` `NotFound`."""
        row = self.row(seen, command) if ids.is_persons_command(command) else None
        if row is not None:
            return row
        message = (
            f"Sandbox {seen.name!r} has no command {command[:80]!r}; nodus sandbox commands NAME lists them"
        )
        raise Refusal("NotFound", message, kind=KIND, name=command[:80])

    def _shown(self, seen: Seen, row: Command) -> Shown:
        return self.view(KIND, seen, row, _spec)

    def view(self, kind: str, seen: Seen, row: Command, spec: Callable[[Shown], Shown]) -> Shown:
        """A row as people see it; `spec` makes of its request what they had asked for."""
        with self.shelf.reading(seen.owner):
            request = json.loads(self.shelf.payloads.get(seen.scope, row.request))
            result = self.shelf.payloads.get(seen.scope, row.result) if row.result else "{}"
        state, code = _state(row, result)
        why = why_not_run(result) if row.state is CommandState.DONE else None
        moments = {"startedAt": row.claimed_at, "finishedAt": row.finished_at}
        return {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {
                "name": row.id,
                "namespace": seen.owner.key.project,
                "creationTimestamp": stamp(row.created_at),
            },
            "spec": spec(request),
            "status": {
                "state": state,
                **({} if code is None else {"exitCode": code}),
                **({} if why is None else {"message": why}),
                **{word: stamp(at) for word, at in moments.items() if at is not None},
            },
        }


def _state(row: Command, result: str) -> tuple[str, int | None]:
    match row.state:
        case CommandState.PENDING:
            return "Pending", None
        case CommandState.CLAIMED:
            return "Running", None
        case CommandState.WITHDRAWN:
            return "Cancelled", None
        case CommandState.LOST:
            return "Lost", None
        case CommandState.DONE:
            return word_of(result)


_PREFIX = keys.command_key("", ids.PERSONS).sk


def check_same(seen: Seen, kept: Receipt, order: Order, key: str, what: str) -> None:
    """Raises `Refusal` `IdempotencyKeyConflict` where a request key was used for something else."""
    if kept.digest != digest_of(order):
        message = f"request key {key!r} stands for another {what} in Sandbox {seen.name!r}"
        raise Refusal("IdempotencyKeyConflict", message, kind=SANDBOX, name=seen.name)


def _spec(request: Shown) -> Shown:
    return {
        "command": request["command"],
        "workingDir": request["cwd"],
        "timeout": f"{request['timeoutS']}s",
    }


def _receipt_key(seen: Seen, asked: SandboxCommand) -> str:
    return ids.digest(
        json.dumps([seen.name if seen.is_a_runs else seen.owner.uid, "commands", asked.request_key])
    )


def _position(after: str | None, seen: Seen) -> tuple[int, str | None]:
    """Of which machine, and behind which row, a page goes on. Raises `Refusal` `BadRequest`."""
    if after is None:
        return seen.last, None
    ordinal, _, behind = untoken(after).partition(" ")
    if (
        not ordinal.isdecimal()
        or int(ordinal) not in seen.ordinals
        or (behind and not behind.startswith(_PREFIX))
    ):
        raise Refusal("BadRequest", "continue is not a token that a list of commands gave")
    return int(ordinal), behind or None
