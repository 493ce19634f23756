"""Opening and finishing turns, and what follows when a conversation takes no more input."""

import logging
from dataclasses import replace

from nodus_core.conversations import resting
from nodus_core.conversations.ports import DONE, Directive
from nodus_core.conversations.removal import purge
from nodus_core.conversations.sandbox_ends import end_task, probe
from nodus_core.conversations.selection import CONFIGURED, Selection
from nodus_core.conversations.session import Session
from nodus_core.conversations.unread import with_undelivered
from nodus_core.inference.errors import ModelNotOffered
from nodus_core.kernel import ids, metering, projection
from nodus_core.kernel.decide import JOURNAL_FULL, MOST_SANDBOXES, NOT_OFFERED, OUTPUT_LIMIT, SANDBOX_LOST
from nodus_core.kernel.decisions import FinishTurn, OpenTurn
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.machines import MACHINE
from nodus_core.kernel.objects import Hold, Run, Turn
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import ALIVE_SANDBOXES, InputState, RunState, SandboxState, TaskState, TurnState
from nodus_core.kernel.text import cut, preview

log = logging.getLogger(__name__)

PROMPT_PREVIEW = 1024
"""Bytes of a turn's prompt in `status.turns` (NODQ-24)."""

RELEASE_WAIT_S = 5.0
"""Seconds that a worker waits for a sandbox's task to end before it lets the line go."""

RELEASE_LOOK_S = 15.0
"""Seconds until it is looked at again; the event of the task's end may come first."""

ENDS = {
    JOURNAL_FULL: "The run has as many steps as one run may have. Start a new run for what is left to do.",
    OUTPUT_LIMIT: (
        "Several replies in a row were cut off by the limit on output tokens. Start a new run with a higher "
        "spec.model.maxTokens, or ask for less at once."
    ),
    SANDBOX_LOST: f"The turn has lost {MOST_SANDBOXES} sandboxes, and no further one is started. Start a new run.",
}
"""What people are told where a limit has ended a turn: no step has failed it."""


def open_turn(session: Session, decision: OpenTurn) -> None:
    """The next input becomes a turn, with a run under what is left of the cap."""
    head, now = session.conversation, session.ports.clock.now()
    entry = session.ports.journal.input(head.id, decision.number)
    if entry is None or entry.state is not InputState.QUEUED:
        session.owned_head()  # else the line's new owner has opened it
        state = entry.state if entry else "missing"
        raise CorruptRow(f"conversation {head.id}: input {decision.number} is to be read and is {state}")
    uid = ids.run_id(head.id, decision.number)
    turn = Turn(
        conversation=head.id,
        number=decision.number,
        input=entry.seq,
        run=uid,
        state=TurnState.OPEN,
        prompt=cut(preview(entry.text), PROMPT_PREVIEW),
        started_at=now,
    )
    run = Run(
        uid=uid,
        conversation=head.id,
        turn=turn.number,
        state=RunState.RUNNING,
        lines={session.fence.branch: Hold(session.fence.generation, session.fence.claimant)},
        available=head.cap - head.spent,
        created_at=now,
        selection=_configured(session),
        left_out=_left_out_before(session, decision.number),
    )
    status = projection.working(session.object.status, turn)
    session.conversation = session.ports.journal.turns.open_turn(
        session.fence, head, turn, run, session.projected(status)
    )
    session.run, session.turn, session.tasks = run, turn, {}
    session.transcript = None


def _left_out_before(session: Session, turn: int) -> int:
    """What the calls of the turn before left out, this one's do as well."""
    before = session.ports.journal.run(ids.run_id(session.conversation.id, turn - 1)) if turn > 1 else None
    return before.left_out if before else 0


def _configured(session: Session) -> str | None:
    """The selection of an On Demand turn; None for a routed one, and for a model that is not served."""
    if session.view().plan.routed:
        return None
    try:
        target = session.ports.models.target(session.context.model, None)
    except ModelNotOffered as error:
        log.warning("conversation %s: %s", session.conversation.id, error)
        return None
    return Selection(target, CONFIGURED).to_json()


def finish_turn(session: Session, decision: FinishTurn) -> None:
    """The turn gets its answer, or the reason why it has none; its run settles, and holds no money any more."""
    resting.give_back(session)
    head, run, now = session.conversation, session.open_run, session.ports.clock.now()
    last = session.tasks.get(ids.round_key(run.rounds))
    answer = last.result.text if last and last.result and decision.state is TurnState.COMPLETED else None
    chosen = Selection.of(run) if run.selection else None
    turn = replace(
        session.open_turn,
        state=decision.state,
        finished_at=now,
        cost=run.spent,
        usage=run.usage,
        answer=answer,
        reason=decision.reason,
        model=chosen.target.shown_name if chosen else None,
        chosen_by=chosen.chosen_by if chosen else None,
    )
    after = replace(head, ended=decision.ends, spent=head.spent + run.spent)
    message = (
        _failure(session, decision.reason)
        if decision.state is TurnState.FAILED and head.stop is None
        else None
    )
    status = projection.answered(session.object.status, after, turn, now, message)
    if decision.ends:
        status = with_undelivered(session, status, decision.reason)
    session.conversation = session.ports.journal.turns.finish_turn(
        session.fence, head, run, turn, session.projected(status), ends=decision.ends
    )
    session.run, session.turn, session.tasks = None, None, {}


def _failure(session: Session, reason: str | None) -> str | None:
    """What is known of a failure beyond its reason: what the step that failed the turn says."""
    if reason in ENDS:
        return ENDS[reason]
    failed = [task for task in session.tasks.values() if task.state is TaskState.FAILED and task.result]
    if not failed:
        return _not_offered(session) if reason == NOT_OFFERED else None
    last = max(failed, key=lambda task: task.finished_at or task.started_at)
    if last.result is None or last.result.text is None:
        return None
    (text,) = session.ports.payloads.with_heads(session.scope, [last.result.text])
    return preview(text, resting.MESSAGE_LIMIT)


def _not_offered(session: Session) -> str:
    """Names the model of a turn that never asked one, and what is offered in its place."""
    model = session.context.model
    try:
        session.ports.models.target(model, None)
    except ModelNotOffered as error:
        return cut(str(error), resting.MESSAGE_LIMIT)
    return f"Model {model.name!r} was not offered when the turn began, and is now. Start a new run."


def end(session: Session) -> None:
    """Stopped while no turn was open."""
    stop = session.conversation.stop
    if stop is None:
        raise CorruptRow(f"conversation {session.conversation.id} is to end, and nobody stopped it")
    status = with_undelivered(session, projection.stopping(session.object.status, stop.reason), stop.reason)
    session.conversation = session.ports.journal.turns.end(
        session.fence, session.conversation, session.projected(status)
    )


def release(session: Session, sandbox_id: str) -> Directive | None:
    """Lets the sandbox go; the line goes on when it is gone (NOD-043, NOD-044)."""
    ports = session.ports
    sandbox = ports.journal.sandbox(sandbox_id)
    if sandbox is None:
        raise CorruptRow(f"conversation {session.conversation.id}: its sandbox {sandbox_id} has no row")
    if sandbox.state in ALIVE_SANDBOXES:
        ports.journal.sandboxes.release(sandbox_id)
    if sandbox.state is not SandboxState.GONE or metering.is_unbooked(sandbox):
        return let_go(session, sandbox, "the run has ended")
    ports.journal.sandboxes.disown(session.fence, sandbox_id)
    session.conversation, session.sandbox = replace(session.conversation, sandbox=None), sandbox
    return None


def let_go(session: Session, sandbox: Sandbox, reason: str) -> Directive | None:
    """Waits until a released sandbox is gone; what its time has cost is booked next."""
    if sandbox.state is not SandboxState.GONE:
        end_task(session, sandbox, reason)
    gone = _gone(session, sandbox.id)
    if gone is None:
        return resting.wait_until(session, RELEASE_LOOK_S)
    session.sandbox = gone
    return None


def _gone(session: Session, sandbox_id: str) -> Sandbox | None:
    """The sandbox once its task has ended, which is looked at for a few seconds; None: it has not."""
    clock, started, interval = session.ports.clock, session.ports.clock.now(), 0.05
    while True:
        sandbox = session.ports.journal.sandbox(sandbox_id)
        if sandbox is None:
            raise CorruptRow(f"conversation {session.conversation.id}: its sandbox {sandbox_id} has no row")
        if sandbox.state is SandboxState.GONE:
            return sandbox
        probe(session, sandbox)
        if (clock.now() - started).total_seconds() >= RELEASE_WAIT_S:
            return None
        clock.sleep(interval)
        interval = min(interval * 2, 1.0)


def close(session: Session) -> Directive:
    """The line is over; what people see last is written with it. What is to be deleted is removed instead,
    and so is a Sandbox whose time has come."""
    ports, head, now = session.ports, session.conversation, session.ports.clock.now()
    obj = ports.journal.object(head.object)
    if obj is None:
        raise CorruptRow(f"conversation {head.id}: its object {head.object.name!r} is gone")
    if obj.deleted_at is not None or head.kind == MACHINE:
        purge(ports.journal, ports.payloads, ports.clock, obj, fence=session.fence)
        return DONE
    status = obj.status
    if session.sandbox is not None or "sandbox" in status:
        status = projection.without_sandbox(status)
    if head.stop is not None and status.get("phase") not in projection.FINAL_PHASES:
        status = projection.stopped(status, head.stop, now)
    session.object = obj
    # Over exactly this version: a deletion that is marked in between is seen before the line lets go.
    ports.journal.turns.close(session.fence, head, now, session.projected(status, over=obj.version))
    return DONE
