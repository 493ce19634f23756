"""One worker's sight of one line: what it has read, under which fence, and what it has committed since.

The sight is kept current by the worker's own commits; when a condition fails, it is read anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from nodus_core.conversations.context import Context
from nodus_core.conversations.deadline import expire
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.ports import Ports
from nodus_core.conversations.transcript import Transcript
from nodus_core.inference.exchange import ModelRequest
from nodus_core.journal.fence import Fence
from nodus_core.journal.objects import projection as show
from nodus_core.journal.objects import versioned
from nodus_core.journal.owning import placed
from nodus_core.journal.payloads import Scope
from nodus_core.journal.steps import Changes
from nodus_core.journal.store import Operation
from nodus_core.kernel import continuity, ids, metering, projection
from nodus_core.kernel.decide import Plan, View, decide
from nodus_core.kernel.decisions import Decision
from nodus_core.kernel.errors import CorruptRow, Fenced
from nodus_core.kernel.machines import MACHINE
from nodus_core.kernel.objects import Conversation, Object, Run, Turn
from nodus_core.kernel.progress import begin, recorded, settle
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.saving import is_kept
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.stopping import is_overdue
from nodus_core.kernel.tasks import Claim, Result, Task
from nodus_core.kernel.text import Text

BUDGET_BLOCKED = "BudgetBlocked"
NO_CREDITS = "InsufficientCredits"
"""Reasons of a run that waits for money (NODQ-03, NODQ-108)."""

STUCK = "InternalError"
"""The reason shown while workers keep failing over a run."""

PASSING = frozenset(
    {STUCK, projection.MODEL_UNAVAILABLE, projection.SOURCE_UNAVAILABLE, BUDGET_BLOCKED, NO_CREDITS}
)
"""Reasons of a run that goes on by itself: none is shown any more once it does."""


@dataclass(frozen=True)
class Prepared:
    """A round whose claim was written just now: the request that it was claimed for, so that it is not made twice.

    `gate_is_free`: the look of which the claim follows has found no cooling time.
    """

    key: str
    request: ModelRequest
    gate_is_free: bool


@dataclass
class Session:
    """State of one invocation. `fresh` are the tasks that this very invocation has claimed, `prepared` is the round
    among them that is asked next, `rung` is the connection whose bell it has rung for the commands that are open."""

    ports: Ports
    fence: Fence
    remaining: Callable[[], float]
    object: Object
    conversation: Conversation
    run: Run | None = None
    turn: Turn | None = None
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    sandbox: Sandbox | None = None
    transcript: Transcript | None = None
    fresh: set[str] = field(default_factory=set[str])
    prepared: Prepared | None = None
    rung: str | None = None

    def take_prepared(self, key: str) -> Prepared | None:
        """What is prepared for a claimed round, once: at a further try it holds no longer."""
        found, self.prepared = self.prepared, None
        return found if found is not None and found.key == key else None

    @cached_property
    def context(self) -> Context:
        """The settings that the run has pinned; read when they are first needed, for ending a run needs none."""
        return Context.from_json(self.text(self.conversation.context))

    @cached_property
    def machine(self) -> Machine:
        """What its sandbox is: a Sandbox's own settings, or what the run gets."""
        if self.conversation.kind == MACHINE:
            return Machine.from_json(self.text(self.conversation.context))
        return self.context.machine

    @property
    def scope(self) -> Scope:
        """Where the conversation's large texts stand."""
        return Scope(self.conversation.object.org, self.conversation.id)

    @property
    def open_run(self) -> Run:
        if self.run is None:
            raise CorruptRow(f"conversation {self.conversation.id}: a step without an open run")
        return self.run

    @property
    def open_turn(self) -> Turn:
        if self.turn is None:
            raise CorruptRow(f"conversation {self.conversation.id}: a step without an open turn")
        return self.turn

    # --- sight ---

    def view(self) -> View:
        return View(
            conversation=self.conversation,
            plan=self._plan(),
            run=self.run,
            tasks=self.tasks,
            sandbox=self.sandbox,
            overdue=self.is_overdue(),
            unpaid=metering.is_due(self.sandbox, self.ports.clock.now()),
            checkpoint=_has_come(self.next_checkpoint(), self.ports.clock.now()),
            idle=_has_come(self.idle_at(), self.ports.clock.now()),
        )

    def _plan(self) -> Plan:
        if self.run is None or self.conversation.stop is not None:
            return Plan(setup=False, routed=False)
        context = self.context
        return Plan(
            setup=context.setup is not None,
            routed=context.model.access == "Nodus",
            source=context.source is not None,
        )

    def next_checkpoint(self) -> datetime | None:
        """When the folder of a run's sandbox is saved next (`kernel.continuity`)."""
        return continuity.next_checkpoint(self.conversation, self.run, self.sandbox)

    def idle_at(self) -> datetime | None:
        """When the sandbox of a run that waits for a message is stopped (NODQ-64); None: not, or it does not wait."""
        head = self.conversation
        waits = self.run is None and not head.ended and head.opened == head.accepted
        if head.kind == MACHINE or not waits or not is_kept(self.sandbox):
            return None
        return continuity.idle_at(self.ports.journal.turn(head.id, head.opened), self.sandbox)

    def is_overdue(self) -> bool:
        """Whether the deadline has come: nothing may be begun any more, and the run must be stopped."""
        return is_overdue(self.conversation, self.ports.clock.now())

    def next_look(self, own: datetime | None) -> datetime | None:
        """When the line must look again if it rests until `own`: at the latest when its sandbox's time is to be paid."""
        return min((at for at in (own, metering.look_at(self.sandbox)) if at is not None), default=None)

    def expire(self) -> None:
        """Stops the run at its deadline; read everything anew then. Raises `ConditionFailed`."""
        expire(self.ports.journal, self.conversation, self.ports.clock)

    def reload(self) -> None:
        """Reads everything anew. Raises `Fenced` when the line has another owner."""
        journal = self.ports.journal
        head = self.owned_head()
        obj = journal.object(head.object)
        self.conversation = head
        self.object = obj or self.object
        self.sandbox = journal.sandbox(head.sandbox) if head.sandbox else None
        self.transcript, self.prepared = None, None  # they may hold what was not committed
        self.look_at_run(journal.run(head.run) if head.run else None)

    def owned_head(self) -> Conversation:
        """The head as it is: whatever was read before this was written under this fence, or before it.

        Raises `Fenced` when the line has another owner.
        """
        head = self.ports.journal.conversation(self.conversation.id)
        if head is None or not owns(self.fence, head):
            raise Fenced(f"line {self.conversation.id}: generation {self.fence.generation} has lost it")
        return head

    def look_at_run(self, run: Run | None) -> None:
        """Reads the turn and the tasks that decisions about an open run need."""
        journal = self.ports.journal
        self.run = run
        if run is None:
            self.turn, self.tasks = None, {}
            return
        if self.turn is None or self.turn.run != run.uid:
            self.turn = journal.turn(run.conversation, run.turn)
            self.transcript = None
        ready = [key(run.sandboxes) for key in (ids.sandbox_key, ids.source_key, ids.setup_key)]
        names = [*ready, ids.ROUTE, ids.round_key(run.rounds)]
        self.tasks = journal.tasks(run.uid, [*names, *sorted(run.open - set(names))])
        last = self.tasks.get(ids.round_key(run.rounds))
        if last is not None:
            missing = [call.key for call in last.calls if call.key not in self.tasks]
            self.tasks |= journal.tasks(run.uid, missing)

    # --- commits on the run ---

    def decide_after(self, settled: Sequence[Task], begun: Sequence[Task] = ()) -> Decision:
        """What would come next once these tasks have settled and begun."""
        run = begin(settle(self.open_run, settled), begun)
        tasks = {**self.tasks, **{task.key: task for task in (*settled, *begun)}}
        return decide(replace(self.view(), run=run, tasks=tasks))

    def record(self, changes: Changes, status: dict[str, Any] | None = None) -> None:
        """Settles and claims in one commit, and shows `status` with it; the sight follows it.

        A run that was shown as stuck, or as waiting for money, goes on from here.
        """
        changes = replace(changes, more=(*changes.more, *self.shows(status)))
        before = self.open_run
        self.run = self.ports.journal.steps.record(self.fence, before, changes)
        settled = tuple(recorded(before, task) for task in changes.settled)
        self._follow((*settled, *changes.begun, *changes.again))
        self.fresh |= {task.key for task in (*changes.begun, *changes.again)}

    def cut(self, tasks: Sequence[Task]) -> None:
        """Settles open tasks of a stopped run."""
        self.run = self.ports.journal.steps.cut(self.fence, self.open_run, tasks)
        self._follow(tasks)

    def retake(self, task: Task, *, resent: bool, left_out: int | None = None) -> Task:
        """Claims a further attempt of an open task, counted as resent where the one before may have run.

        `left_out`: so many messages of results are left out of it, and of all later calls.
        """
        again = replace(
            task,
            attempt=task.attempt + 1,
            resent=task.resent + (1 if resent else 0),
            claim=self.claim(),
            not_before=None,
        )
        if left_out is not None:
            self.run = replace(
                self.open_run, left_out=left_out
            )  # written with the retake, over the version it had
        self._replace(task, again, *self.shows(None))
        self.fresh.add(again.key)
        return again

    def again(self, task: Task, again: Task, command: Command) -> None:
        """A further attempt of an open task, with its command."""
        self._replace(task, again, *placed((command,)), *self.shows(None))
        self.fresh.add(again.key)

    def let_go(self, task: Task, status: dict[str, Any], until: datetime | None = None) -> None:
        """Nobody tries this open task now: the worker that takes it up again has not interrupted anything.

        `status` shows what it waits for, at least `until` then.
        """
        waiting = replace(task, claim=None, not_before=until)
        self._replace(task, waiting, *self.projected(status))
        self.fresh.discard(task.key)

    def failure(self, task: Task, error: str, text: str) -> Task:
        """The task as it has failed: `error` is a stable word, `text` what people and the model are told."""
        return replace(
            task,
            state=TaskState.FAILED,
            finished_at=self.ports.clock.now(),
            result=Result(text=self.keep(text), is_error=True, error=error),
        )

    def _replace(self, old: Task, new: Task, *more: Operation) -> None:
        self.run = self.ports.journal.steps.retake(self.fence, self.open_run, old, new, *more)
        self._follow((new,))

    def claim(self) -> Claim:
        return Claim(self.fence.claimant, self.fence.generation, self.ports.clock.now())

    def _follow(self, tasks: Sequence[Task]) -> None:
        self.tasks = {**self.tasks, **{task.key: task for task in tasks}}

    # --- texts and the projection ---

    def keep(self, text: str, *, head: bool = True) -> Text:
        """Stores a text (in the payload store when it is long); what is no Unicode becomes `?` (FLD-08).

        `head`: somebody shows its beginning.
        """
        return self.ports.payloads.put(self.scope, text.encode(errors="replace").decode(), head=head)

    def text(self, text: Text) -> str:
        return self.ports.payloads.get(self.scope, text)

    def shows(self, status: dict[str, Any] | None) -> tuple[Operation, ...]:
        """What shows a status with a step that goes on, None: the present one, without a reason that has passed."""
        shown = self.object.status if status is None else status
        if shown.get("reason") in PASSING:
            shown = projection.resumed(shown)
        return () if shown is self.object.status else self.projected(shown)

    def projected(self, status: dict[str, Any], *, over: int | None = None) -> tuple[Operation, Operation]:
        """Operations that show `status`; take effect with the commit they are part of.

        `over`: only if this is the stored version.
        """
        now = self.ports.clock.now()
        self.object = versioned(replace(self.object, status=status), now)
        return show(self.object, now, over=over)


def _has_come(at: datetime | None, now: datetime) -> bool:
    return at is not None and now >= at


def owns(fence: Fence, head: Conversation) -> bool:
    """Whether the fence still holds in a conversation's head."""
    return head.line.generation == fence.generation and head.line.claimant == fence.claimant
