"""The daemon's side of a sandbox: hello, pull, done, and the bell's connection (docs/protocols.md §2).

Everything a daemon says is the agent's word: it speaks for its own sandbox only, and is never believed more.
"""

import hmac
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock
from nodus_core.journal.sandboxes import Greeting
from nodus_core.journal.vault import Vault
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, Refusal
from nodus_core.kernel.ids import ask_place, digest
from nodus_core.kernel.sandboxes import Ask, AskAnswer, Command, Sandbox, Used
from nodus_core.kernel.states import ALIVE_SANDBOXES, OPEN_COMMANDS, CommandState, SandboxState
from nodus_core.kernel.text import Inline, Text, inline
from nodus_core.sandboxes.admittance import Admittance, gone, unauthorized
from nodus_core.sandboxes.frames import MOST_PULLED_BYTES, MOST_REQUEST_BYTES, answer_size
from nodus_core.sandboxes.outcome import figures, outcome

MOST_ANSWER_BYTES = 256 * 1024
"""Bytes of the answer to an ask, which stands in a row."""

USE_EVERY = timedelta(seconds=30)
"""How often at most the use of a sandbox is written; an honest daemon tells it once a minute."""

MOST_PROBLEM = 1000
"""Characters of what is said of a command that cannot be handed over."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pulled:
    """What a daemon is to do: new commands with their requests' JSON, commands to end, asks, and whether to stop.

    `more`: something is left that did not fit into this answer.
    """

    commands: tuple[tuple[Command, str], ...]
    cancel: tuple[str, ...]
    stop: bool
    more: bool = False
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class Link:
    """Use cases of the link function. `Refusal` reasons: `Unauthorized`, `Gone`, `Conflict`."""

    journal: Journal
    payloads: Payloads
    clock: Clock
    vault: Vault

    def hello(self, sandbox_id: str, greeting: Greeting, enrol_code: str | None) -> Mapping[str, str]:
        """A daemon has come up: returns the values of its secret variables by name, for its memory alone.

        Commands that an earlier boot had claimed are lost from here on. A sandbox that nothing keeps to its egress
        policy, or that cannot have its secrets, is refused before any command is given: its daemon hears `Gone`, and
        the reason is the sandbox's.
        """
        sandbox = self._sandbox(sandbox_id)
        if sandbox.state not in ALIVE_SANDBOXES:
            raise gone(sandbox_id)
        if sandbox.token_hash is None and not enrol_code:
            raise unauthorized(sandbox_id)
        try:
            values = Admittance(self.journal, self.clock, self.vault).admit(
                sandbox, greeting, digest(enrol_code or "")
            )
        except ConditionFailed:
            raise unauthorized(sandbox_id) from None
        for command in self.journal.open_commands(sandbox_id):
            if command.state is CommandState.CLAIMED and command.boot != greeting.boot:
                self._lose(command)
        return values

    def refused(self, sandbox_id: str, enrol_code: str, reason: str) -> None:
        """The launcher could not start the sandbox and says why."""
        sandbox = self._sandbox(sandbox_id)
        if not hmac.compare_digest(sandbox.enrol_hash, digest(enrol_code)):
            raise unauthorized(sandbox_id)
        try:
            self.journal.sandboxes.gone(sandbox_id, reason[:2000], self.clock.now())
        except ConditionFailed:
            return  # already gone for an earlier reason, which stays

    def authorize(self, sandbox_id: str, token: str) -> Sandbox:
        """The sandbox whose daemon this token belongs to. Raises `Refusal`."""
        sandbox = self._sandbox(sandbox_id)
        if sandbox.token_hash is None or not hmac.compare_digest(sandbox.token_hash, digest(token)):
            raise unauthorized(sandbox_id)
        return sandbox

    def pull(self, sandbox: Sandbox, boot: str, have: Collection[str] = ()) -> Pulled:
        """Claims what is pending for this boot; what it claimed and has not finished is given again.

        `have` are the commands and asks that the daemon works on: they are not given again. What would make the
        answer too large is left for the next pull.
        """
        if sandbox.state not in ALIVE_SANDBOXES:
            return Pulled((), (), stop=True)
        marked, asked = self.journal.at_hand(sandbox.id)
        asks, room, more = self._asks(asked, have)
        commands = self._open(marked)
        cancel = tuple(command.id for command in commands if command.cancel)
        given: list[tuple[Command, str]] = []
        for command in commands:
            if command.id in have or (command.state is CommandState.CLAIMED and command.boot != boot):
                continue
            request = self._request(sandbox, command, boot)
            if request is None:
                continue
            room -= answer_size(request)
            if room < 0:
                return Pulled(tuple(given), cancel, stop=False, more=True, asks=asks)
            if command.state is CommandState.CLAIMED or self._claim(command, boot):
                given.append((command, request))
        return Pulled(tuple(given), cancel, stop=False, more=more, asks=asks)

    def uses(self, sandbox: Sandbox, used: Used) -> None:
        """Keeps what a sandbox uses by its daemon's word, at most once in `USE_EVERY`; nothing is decided by it."""
        if sandbox.used is not None and used.at < sandbox.used.at + USE_EVERY:
            return
        try:
            self.journal.sandboxes.note_use(sandbox.id, used)
        except ConditionFailed:
            return  # it is gone

    def answered(self, sandbox: Sandbox, ask: str, result: str) -> None:
        """Keeps the answer to an ask for whoever waits for it; nobody may wait any more, which is fine.

        Raises `Refusal` `BadRequest` for one that is too long.
        """
        place, said = ask_place(ask), result.encode(errors="replace")
        if len(said) > MOST_ANSWER_BYTES:
            raise Refusal("BadRequest", f"an answer has at most {MOST_ANSWER_BYTES} bytes")
        if place is not None:
            answer = AskAnswer(ask, said.decode())
            try:
                self.journal.asks.answer(sandbox.id, place, answer, self.clock.now())
            except ConditionFailed:
                return  # it was taken back, or is answered already

    def done(self, sandbox: Sandbox, boot: str, command: str, result: str) -> None:
        """Keeps a command's first result; another one later is heard and changes nothing.

        Raises `Refusal` when the command is not this boot's.
        """
        short, told = inline(result), None
        if short is None:
            short, told = self._kept(sandbox, boot, command, result)
        try:
            self.journal.sandboxes.finish_command(
                sandbox.id, command, boot, short, self.clock.now(), told=told
            )
        except ConditionFailed as lost:
            row = lost.current[0]
            if row.get("state") != CommandState.DONE.value or row.get("boot") != boot:
                raise _not_its_own(sandbox, command) from None
        self.journal.sandboxes.close_command(sandbox.id, command)

    def connected(self, sandbox: Sandbox, connection: str) -> None:
        """Keeps the bell's connection; the newest one is rung."""
        try:
            self.journal.sandboxes.attach(sandbox.id, connection, self.clock.now())
        except ConditionFailed:
            raise gone(sandbox.id) from None

    def _asks(self, asked: Iterable[Ask], have: Collection[str]) -> tuple[tuple[Ask, ...], int, bool]:
        """What is asked and not answered, the room that is left for commands, and whether an ask had none."""
        now, room, left = self.clock.now(), MOST_PULLED_BYTES, False
        found: list[Ask] = []
        for ask in asked:
            if ask.answered or ask.ends_at < now or ask.id in have:
                continue
            size = answer_size(ask.request)
            if size > room - MOST_REQUEST_BYTES:
                left = True
                continue
            found.append(ask)
            room -= size
        return tuple(found), room, left

    def _open(self, marked: Iterable[Command]) -> list[Command]:
        """Commands that have not ended; the marks of those that have ended without the daemon are taken away."""
        found: list[Command] = []
        for command in marked:
            if command.state in OPEN_COMMANDS:
                found.append(command)
            else:
                self.journal.sandboxes.close_command(command.sandbox, command.id)
        return found

    def _request(self, sandbox: Sandbox, command: Command, boot: str) -> str | None:
        """The JSON of a request; None when it cannot be handed over, which ends this command and no other."""
        try:
            if isinstance(command.request, Inline):
                request = command.request.text
            else:
                request = self.payloads.get(self._scope(sandbox), command.request)
            json.loads(request)
        except (CorruptRow, ValueError) as error:
            problem = f"its request cannot be read: {error}"
        else:
            if answer_size(request) <= MOST_PULLED_BYTES:
                return request
            problem = f"its request takes more than {MOST_PULLED_BYTES} bytes on the way to the sandbox"
        self._fail(command, boot, problem)
        return None

    def _fail(self, command: Command, boot: str, problem: str) -> None:
        """Ends a command that cannot be handed over: one that no daemon has had certainly had no effect."""
        log.error("command %s of sandbox %s is not handed over: %s", command.id, command.sandbox, problem)
        if command.state is CommandState.CLAIMED:
            self._lose(command)
        elif self._claim(command, boot):
            now = self.clock.now()
            result = json.dumps({"state": "failed", "reason": "invalid", "message": problem[:MOST_PROBLEM]})
            try:
                self.journal.sandboxes.finish_command(command.sandbox, command.id, boot, Inline(result), now)
            except ConditionFailed:
                return  # another pull of this boot came first

    def _kept(self, sandbox: Sandbox, boot: str, command: str, result: str) -> tuple[Inline, Text]:
        """The figures of a long result, and the text that the model gets of it: only that is stored, and once.

        A command that is not this boot's is refused before anything is kept.
        """
        row = self.journal.command(sandbox.id, command)
        if row is None or row.boot != boot or row.state not in (CommandState.CLAIMED, CommandState.DONE):
            raise _not_its_own(sandbox, command)
        text = outcome(row.kind, result).text
        told = self.payloads.put(self._scope(sandbox), text, head=False) if isinstance(text, str) else text
        return Inline(figures(result)), told

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
            raise unauthorized(sandbox_id)
        if sandbox.state not in ALIVE_SANDBOXES and sandbox.state is not SandboxState.RELEASING:
            raise gone(sandbox_id)
        return sandbox

    def _scope(self, sandbox: Sandbox) -> Scope:
        head = self.journal.conversation(sandbox.conversation)
        if head is None:
            raise gone(sandbox.id)
        return Scope(head.object.org, head.id)


def _not_its_own(sandbox: Sandbox, command: str) -> Refusal:
    return Refusal("Conflict", f"command {command!r} of sandbox {sandbox.id!r} is not this boot's to finish")
