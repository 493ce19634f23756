"""Commands of people in Sandboxes of their own: each is run at most once, and its history outlives its machine.

placed (the machine runs) ──► taken by the daemon ──► ended, with its output
        └── the machine goes first ──► it was not run, or what became of it is not known; it is never run again (NOD-443)
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.commands import canonical, digest_of, pending
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.listing import PageOf, token, untoken
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.races import look_again
from nodus_core.conversations.shelf import Shelf, head_of, scope_of
from nodus_core.journal import keys
from nodus_core.journal.changes import micros
from nodus_core.journal.codec import from_row
from nodus_core.journal.receipts import binds
from nodus_core.kernel import ids
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import SANDBOX, Conversation, Object, Receipt
from nodus_core.kernel.sandboxes import Command
from nodus_core.kernel.states import OPEN_COMMANDS, CommandState, SandboxState
from nodus_core.kernel.times import stamp
from nodus_core.resources.durations import duration
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.sandbox_command import SandboxCommand
from nodus_core.sandboxes.outcome import output_of, word_of
from nodus_core.sandboxes.tools import DEFAULT_TIMEOUT_S, Order, exec_order

KIND = "SandboxCommand"

Shown = dict[str, Any]


@dataclass(frozen=True)
class SandboxCommands:
    """Use cases of commands. Each raises `Refusal` `NotFound` for what is not there."""

    shelf: Shelf
    kicks: Kicks

    def run(self, place: Place, name: str, asked: SandboxCommand) -> tuple[Shown, bool]:
        """Places a command; returns it, and whether the same request had placed it before (NOD-442).

        Raises `Refusal`: `SandboxNotRunning` while its machine does not run (NOD-438), `IdempotencyKeyConflict`,
        `Conflict` after too many lost races.
        """

        def attempt() -> tuple[Shown, bool]:
            obj, head = self._seen(place, name)
            order, key, now = self._order(obj, head, asked), _receipt_key(obj, asked), self.shelf.clock.now()
            kept = self.shelf.journal.receipt(key)
            if kept is not None and binds(kept, now):
                return self._again(obj, head, kept, order, asked), True
            command = self._command(obj, self._running(obj, head), order, now)
            receipt = Receipt(key, command.digest, json.dumps({"id": command.id}), now)
            self.shelf.journal.machines.place(head, command, receipt, now)
            self.kicks.nudge(obj.uid)
            return self._shown(obj, command), False

        return look_again(SANDBOX, name, attempt)

    def get(self, place: Place, name: str, command: str) -> Shown:
        """One command as it stands."""
        obj, head = self._seen(place, name)
        return self._shown(obj, self._find(obj, head, command))

    def page(self, place: Place, name: str, limit: int, after: str | None) -> PageOf:
        """The newest commands first, those of earlier machines behind (NOD-437). `BadRequest` for a bad token."""
        obj, head = self._seen(place, name)
        ordinal, behind = _position(after, head.sandboxes)
        found: list[Shown] = []
        while ordinal > 0:
            page = self.shelf.journal.store.query(
                keys.sandbox_partition(ids.sandbox_id(obj.uid, ordinal)),
                _PREFIX,
                after=behind,
                limit=limit - len(found),
                newest_first=True,
            )
            found += [self._shown(obj, from_row(Command, row)) for row in page.rows]
            if page.after is not None:
                return PageOf(found, token(f"{ordinal} {page.after}"))
            ordinal, behind = ordinal - 1, None
            if len(found) >= limit and ordinal > 0:
                return PageOf(found, token(f"{ordinal} "))
        return PageOf(found, None)

    def output(self, place: Place, name: str, command: str) -> str:
        """All that an ended command has put out, as far as its sandbox keeps it (docs/limits.md).

        Raises `Refusal`: `OutputNotReady` while it runs, `OutputGone` when its machine is gone (NOD-440).
        """
        obj, head = self._seen(place, name)
        row = self._find(obj, head, command)
        if row.sandbox != head.sandbox:
            message = (
                f"command {command} ran in a machine of Sandbox {name!r} that is gone, and its output with it"
            )
            raise Refusal("OutputGone", message, kind=SANDBOX, name=name)
        if row.state is not CommandState.DONE or row.result is None:
            message = f"command {command} of Sandbox {name!r} has not ended; ask again when it has"
            raise Refusal("OutputNotReady", message, kind=SANDBOX, name=name)
        scope = scope_of(obj)
        if row.told is not None:
            return self.shelf.payloads.get(scope, row.told)
        return output_of(self.shelf.payloads.get(scope, row.result))

    def cancel(self, place: Place, name: str, command: str) -> tuple[Shown, bool]:
        """Ends a command, and neither the sandbox nor another command (NOD-436); whether it had ended already."""

        def attempt() -> tuple[Shown, bool]:
            obj, head = self._seen(place, name)
            row, sandboxes = self._find(obj, head, command), self.shelf.journal.sandboxes
            if row.state not in OPEN_COMMANDS:
                return self._shown(obj, row), True
            if row.state is CommandState.PENDING:
                sandboxes.withdraw_command(row.sandbox, row.id, self.shelf.clock.now())
            else:
                sandboxes.cancel_command(row.sandbox, row.id)
            self.kicks.nudge(obj.uid)
            return self._shown(obj, self._find(obj, head, command)), False

        return look_again(SANDBOX, name, attempt)

    def _seen(self, place: Place, name: str) -> tuple[Object, Conversation]:
        """The Sandbox of that name, and the head of its line."""
        obj = self.shelf.find(place, SANDBOX, name)
        with self.shelf.reading(obj):
            return obj, head_of(self.shelf.journal, obj)

    def _order(self, obj: Object, head: Conversation, asked: SandboxCommand) -> Order:
        with self.shelf.reading(obj):
            machine = Machine.from_json(self.shelf.payloads.get(scope_of(obj), head.context))
        timeout = duration(asked.timeout) if asked.timeout else None
        seconds = int(timeout.total_seconds()) if timeout else DEFAULT_TIMEOUT_S
        return exec_order(asked.command, asked.working_dir or machine.working_dir, seconds, machine.env)

    def _running(self, obj: Object, head: Conversation) -> str:
        """The machine that runs. Raises `Refusal` `SandboxNotRunning`."""
        machine = self.shelf.journal.sandbox(head.sandbox) if head.sandbox and not head.paused else None
        if machine is None or machine.state is not SandboxState.RUNNING or head.stop is not None:
            name, phase = obj.key.name, obj.status.get("phase", "Pending")
            message = f"Sandbox {name!r} is {phase} and takes no command; wait until it is Running (nodus start sandbox/{name})"
            raise Refusal("SandboxNotRunning", message, kind=SANDBOX, name=name)
        return machine.id

    def _command(self, obj: Object, sandbox: str, order: Order, now: datetime) -> Command:
        name = ids.persons_command(micros(now), ids.digest(self.shelf.journal.writer.ids.fresh("command")))
        request = self.shelf.payloads.put(scope_of(obj), canonical(order.request))
        return pending(sandbox, name, order, request, now)

    def _again(
        self, obj: Object, head: Conversation, kept: Receipt, order: Order, asked: SandboxCommand
    ) -> Shown:
        if kept.digest != digest_of(order):
            message = (
                f"request key {asked.request_key!r} stands for another command in Sandbox {obj.key.name!r}"
            )
            raise Refusal("IdempotencyKeyConflict", message, kind=SANDBOX, name=obj.key.name)
        return self._shown(obj, self._find(obj, head, json.loads(kept.facts)["id"]))

    def _find(self, obj: Object, head: Conversation, command: str) -> Command:
        """The command of that id, of whichever machine. Raises `Refusal` `NotFound`."""
        ordinals = range(head.sandboxes, 0, -1) if ids.is_persons_command(command) else ()
        for ordinal in ordinals:
            row = self.shelf.journal.command(ids.sandbox_id(obj.uid, ordinal), command)
            if row is not None:
                return row
        message = f"Sandbox {obj.key.name!r} has no command {command[:80]!r}; nodus sandbox commands NAME lists them"
        raise Refusal("NotFound", message, kind=KIND, name=command[:80])

    def _shown(self, obj: Object, row: Command) -> Shown:
        request = json.loads(self.shelf.payloads.get(scope_of(obj), row.request))
        spec = {
            "command": request["command"],
            "workingDir": request["cwd"],
            "timeout": f"{request['timeoutS']}s",
        }
        state, code = self._state(obj, row)
        moments = {"startedAt": row.claimed_at, "finishedAt": row.finished_at}
        status = {
            "state": state,
            **({} if code is None else {"exitCode": code}),
            **{word: stamp(at) for word, at in moments.items() if at is not None},
        }
        metadata = {"name": row.id, "namespace": obj.key.project, "creationTimestamp": stamp(row.created_at)}
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec, "status": status}

    def _state(self, obj: Object, row: Command) -> tuple[str, int | None]:
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
                result = self.shelf.payloads.get(scope_of(obj), row.result) if row.result else "{}"
                return word_of(result)


_PREFIX = keys.command_key("", ids.PERSONS).sk


def _receipt_key(obj: Object, asked: SandboxCommand) -> str:
    return ids.digest(json.dumps([obj.uid, "commands", asked.request_key]))


def _position(after: str | None, newest: int) -> tuple[int, str | None]:
    """Of which machine, and behind which row, a page goes on. Raises `Refusal` `BadRequest`."""
    if after is None:
        return newest, None
    ordinal, _, behind = untoken(after).partition(" ")
    if (
        not ordinal.isdecimal()
        or not 0 < int(ordinal) <= newest
        or (behind and not behind.startswith(_PREFIX))
    ):
        raise Refusal("BadRequest", "continue is not a token that a list of commands gave")
    return int(ordinal), behind or None
