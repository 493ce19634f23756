"""One run of N rounds, a model call and a command each, by the real worker in this process.

Models and sandboxes answer at once, so that what is left is the journal: look, decide, record, claim.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from nodus_core.aws.system import FreshIds, SystemClock
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.ports import Ports
from nodus_core.conversations.worker import Worker
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads
from nodus_core.journal.store import Store
from nodus_core.kernel import projection
from nodus_core.kernel.objects import Conversation, Input, Line, Object, ObjectKey
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import InputState
from nodus_core.kernel.text import Inline
from nodus_core.sandboxes.link import Link
from nodus_core.testing.clock import FakeClock
from nodus_core.testing.memory_vault import MemoryVault
from nodus_core.testing.scripted_model import ScriptedModels, says
from nodus_core.testing.scripted_sandbox import ScriptedSandboxes, exited
from nodus_core.testing.scripted_sources import ScriptedDownloads, ScriptedRepositories

STEPS_A_ROUND = 2
"""A model call and its command."""

OUTPUT = "0123456789abcdef" * 12 + "01234567"
"""What every command prints: 200 bytes, as in the measurements of other engines."""

PLAIN = Context("bench", 1, "You are careful.", ModelChoice("Nodus"), max_tool_calls=1000)


class LinkByCall(Link):
    """The link as the function calls it: every call of a daemon proves itself anew, also `done`."""

    def done(self, sandbox: Sandbox, boot: str, command: str, result: str) -> None:
        self.journal.sandbox(sandbox.id)  # what `authorize` reads
        super().done(sandbox, boot, command, result)


class InstantClock(SystemClock):
    """The real time, but waiting takes none: whoever waits lets the sandboxes work instead."""

    def __init__(self) -> None:
        self.working: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.working()

    def asked(self) -> None:
        """A model call was made: commands may follow."""


class DelayedClock(FakeClock):
    """Time that passes only while somebody waits; a command is done `delay_s` after its model call."""

    def __init__(self, delay_s: float) -> None:
        super().__init__()
        self._delay, self._ready = timedelta(seconds=delay_s), self.now()
        self.working: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.now() >= self._ready:
            self.working()

    def asked(self) -> None:
        self._ready = self.now() + self._delay


@dataclass
class Watch:
    """When each round began, and what the daemons' half took in each: seconds, by the performance counter.

    `on_round` is called with the number of the round that begins.
    """

    on_round: Callable[[int], None] = lambda _: None
    as_daemon: Callable[[], AbstractContextManager[None]] = nullcontext
    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    daemons: list[float] = field(default_factory=list)

    def ask(self) -> None:
        """One round ends and the next begins; what `on_round` takes belongs to neither."""
        self.ended.append(time.perf_counter())
        self.on_round(len(self.begun))
        self.begun.append(time.perf_counter())
        self.daemons.append(0.0)

    def rounds(self) -> list[tuple[float, float]]:
        """Seconds of each whole round, and of the daemons' half within."""
        return [
            (after - before, link)
            for before, after, link in zip(self.begun, self.ended[1:], self.daemons, strict=False)
        ]

    def work(self, turn: Callable[[], None]) -> None:
        started = time.perf_counter()
        with self.as_daemon():
            turn()
        if self.daemons:
            self.daemons[-1] += time.perf_counter() - started


class RoundModels(ScriptedModels):
    """Asks for one command in each of `rounds` rounds, then answers."""

    def __init__(self, rounds: int, asked: Callable[[], None]) -> None:
        super().__init__(lambda _, number: _reply(number, rounds))
        self._asked = asked

    def call(self, request: ModelRequest, key: str | None = None) -> ModelReply:
        if request.target.family != "router":
            self._asked()
        return super().call(request, key)


class Loop:
    """One run, named by a word that is part of every key and nowhere else."""

    def __init__(
        self,
        store: Store,
        payloads: Payloads,
        rounds: int,
        watch: Watch | None = None,
        *,
        clock: InstantClock | DelayedClock | None = None,
        context: Context = PLAIN,
    ) -> None:
        self.name = new_name()
        self.watch = watch or Watch()
        self._rounds, self._context = rounds, context
        self._clock = clock or InstantClock()
        self._journal, self._payloads = Journal(store, FreshIds()), payloads
        self._sandboxes = ScriptedSandboxes(lambda kind, request: exited(OUTPUT))
        self._sandboxes.link = LinkByCall(Journal(store, FreshIds()), payloads, self._clock, MemoryVault())
        self._clock.working = lambda: self.watch.work(self._sandboxes.turn)

    def run(self) -> None:
        """Admits the run and works on it to its end. Raises RuntimeError when it does not come to one."""
        self._admit(self._clock.now())
        models = RoundModels(self._rounds, self._asked)
        sandboxes, clock = self._sandboxes, self._clock
        ports = Ports(
            journal=self._journal,
            payloads=self._payloads,
            archives=sandboxes.archives,
            repositories=ScriptedRepositories(),
            downloads=ScriptedDownloads(),
            models=models,
            tasks=sandboxes,
            bell=sandboxes,
            clock=clock,
            ids=FreshIds(),
            vault=MemoryVault(),
            link={},
        )
        directive = Worker(ports).advance(self.name, 1, lambda: 900.0)
        if directive.next != "done" or len(models.requests) != self._rounds + 1:
            raise RuntimeError(f"run {self.name} stopped after {len(models.requests)} rounds: {directive}")

    def _asked(self) -> None:
        self._clock.asked()
        self.watch.ask()

    def _admit(self, now: datetime) -> None:
        key = ObjectKey("bench", "bench", "AgentRun", self.name)
        cap = Decimal(1000)
        status = projection.queued(1, cap)
        obj = Object(key, self.name, 1, 1, Inline("{}"), now, status)
        line = Line(1, lease_until=now + timedelta(seconds=30))
        head = Conversation(self.name, key, Inline(self._context.to_json()), line, now, cap, accepted=1)
        first = Input(self.name, 1, Inline("Work."), InputState.QUEUED, "person", "bench", now)
        self._journal.objects.admit(obj, head, first, now, agent=None)


def new_name() -> str:
    """A word as long as a run's real uid, of a form that nothing else in a request has."""
    return f"bench{uuid.uuid4().hex[:31]}"


def _reply(number: int, rounds: int) -> ModelReply:
    if number >= rounds:
        return says("Done.")
    return says(f"Round {number + 1}.", ("run_command", {"command": "true"}))
