"""Commands of people in Sandboxes of their own: each is run at most once, and its history outlives its machine.

placed (the machine runs) ──► taken by the daemon ──► ended, with its output
        └── the machine goes first ──► it was not run, or what became of it is not known; it is never run again (NOD-443)
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.listing import PageOf, token, untoken
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.machine_costs import SANDBOX
from nodus_core.conversations.shelf import MOST_TRIES, Shelf, contested, head_of, scope_of
from nodus_core.journal import keys
from nodus_core.journal.changes import micros
from nodus_core.journal.codec import from_row
from nodus_core.journal.receipts import binds
from nodus_core.kernel import ids
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.objects import Conversation, Object, Receipt
from nodus_core.kernel.sandboxes import Command
from nodus_core.kernel.states import CommandState, SandboxState
from nodus_core.kernel.times import stamp
from nodus_core.resources.durations import duration
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.sandbox_command import SandboxCommand
from nodus_core.sandboxes.outcome import output_of, word_of
from nodus_core.sandboxes.tools import DEFAULT_TIMEOUT_S, Order, exec_order

KIND = "SandboxCommand"

SILENCE_S = 60
"""Seconds beyond its time-out after which a command of which nothing was heard counts as lost."""

Shown = dict[str, Any]

log = logging.getLogger(__name__)


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
        for _ in range(MOST_TRIES):
            obj = self.shelf.find(place, SANDBOX, name)
            with self.shelf.reading(obj):
                head = head_of(self.shelf.journal, obj)
            order, receipt_key = self._order(obj, head, asked), _receipt_key(obj, asked)
            print_ = ids.digest(json.dumps([order.kind, order.request], sort_keys=True))
            kept, now = self.shelf.journal.receipt(receipt_key), self.shelf.clock.now()
            if kept is not None and binds(kept, now):
                return self._again(obj, kept, print_, asked), True
            sandbox = self._running(obj, head)
            command = self._command(obj, sandbox, order, print_)
            facts = json.dumps({"sandbox": sandbox, "id": command.id})
            try:
                self.shelf.journal.machines.place(
                    head, command, Receipt(receipt_key, print_, facts, now), now
                )
            except ConditionFailed as lost:
                log.info("a command in Sandbox %s looks again: %s", name, lost)
                continue
            self.kicks.nudge(obj.uid)
            return self._shown(obj, command), False
        raise contested(SANDBOX, name)

    def get(self, place: Place, name: str, command: str) -> Shown:
        obj = self.shelf.find(place, SANDBOX, name)
        return self._shown(obj, self._find(obj, command))

    def page(self, place: Place, name: str, limit: int, after: str | None) -> PageOf:
        """The newest commands first, those of earlier machines behind (NOD-437). `BadRequest` for a bad token."""
        obj = self.shelf.find(place, SANDBOX, name)
        with self.shelf.reading(obj):
            head = head_of(self.shelf.journal, obj)
        ordinal, behind = _position(after, head.sandboxes)
        found: list[Shown] = []
        while ordinal > 0:
            sandbox = ids.sandbox_id(obj.uid, ordinal)
            page = self.shelf.journal.store.query(
                keys.sandbox_partition(sandbox),
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
        obj = self.shelf.find(place, SANDBOX, name)
        row = self._find(obj, command)
        with self.shelf.reading(obj):
            head = head_of(self.shelf.journal, obj)
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
        obj = self.shelf.find(place, SANDBOX, name)
        for _ in range(MOST_TRIES):
            row, sandboxes = self._find(obj, command), self.shelf.journal.sandboxes
            if row.state not in (CommandState.PENDING, CommandState.CLAIMED):
                return self._shown(obj, row), True
            try:
                if row.state is CommandState.PENDING:
                    sandboxes.withdraw_command(row.sandbox, row.id, self.shelf.clock.now())
                else:
                    sandboxes.cancel_command(row.sandbox, row.id)
            except ConditionFailed:
                continue
            self.kicks.nudge(obj.uid)
            return self._shown(obj, self._find(obj, command)), False
        raise contested(SANDBOX, name)

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

    def _command(self, obj: Object, sandbox: str, order: Order, print_: str) -> Command:
        now = self.shelf.clock.now()
        request = json.dumps(order.request, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return Command(
            sandbox=sandbox,
            id=ids.persons_command(
                micros(now), ids.digest(f"{print_} {self.shelf.journal.writer.ids.fresh('c')}")
            ),
            kind=order.kind,
            request=self.shelf.payloads.put(scope_of(obj), request),
            digest=print_,
            state=CommandState.PENDING,
            created_at=now,
            limit_s=int(order.request["timeoutS"]) + SILENCE_S,
        )

    def _again(self, obj: Object, kept: Receipt, print_: str, asked: SandboxCommand) -> Shown:
        if kept.digest != print_:
            message = (
                f"request key {asked.request_key!r} stands for another command in Sandbox {obj.key.name!r}"
            )
            raise Refusal("IdempotencyKeyConflict", message, kind=SANDBOX, name=obj.key.name)
        return self._shown(obj, self._find(obj, json.loads(kept.facts)["id"]))

    def _find(self, obj: Object, command: str) -> Command:
        with self.shelf.reading(obj):
            head = head_of(self.shelf.journal, obj)
        for sandbox in _newest_first(obj, head):
            row = self.shelf.journal.command(sandbox, command) if ids.is_persons_command(command) else None
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


_PREFIX = f"cmd#{ids.PERSONS}"


def _receipt_key(obj: Object, asked: SandboxCommand) -> str:
    return ids.digest(json.dumps([obj.uid, "commands", asked.request_key]))


def _newest_first(obj: Object, head: Conversation) -> Iterator[str]:
    for ordinal in range(head.sandboxes, 0, -1):
        yield ids.sandbox_id(obj.uid, ordinal)


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
