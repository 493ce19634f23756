"""The daemon's side of a sandbox: hello, pull, done, and the bell's connection (docs/protocols.md §2).

Everything a daemon says is the agent's word: it speaks for its own sandbox only, and is never believed more.
"""

import hmac
from dataclasses import dataclass
from typing import Any

from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock
from nodus_core.journal.sandboxes import Greeting
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Command, Sandbox
from nodus_core.kernel.states import CommandState, SandboxState
from nodus_core.kernel.text import Inline, Text, inline

ALIVE = (SandboxState.REQUESTED, SandboxState.RUNNING)

MOST_PULLED_BYTES = 1024 * 1024
"""Bytes of requests after which a pull gives no further command: an answer of Lambda has at most 6 MB."""


@dataclass(frozen=True)
class Pulled:
    """What a daemon is to do: new commands with their requests' JSON, commands to end, and whether to stop."""

    commands: tuple[tuple[Command, str], ...]
    cancel: tuple[str, ...]
    stop: bool


@dataclass(frozen=True)
class Link:
    """Use cases of the link function. `Refusal` reasons: `Unauthorized`, `Gone`, `Conflict`."""

    journal: Journal
    payloads: Payloads
    clock: Clock

    def hello(self, sandbox_id: str, greeting: Greeting, enrol_code: str | None) -> None:
        """A daemon has come up. Commands that an earlier boot had claimed are lost from here on."""
        sandbox = self._sandbox(sandbox_id)
        if sandbox.token_hash is None and not enrol_code:
            raise _unauthorized(sandbox_id)
        try:
            if sandbox.token_hash is None:
                code = digest(enrol_code or "")
                self.journal.sandboxes.enrol(sandbox_id, code, greeting, self.clock.now())
            else:
                self.journal.sandboxes.reboot(sandbox_id, greeting, self.clock.now())
        except ConditionFailed:
            raise _unauthorized(sandbox_id) from None
        for command in self.journal.open_commands(sandbox_id):
            if command.state is CommandState.CLAIMED and command.boot != greeting.boot:
                self._lose(command)

    def refused(self, sandbox_id: str, enrol_code: str, reason: str) -> None:
        """The launcher could not start the sandbox and says why."""
        sandbox = self._sandbox(sandbox_id)
        if not hmac.compare_digest(sandbox.enrol_hash, digest(enrol_code)):
            raise _unauthorized(sandbox_id)
        try:
            self.journal.sandboxes.gone(sandbox_id, reason[:2000])
        except ConditionFailed:
            return  # already gone for an earlier reason, which stays

    def authorize(self, sandbox_id: str, token: str) -> Sandbox:
        """The sandbox whose daemon this token belongs to. Raises `Refusal`."""
        sandbox = self._sandbox(sandbox_id)
        if sandbox.token_hash is None or not hmac.compare_digest(sandbox.token_hash, digest(token)):
            raise _unauthorized(sandbox_id)
        return sandbox

    def pull(self, sandbox: Sandbox, boot: str) -> Pulled:
        """Claims what is pending for this boot; what it claimed and has not finished is given again.

        What would make the answer too large is left for the next pull.
        """
        if sandbox.state not in ALIVE:
            return Pulled((), (), stop=True)
        given: list[tuple[Command, str]] = []
        cancel: list[str] = []
        size = 0
        for command in self.journal.open_commands(sandbox.id):
            if command.cancel:
                cancel.append(command.id)
            if size < MOST_PULLED_BYTES and self._claim(command, boot):
                given.append((command, self._request(sandbox, command)))
                size += len(given[-1][1].encode())
        return Pulled(tuple(given), tuple(cancel), stop=False)

    def done(self, sandbox: Sandbox, boot: str, command: str, result: str) -> None:
        """Keeps a command's first result; another one later is heard and changes nothing.

        Raises `Refusal` when the command is not this boot's.
        """
        text = inline(result) or self._kept(sandbox, boot, command, result)
        try:
            self.journal.sandboxes.finish_command(sandbox.id, command, boot, text, self.clock.now())
        except ConditionFailed as lost:
            row = lost.current[0]
            if row.get("state") != CommandState.DONE.value or row.get("boot") != boot:
                raise _not_its_own(sandbox, command) from None

    def connected(self, sandbox: Sandbox, connection: str) -> None:
        """Keeps the bell's connection; the newest one is rung."""
        try:
            self.journal.sandboxes.attach(sandbox.id, connection)
        except ConditionFailed:
            raise _gone(sandbox.id) from None

    def _request(self, sandbox: Sandbox, command: Command) -> str:
        if isinstance(command.request, Inline):
            return command.request.text
        return self.payloads.get(self._scope(sandbox), command.request)

    def _kept(self, sandbox: Sandbox, boot: str, command: str, result: str) -> Text:
        """A long result outside of its row; a command that is not this boot's is refused before it is kept."""
        row = self.journal.command(sandbox.id, command)
        if row is None or row.boot != boot or row.state not in (CommandState.CLAIMED, CommandState.DONE):
            raise _not_its_own(sandbox, command)
        return self.payloads.put(self._scope(sandbox), result)

    def _claim(self, command: Command, boot: str) -> bool:
        try:
            self.journal.sandboxes.claim_command(command, boot, self.clock.now())
        except ConditionFailed:
            return False  # withdrawn meanwhile, or another boot's
        return True

    def _lose(self, command: Command) -> None:
        try:
            self.journal.sandboxes.lose_command(command.sandbox, command.id, self.clock.now())
        except ConditionFailed:
            return  # its result came in meanwhile

    def _sandbox(self, sandbox_id: str) -> Sandbox:
        sandbox = self.journal.sandbox(sandbox_id)
        if sandbox is None:
            raise _unauthorized(sandbox_id)
        if sandbox.state not in ALIVE and sandbox.state is not SandboxState.RELEASING:
            raise _gone(sandbox_id)
        return sandbox

    def _scope(self, sandbox: Sandbox) -> Scope:
        head = self.journal.conversation(sandbox.conversation)
        if head is None:
            raise _gone(sandbox.id)
        return Scope(head.object.org, head.id)


def _unauthorized(sandbox: str) -> Refusal:
    return Refusal("Unauthorized", f"the credential does not speak for sandbox {sandbox!r}")


def _not_its_own(sandbox: Sandbox, command: str) -> Refusal:
    return Refusal("Conflict", f"command {command!r} of sandbox {sandbox.id!r} is not this boot's to finish")


def _gone(sandbox: str) -> Refusal:
    return Refusal("Gone", f"sandbox {sandbox!r} is released")


def command_frame(command: Command, request: Any) -> dict[str, Any]:
    """A command as the daemon takes it; `request` is its parsed JSON."""
    return {"id": command.id, "digest": command.digest, "kind": command.kind, "request": request}
