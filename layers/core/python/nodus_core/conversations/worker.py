"""Advancing a line: look, decide, do, record, for as long as there is something to do."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from nodus_core.conversations import (
    calls,
    machine_line,
    metered,
    preparation,
    resting,
    resumption,
    rounds,
    routing,
    saving,
    sourcing,
    stopping,
    turns,
    unread,
)
from nodus_core.conversations.heartbeat import Heartbeat
from nodus_core.conversations.ports import AGAIN, DONE, REST, Directive, Ports
from nodus_core.conversations.session import STUCK, Session, owns
from nodus_core.journal.fence import Fence
from nodus_core.journal.objects import projection as show
from nodus_core.journal.objects import versioned
from nodus_core.journal.store import Operation
from nodus_core.kernel import decisions as to
from nodus_core.kernel import projection
from nodus_core.kernel.decide import decide
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, Fenced, StoreUnavailable
from nodus_core.kernel.machines import MACHINE
from nodus_core.kernel.objects import Conversation, Run

ENOUGH_S = 60.0
"""Seconds that an invocation must have left to go on; else the execution calls the next one."""

MOST_LOST_RACES = 20
"""Lost conditions without a commit in between after which something is wrong with the journal or with us."""

MOST_FAILURES = 3
"""Workers in a row that died without progress after which a line rests before it is tried again."""

MOST_ROUNDS = 500
"""Invocations of one execution, after which the line goes on in another one: an execution has at most 25,000 events,
and one round with every retry leaves 36 of them behind."""

FIRST_REST_S = 10.0
LONGEST_REST_S = 600.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Worker:
    """Works on lines; one call of `advance` is one invocation of the line function."""

    ports: Ports

    def advance(self, line: str, generation: int, remaining: Callable[[], float]) -> Directive:
        """Advances a line in the given generation until it must wait or the time is nearly up.

        `remaining` gives the seconds that are left. An old generation ends silently: another execution
        works on the line.
        """
        fence = Fence(line, generation, self.ports.ids.fresh("worker"))
        taken = self._take(fence)
        if taken is None:
            return DONE
        head, run, failed = taken
        if failed and head.line.failures >= MOST_FAILURES:
            return self._back_off(fence, head)
        if head.line.rounds > MOST_ROUNDS:
            return self._hand_over(fence)
        try:
            with Heartbeat(self.ports.journal.lines, fence, self.ports.clock):
                return _work(self._session(fence, remaining, head, run))
        except Fenced as fenced:
            log.info("%s", fenced)
            return DONE

    def _take(self, fence: Fence) -> tuple[Conversation, Run | None, bool] | None:
        """Takes the line; None when this generation is over. Says whether the worker before died over it."""
        journal = self.ports.journal
        for _ in range(MOST_LOST_RACES):
            before = journal.conversation(fence.conversation)
            if before is None or before.closed or before.line.generation != fence.generation:
                return None
            run = journal.run(before.run) if before.run else None
            try:
                head, run = journal.lines.take(before, run, fence, self.ports.clock.now())
            except ConditionFailed:
                continue
            return head, run, head.line.failures > before.line.failures
        raise StoreUnavailable(f"line {fence.conversation} could not be taken: it changes all the time")

    def _back_off(self, fence: Fence, head: Conversation) -> Directive:
        """A line whose workers keep dying is tried ever more rarely: the sweeper starts the next try."""
        journal, failures = self.ports.journal, head.line.failures
        delay = min(FIRST_REST_S * 2 ** min(failures - MOST_FAILURES, 10), LONGEST_REST_S)
        log.error("line %s: %s workers in a row died without progress", head.id, failures)
        for _ in range(MOST_LOST_RACES):
            due = self.ports.clock.now() + timedelta(seconds=delay)
            try:
                journal.lines.rest(fence, head, due, *self._stuck(head, failures), failures=failures)
            except ConditionFailed:
                now = journal.conversation(head.id)
                if now is None or not owns(fence, now):
                    return DONE
                # Somebody left something for the line, perhaps its stop: it is tried soon.
                head, delay = now, FIRST_REST_S
            else:
                return REST
        return REST  # the lease ends, and the sweeper looks again

    def _hand_over(self, fence: Fence) -> Directive:
        """Ends an execution before its events run out; the line's next one starts as after any rest."""
        try:
            self.ports.journal.lines.hand_over(fence, self.ports.clock.now())
        except ConditionFailed as lost:
            log.info("line %s was not handed over: %s", fence.conversation, lost)
            return DONE
        log.info("line %s goes on in its next execution after %s rounds", fence.conversation, MOST_ROUNDS)
        return REST

    def _stuck(self, head: Conversation, failures: int) -> tuple[Operation, ...]:
        """Shows a person that the run does not go on; the log says why."""
        obj, now = self.ports.journal.object(head.object), self.ports.clock.now()
        if obj is None or obj.status.get("phase") not in ("Queued", "Running", "Waiting"):
            return ()
        message = (
            f"Its worker has failed {failures} times in a row; it is tried again ever more rarely. The log of the "
            "line function says why. The run can be cancelled."
        )
        status = projection.waiting(obj.status, STUCK, message)
        stuck = versioned(replace(obj, status=status), now)
        return show(stuck, now)

    def _session(
        self, fence: Fence, remaining: Callable[[], float], head: Conversation, run: Run | None
    ) -> Session:
        obj = self.ports.journal.object(head.object)
        if obj is None:
            raise CorruptRow(f"conversation {head.id}: its object {head.object.name!r} is gone")
        session = Session(self.ports, fence, remaining, obj, head)
        session.sandbox = self.ports.journal.sandbox(head.sandbox) if head.sandbox else None
        session.look_at_run(run)
        return session


def _work(session: Session) -> Directive:
    lost = 0
    while True:
        try:
            directive = _perform(session, decide(session.view()))
            lost = 0
        except ConditionFailed as race:
            lost += 1
            if lost > MOST_LOST_RACES:
                raise
            log.info("line %s looks again: %s", session.conversation.id, race)
            session.reload()
            continue
        if directive is not None:
            return directive
        if session.remaining() < ENOUGH_S:
            return AGAIN


def _perform(session: Session, decision: to.Decision) -> Directive | None:  # noqa: C901, PLR0912 - one arm per decision
    """Carries out one decision. None: look at what comes next."""
    match decision:
        case to.OpenTurn():
            return turns.open_turn(session, decision)
        case to.StartSandbox(task=task):
            return preparation.start_sandbox(session, task)
        case to.CopySource(task=task):
            return sourcing.copy_source(session, task)
        case to.RunSetup(task=task):
            return preparation.run_setup(session, task)
        case to.Route(task=task):
            return routing.choose_model(session, task)
        case to.Ask(round=number, task=task):
            return rounds.ask(session, number, task)
        case to.Place(calls=planned):
            return calls.place(session, planned)
        case to.Watch(tasks=tasks):
            return calls.watch(session, tasks)
        case to.Resume(tasks=tasks):
            return resumption.resume(session, tasks)
        case to.Cut(keys=keys):
            return calls.cut(session, keys)
        case to.FinishTurn():
            return turns.finish_turn(session, decision)
        case to.End():
            return turns.end(session)
        case to.ReturnUnread():
            return unread.return_unread(session)
        case to.Close():
            return turns.close(session)
        case to.Rest() if session.conversation.kind == MACHINE:
            return machine_line.rest(session, decision)
        case to.Rest():
            return resting.rest(session, decision)
        case to.Expire():
            session.expire()
            session.reload()
            return None
        case _:
            return _look_after(session, decision)


def _look_after(session: Session, decision: to.OfSandbox) -> Directive | None:  # noqa: C901 - one arm per decision
    """Carries out a decision on the line's sandbox."""
    match decision:
        case to.Launch():
            return machine_line.launch(session)
        case to.Keep():
            return machine_line.keep(session)
        case to.ExtendMachine():
            return machine_line.extend(session)
        case to.Pause():
            return machine_line.pause(session, decision)
        case to.Settle():
            return machine_line.settle(session, decision)
        case to.BeginSave(parting=parting):
            return saving.begin(session, parting)
        case to.FollowSave():
            return saving.follow(session)
        case to.DropSaves():
            return saving.drop(session, decision)
        case to.ExtendSandbox():
            return stopping.extend(session)
        case to.LetGo(sandbox=sandbox):
            return turns.let_go(session, sandbox, "it is not paid for, or nobody uses it")
        case to.BookSandbox(sandbox=sandbox):
            return metered.book(session, sandbox)
        case to.Release(sandbox=sandbox):
            return turns.release(session, sandbox)
