"""A small world in memory: journal, payloads, scripted models and sandboxes, and somebody who delivers kicks.

`settle` lets everything happen until nothing is left to do, as the sweeper would in the end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from nodus_core.access.door import Place
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.build_keeping import BuildKeeping
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.messages import Accepted, Messages
from nodus_core.conversations.ports import Directive, Ports
from nodus_core.conversations.resolving import COMMANDS, Resolving
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.sources import Allowed
from nodus_core.conversations.task_sweep import TaskSweep
from nodus_core.conversations.unresolved import name_of
from nodus_core.conversations.waiters import Waiters
from nodus_core.conversations.warm_pool import WarmPool
from nodus_core.conversations.warm_tasks import WarmTasks
from nodus_core.conversations.worker import Worker
from nodus_core.journal.accounts import limiting, opening
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import DUE_SHARDS, conversation_key
from nodus_core.journal.objects import next_version
from nodus_core.journal.objects import projection as show
from nodus_core.journal.payloads import Scope
from nodus_core.journal.ports import CrashPoints
from nodus_core.journal.store import Present, Store, Transaction, Update
from nodus_core.kernel import projection
from nodus_core.kernel.decide import NEEDS_RESOLUTION
from nodus_core.kernel.money import BUDGET, Account
from nodus_core.kernel.objects import Conversation, Input, Line, Object, ObjectKey, StopMarker
from nodus_core.kernel.states import InputState, Statement
from nodus_core.kernel.stopping import CANCELLED
from nodus_core.kernel.tasks import Task
from nodus_core.kernel.text import Inline
from nodus_core.resources.message import Message
from nodus_core.resources.resolution import read_resolution
from nodus_core.sandboxes.link import Link
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.crash import Crash
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.memory_transfers import MemoryTransfers
from nodus_core.testing.memory_vault import MemoryVault
from nodus_core.testing.scripted_model import Script, ScriptedModels
from nodus_core.testing.scripted_sandbox import Behaviour, ScriptedSandboxes, exited
from nodus_core.testing.scripted_sources import ScriptedDownloads, ScriptedRepositories

NAMES = ObjectKey("acme", "web", "AgentRun", "run")


class TickingClock(FakeClock):
    """Time passes only while somebody waits, and whoever waits lets the sandboxes work."""

    def __init__(self, whenever: Callable[[], None]) -> None:
        super().__init__()
        self._whenever = whenever

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._whenever()


@dataclass
class Started:
    """Executions that were asked for, by name, in order; a name is started once."""

    waiting: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    names: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def start(self, line: str, generation: int) -> None:
        if (line, generation) not in self.names:
            self.names.add((line, generation))
            self.waiting.append((line, generation))


@dataclass
class Scheduled:
    """Kicks that were asked for, by line; nobody makes them: a kick may be lost."""

    at: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def kick_at(self, line: str, at: datetime) -> None:
        self.at.setdefault(line, at)


class World:
    """Everything that one run needs, under the test's control."""

    def __init__(
        self,
        script: Script,
        behaviour: Behaviour = lambda kind, request: exited(),
        *,
        crash: CrashPoints | None = None,
        store: Store | None = None,
        vault: MemoryVault | None = None,
    ) -> None:
        self.store = store or MemoryStore()
        self.sandboxes = ScriptedSandboxes(behaviour)
        self.clock = TickingClock(self.sandboxes.turn)
        self.models = ScriptedModels(script)
        self.payloads = MemoryPayloads()
        self.transfers = MemoryTransfers()
        self.vault = vault or MemoryVault()
        self.repositories = ScriptedRepositories()
        self.downloads = ScriptedDownloads()
        self.ids = CountingIds()
        self.executions = Started()
        self.schedules = Scheduled()
        self.journal = Journal(self.store, self.ids, crash)
        # For daemons, people and tests: other processes than the workers, so without their crash points.
        self.outside = Journal(self.store, self.ids)
        self.sandboxes.link = Link(self.outside, self.payloads, self.clock, self.vault)
        self.kicks = Kicks(self.journal, self.executions, self.clock)
        self.crashes = 0
        self.warm = 0

    @property
    def batches(self) -> BatchKeeping:
        """What the sweeper does with batches, in a process that may crash."""
        return BatchKeeping(Shelf(self.journal, self.payloads, self.clock))

    @property
    def builds(self) -> BuildKeeping:
        """What the sweeper does with builds where there is no builder."""
        return BuildKeeping(self.batches.shelf)

    @property
    def task_sweep(self) -> TaskSweep:
        """What the sweeper does with tasks, in a process that may crash."""
        return TaskSweep(self.sandboxes, self.kicks)

    @property
    def pool(self) -> WarmPool:
        """What the sweeper does with warm machines, in a process that may crash: `warm` of them are wanted."""
        return WarmPool(self.journal, self.sandboxes, self.sandboxes, self.clock, self.ids, self.warm)

    @property
    def ports(self) -> Ports:
        return Ports(
            journal=self.journal,
            payloads=self.payloads,
            archives=self.sandboxes.archives,
            models=self.models,
            tasks=WarmTasks(self.sandboxes, self.journal, self.clock) if self.warm else self.sandboxes,
            bell=self.sandboxes,
            clock=self.clock,
            ids=self.ids,
            vault=self.vault,
            repositories=self.repositories,
            downloads=self.downloads,
            allowed=Allowed(folder="/srv"),
            link={},
        )

    def admit(
        self,
        prompt: str = "Do it.",
        *,
        cap: str = "1.00",
        context: Context | None = None,
        keep_alive: bool = False,
        lifetime: float | None = None,
    ) -> str:
        """Creates a run and starts its execution; returns the conversation's id.

        `lifetime`: seconds until its deadline.
        """
        now = self.clock.now()
        frozen = context or Context("agent", 1, "You are careful.", ModelChoice("Nodus"))
        obj = Object(NAMES, "conv", 1, 1, Inline("{}"), now, projection.queued(1, Decimal(cap)))
        head = Conversation(
            id="conv",
            object=NAMES,
            context=self.payloads.put(Scope(NAMES.org, "conv"), frozen.to_json()),
            line=Line(1, lease_until=now + timedelta(seconds=30)),
            created_at=now,
            cap=Decimal(cap),
            keep_alive=keep_alive,
            accepted=1,
            deadline=None if lifetime is None else now + timedelta(seconds=lifetime),
        )
        first = Input("conv", 1, Inline(prompt), InputState.QUEUED, "person", "alice", now)
        self.outside.objects.admit(obj, head, first, now, agent=None)
        self.executions.start("conv", 1)
        return "conv"

    def say(self, text: str, key: str = "next") -> Accepted:
        """A person sends a message, as the API does. Raises `Refusal`."""
        shelf = Shelf(self.outside, self.payloads, self.clock)
        door = Messages(shelf, Kicks(self.outside, self.executions, self.clock))
        message = Message.model_validate({"payload": text, "messageKey": key})
        return door.send(Place(NAMES.org, NAMES.project, "alice"), NAMES.name, message)

    def budget(self, limit: str, name: str = "budget") -> None:
        """The run's project gets a Budget, or its Budget another limit."""
        accounts, now = self.outside.accounts, self.clock.now()
        account = accounts.account(name)
        if account is not None:
            self.outside.writer.commit("limit", limiting(account, Decimal(limit), now))
            return
        amount = Decimal(limit)
        new = Account(name, BUDGET, NAMES.org, name, amount, available=amount, project=NAMES.project)
        known = accounts.budgets_of(NAMES.org, NAMES.project)
        self.outside.writer.commit("open-account", *opening(new, known))

    def stop(self) -> None:
        """A person cancels the run, as the API does; a second time changes nothing."""
        head, obj, now = self.outside.conversation("conv"), self.outside.object(NAMES), self.clock.now()
        if head is None or obj is None or head.stop is not None or head.ended:
            return
        status = projection.stopping(obj.status, CANCELLED)
        shown = replace(obj, status=status, version=next_version(obj.version, now))
        self.outside.turns.stop(head, StopMarker(now, "alice", CANCELLED), show(shown, now))

    def has_gone_round(self, rounds: int) -> None:
        """The line's execution has called its function so many times."""
        gone = Update(conversation_key("conv"), Present(), assign={"line.rounds": rounds})
        self.store.commit(Transaction("gone-round", (gone,)), "gone-round")

    def is_parked(self) -> bool:
        """Whether nobody works on the run, and a person is asked what became of a step."""
        head, obj = self.outside.conversation("conv"), self.outside.object(NAMES)
        rests = head is not None and head.line.claimant is None and head.stop is None
        return rests and obj is not None and obj.status.get("reason") == NEEDS_RESOLUTION

    def resolve(self, task: str, word: Statement, text: str = "", *, key: str | None = None) -> bool:
        """A person says what became of a held step of the open run; False: nobody is asked about that one.

        `key` is the request key. Raises what the use case does.
        """
        head = self.outside.conversation("conv")
        run = self.outside.run(head.run) if head is not None and head.run else None
        if run is None or task not in {item.task for item in run.attention}:
            return False
        held = self.outside.tasks(run.uid, [task])[task]
        stated = {
            "step": name_of(run, held),
            "outcome": word.value,
            "requestKey": key or f"{run.uid}-{task}-{held.attempt}",
            **({"result": {"text": text, **_code(held)}} if word is Statement.HAPPENED else {}),
        }
        kicks = Kicks(self.outside, self.executions, self.clock)
        person = Resolving(Shelf(self.outside, self.payloads, self.clock), kicks)
        person.resolve(Place(NAMES.org, NAMES.project, "alice"), NAMES.name, read_resolution(stated))
        return True

    def settle(self, *, most: int = 400) -> None:
        """Runs executions and the sweeper until nothing is due and nothing was started."""
        for _ in range(most):
            if self.executions.waiting:
                self._execute(*self.executions.waiting.pop(0))
            elif not self._sweep():
                return
        raise AssertionError("the world does not come to rest")

    def pass_time(self, seconds: float) -> None:
        """So much time passes, in which the sweeper looks once a minute, and whatever was started runs."""
        until = self.clock.now() + timedelta(seconds=seconds)
        while self.clock.now() < until:
            self.clock.sleep(60)
            self._kick_due()
            self._look_at_tasks()
            while self.executions.waiting:
                self._execute(*self.executions.waiting.pop(0))

    def _execute(self, line: str, generation: int) -> None:
        """One execution: Advance until it ends. A crash kills it, and nobody but the sweeper sees that."""
        directive = Directive("again")
        while directive.next in ("again", "soon"):
            if directive.at is not None:
                self.clock.sleep(max((directive.at - self.clock.now()).total_seconds(), 0))
            try:
                directive = Worker(self.ports).advance(line, generation, lambda: 900.0)
            except Crash:
                self.crashes += 1
                return

    def _see_to(self, noun: str, name: str) -> None:
        try:
            if noun == "acct":
                Waiters(self.kicks).serve(name)
            elif noun == "batch":
                self.batches.finish(name)
            else:
                self.kicks.kick(name)
        except Crash:
            self.crashes += 1

    def _sweep(self) -> bool:
        """Time passes until the next due moment, then what is due is kicked. False: nothing will be due."""
        for _ in range(40):
            self.clock.sleep(16)
            if self._kick_due():
                return True
        return False

    def _look_at_tasks(self) -> None:
        try:
            self.task_sweep.reconcile(lambda: 1.0)
            self.pool.keep(lambda: 1.0)
        except Crash:
            self.crashes += 1

    def _kick_due(self) -> bool:
        """Kicks what is due now. False: nothing is."""
        journal = self.kicks.journal
        due = [found for shard in DUE_SHARDS for found in journal.due(shard, self.clock.now())]
        for noun, name in due:
            self._see_to(noun, name)
        return bool(due)


def _code(task: Task) -> dict[str, int]:
    return {} if task.tool not in COMMANDS else {"exitCode": 0}
