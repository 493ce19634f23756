"""What a line does next, from what the journal says. The same view gives the same decision.

gone, not booked? ──► BookSandbox        unpaid? ──► ExtendSandbox ─► (no money) LetGo
overdue? ──► Expire ─┐                 a Sandbox's line: `kernel.machines`
stop? ◄──────────────┘ ──► Cut ──► FinishTurn(canceled, failed) ─┐
no turn open ──► OpenTurn | Rest | End ──────────────────────────┤
preparation:  StartSandbox ─► CopySource ─► RunSetup ─► Route    ├─► (ended) ReturnUnread ─► Release ─► Close
saved folder: BeginSave ─► FollowSave ─► DropSaves, between steps and while nothing is asked for
rounds:       Ask ─► Place ─► Watch ─► Ask … ─► FinishTurn ──────┘
               ▲                └─ refused: the sandbox is gone ─► StartSandbox ─► … ────────┐
               └────────────────────────────────────────────────────────────────────────────┘
held:         Rest (a person is asked) ─► Resume ─► where it was
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nodus_core.kernel import ids, machines, metering, saving
from nodus_core.kernel.decisions import (
    Ask,
    BeginSave,
    BookSandbox,
    Close,
    CopySource,
    Cut,
    Decision,
    DropSaves,
    End,
    Expire,
    ExtendSandbox,
    FinishTurn,
    FollowSave,
    LetGo,
    OpenTurn,
    Place,
    Release,
    Rest,
    Resume,
    ReturnUnread,
    Route,
    RunSetup,
    StartSandbox,
    Watch,
)
from nodus_core.kernel.objects import Conversation, Run, StopMarker
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState, TaskState, TurnState
from nodus_core.kernel.stopping import turn_state
from nodus_core.kernel.tasks import Task

MOST_CUT_REPLIES = 2
"""Replies in a row cut by the output limit after which the turn stops (FLD-03)."""

NOT_OFFERED = "ModelNotOffered"
"""Reason of a turn whose model this installation does not serve."""

MOST_STEPS = 10_000
RESERVED_STEPS = 10
"""Steps of one run's journal, and those kept for its end (NOD-078, NODQ-48)."""

OUTPUT_LIMIT = "OutputLimitReached"
"""Reason of a turn whose replies were cut off one after the other."""

JOURNAL_FULL = "JournalLimitReached"
"""Reason of a run that has no room for what comes next."""

MOST_SANDBOXES = 4
"""Sandboxes that one turn may start: its own, and three in the place of lost ones."""

SOURCE_FAILED = "SourceFailed"
SETUP_FAILED = "SetupFailed"
"""Reasons of a run whose source could not be copied, or whose setup has failed (NODQ-03)."""

SANDBOX_LOST = "SandboxLost"
"""Reason of a turn that has lost that many."""

SANDBOX_GONE = "SandboxGone"
"""The word on a step that never began because its sandbox was gone: it certainly had no effect."""

ENDED = "Cancelled"
"""The word on a step whose command was ended on request."""

NEEDS_RESOLUTION = "NeedsResolution"
"""Reason of a run that waits for a person to say what became of a step."""

CUT = "cut"
"""The word on a round whose reply was cut off."""


@dataclass(frozen=True)
class Plan:
    """What every turn of a conversation needs before the model is asked."""

    setup: bool
    routed: bool
    source: bool = False


@dataclass(frozen=True)
class View:
    """What one decision is made from.

    `tasks` holds, of the open run: the last sandbox, its source and its setup, the routing, the last round and
    its calls, as far as they exist. `overdue` says that the deadline has come, `unpaid` that the sandbox's next period must be paid,
    `checkpoint` that its folder is to be saved, `idle` that it is to be stopped while the run waits.
    """

    conversation: Conversation
    plan: Plan
    run: Run | None = None
    tasks: Mapping[str, Task] = field(default_factory=dict[str, Task])
    sandbox: Sandbox | None = None
    overdue: bool = False
    unpaid: bool = False
    checkpoint: bool = False
    idle: bool = False


def decide(view: View) -> Decision:
    """The next thing to do on the main line of a conversation."""
    head = view.conversation
    if view.sandbox is not None and metering.is_unbooked(view.sandbox):
        return BookSandbox(view.sandbox)
    if head.ended:
        return _ended(head)
    if head.stop is not None:
        return _stopped(view, head.stop)
    if view.overdue:
        return Expire()
    if head.kind == machines.MACHINE:
        return machines.next_of(head, view.sandbox, unpaid=view.unpaid)
    return _saves(view) or _metered(view) or _turn(view)


def _saves(view: View) -> Decision | None:
    """What the saved folder asks for; None while there is nothing to do, or a step is at work."""
    head = view.conversation
    if head.saving is not None:
        return FollowSave()
    dropped = (*head.unkept, *saving.superfluous(head.saves))
    if dropped:
        return DropSaves(dropped)
    at_work = view.run is not None and view.run.open
    return BeginSave(None) if view.checkpoint and not at_work else None


def _metered(view: View) -> Decision | None:
    """What the sandbox's time asks for; None while it is paid."""
    if view.sandbox is not None and view.sandbox.state is SandboxState.RELEASING:
        return LetGo(view.sandbox)
    return ExtendSandbox() if view.unpaid else None


def _turn(view: View) -> Decision:
    head = view.conversation
    if view.run is None:
        if head.opened < head.accepted:
            return OpenTurn(head.opened + 1)
        return BeginSave(machines.IDLE) if view.idle else Rest("MessageWait")
    if view.run.selection is None and not view.plan.routed:
        return _failed(NOT_OFFERED)
    if not view.run.seq and not view.run.open and room(head, view.run) == 0:
        return _failed(JOURNAL_FULL)
    return _held(view, view.run) or _preparation(view, view.run) or _rounds(view, view.run)


def _ended(head: Conversation) -> Decision:
    if head.opened + head.returned < head.accepted:
        return ReturnUnread()
    if head.sandbox:
        return Release(head.sandbox)
    names = (*(save.name for save in head.saves), *head.unkept, *([head.saving.name] if head.saving else []))
    return DropSaves(names) if names else Close()


def _stopped(view: View, stop: StopMarker) -> Decision:
    if view.run is None:
        return End()
    if view.run.open:
        return Cut(tuple(sorted(view.run.open)))
    return FinishTurn(turn_state(stop), ends=True, reason=stop.reason)


def _held(view: View, run: Run) -> Decision | None:
    """What steps of unknown outcome ask for; None when there are none, or others still run (NOD-092).

    The run goes on once a person has spoken of each of them.
    """
    opened = [view.tasks[key] for key in sorted(run.open)]
    held = tuple(task for task in opened if task.state is TaskState.UNCERTAIN)
    if not held:
        return None
    if not run.attention:
        return Resume(held)
    return None if len(held) < len(opened) else Rest(NEEDS_RESOLUTION)


def _preparation(view: View, run: Run) -> Decision | None:
    """Sandbox, source, setup and routing in this order; None when all of them are done.

    A sandbox of an earlier turn that is still there has its files and has been set up.
    """
    step = view.tasks.get(ids.sandbox_key(run.sandboxes))
    if step is None and run.rounds == 0 and not is_up(view.sandbox):
        return _another_sandbox(run)
    if step is not None and step.state is TaskState.RUNNING:
        return StartSandbox(step)
    if step is not None and step.state is TaskState.FAILED:
        return _failed("SandboxStartFailed")
    furnished = step is None or was_restored(step)
    needed = None if furnished else _furnishing(view, run)
    if needed is not None:
        return needed
    return _routing(view) if view.plan.routed else None


def _furnishing(view: View, run: Run) -> Decision | None:
    """What the sandbox that the run started last still needs: its source, then its setup; None when it has both."""
    needed = None
    if view.plan.source:
        needed = _furnished(view, run, ids.source_key(run.sandboxes), CopySource, SOURCE_FAILED)
    if needed is None and view.plan.setup:
        needed = _furnished(view, run, ids.setup_key(run.sandboxes), RunSetup, SETUP_FAILED)
    return needed


def _furnished(
    view: View, run: Run, key: str, step: Callable[[Task | None], Decision], failed: str
) -> Decision | None:
    """One step of that; None when it is done."""
    task = view.tasks.get(key)
    if task is None:
        return step(None) if is_up(view.sandbox) else _another_sandbox(run)
    if task.state is TaskState.RUNNING:
        return step(task)
    if task.state is TaskState.COMPLETED:
        return None
    return _another_sandbox(run) if _never_began(task) or _was_ended(task) else _failed(failed)


def was_restored(step: Task) -> bool:
    """Whether a sandbox took up a saved folder, which holds what the setup has done there (NOD-161)."""
    return step.result is not None and not step.result.is_error


def _another_sandbox(run: Run) -> Decision:
    """A first sandbox, or one in the place of a lost one."""
    return StartSandbox(None) if run.sandboxes < MOST_SANDBOXES else _failed(SANDBOX_LOST)


def _never_began(task: Task | None) -> bool:
    return task is not None and task.result is not None and task.result.error == SANDBOX_GONE


def _was_ended(task: Task) -> bool:
    """Whether its command was ended on our request: in a run that goes on, for want of money for its sandbox."""
    return task.result is not None and task.result.error == ENDED


def _routing(view: View) -> Decision | None:
    route = view.tasks.get(ids.ROUTE)
    if route is None or route.state is TaskState.RUNNING:
        return Route(route)
    return None if route.state is TaskState.COMPLETED else _failed(NOT_OFFERED)


def _rounds(view: View, run: Run) -> Decision:
    if run.rounds == 0:
        return Ask(1, None) if is_up(view.sandbox) else _another_sandbox(run)
    last = view.tasks[ids.round_key(run.rounds)]
    if last.state is TaskState.RUNNING:
        return Ask(run.rounds, last)
    if last.state is not TaskState.COMPLETED:
        return _finish(view, TurnState.FAILED, last.result.error if last.result else None)
    return _calls(view, run, last) or _next_round(view, run, last)


def _calls(view: View, run: Run, last: Task) -> Decision | None:
    """What the calls of the last message still need; None when every one has its result."""
    running = tuple(
        view.tasks[call.key]
        for call in last.calls
        if call.key in run.open and view.tasks[call.key].state is TaskState.RUNNING
    )
    if running:
        return Watch(running)
    unplaced = tuple(call for call in last.calls if call.key not in view.tasks)
    return Place(unplaced) if unplaced else None


def _next_round(view: View, run: Run, last: Task) -> Decision:
    was_cut = last.result is not None and last.result.error == CUT
    if was_cut and run.cut_rounds >= MOST_CUT_REPLIES:
        return _finish(view, TurnState.FAILED, OUTPUT_LIMIT)
    more = bool(last.calls) or was_cut
    if (more or _called_in_vain(last)) and room(view.conversation, run) == 0:
        return _failed(JOURNAL_FULL)
    if not is_up(view.sandbox) and any(_never_began(view.tasks.get(call.key)) for call in last.calls):
        # Only now: calls that were written for files that are gone must not meet an empty sandbox.
        return _another_sandbox(run)
    if more:
        return Ask(run.rounds + 1, None)
    return _finish(view, TurnState.COMPLETED, None)


def _finish(view: View, state: TurnState, reason: str | None) -> FinishTurn:
    head = view.conversation
    more = head.keep_alive or head.accepted > head.opened
    return FinishTurn(state, ends=not more, reason=reason)


def _failed(reason: str) -> FinishTurn:
    """No later turn could do better (no sandbox, no room in the journal): the conversation ends."""
    return FinishTurn(TurnState.FAILED, ends=True, reason=reason)


def _called_in_vain(last: Task) -> bool:
    """Whether a reply made calls of which none became a step, for want of room: it has no answer then."""
    return last.result is not None and last.result.text is None and not last.calls


def room(conversation: Conversation, run: Run) -> int:
    """Steps that may still be added before those that the end of a run needs (NOD-078)."""
    return max(MOST_STEPS - RESERVED_STEPS - conversation.steps - run.seq - len(run.open), 0)


def is_up(sandbox: Sandbox | None) -> bool:
    """Whether there is a sandbox whose daemon has come up."""
    return sandbox is not None and sandbox.state is SandboxState.RUNNING
