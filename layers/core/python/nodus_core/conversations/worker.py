"""Advancing a line: look, decide, do, record, for as long as there is something to do."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from nodus_core.conversations import calls, preparation, rounds, routing, turns
from nodus_core.conversations.context import Context
from nodus_core.conversations.heartbeat import Heartbeat
from nodus_core.conversations.ports import AGAIN, DONE, REST, Directive, Ports
from nodus_core.conversations.session import Session
from nodus_core.journal.fence import Fence
from nodus_core.journal.payloads import Scope
from nodus_core.kernel import decide as to
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, Fenced
from nodus_core.kernel.objects import Conversation

ENOUGH_S = 60.0
"""Seconds that an invocation must have left to go on; else the execution calls the next one."""

MOST_LOST_RACES = 20
"""Lost conditions without a commit in between after which something is wrong with the journal or with us."""

MOST_FAILURES = 3
"""Takings in a row without progress after which a line rests before it is tried again."""

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
        session = self._take(fence, remaining)
        if session is None:
            return DONE
        try:
            with Heartbeat(self.ports.journal.lines, fence, self.ports.clock):
                return _work(session)
        except Fenced as fenced:
            log.info("%s", fenced)
            return DONE

    def _take(self, fence: Fence, remaining: Callable[[], float]) -> Session | None:
        """Takes the line; None when this generation is over."""
        journal = self.ports.journal
        for _ in range(MOST_LOST_RACES):
            head = journal.conversation(fence.conversation)
            if head is None or head.line.generation != fence.generation:
                return None
            run = journal.run(head.run) if head.run else None
            try:
                head, run = journal.lines.take(head, run, fence, self.ports.clock.now())
            except ConditionFailed:
                continue
            session = self._session(fence, remaining, head)
            session.sandbox = journal.sandbox(head.sandbox) if head.sandbox else None
            session.look_at_run(run)
            return session
        raise CorruptRow(f"line {fence.conversation} could not be taken: its conditions never hold")

    def _session(self, fence: Fence, remaining: Callable[[], float], head: Conversation) -> Session:
        scope = Scope(head.object.org, head.id)
        obj = self.ports.journal.object(head.object)
        if obj is None:
            raise CorruptRow(f"conversation {head.id}: its object {head.object.name!r} is gone")
        context = Context.from_json(self.ports.payloads.get(scope, head.context))
        return Session(self.ports, fence, remaining, context, obj, head)


def _work(session: Session) -> Directive:
    failures = session.conversation.line.failures
    if failures >= MOST_FAILURES:
        return _back_off(session, failures)
    lost = 0
    while True:
        try:
            directive = _perform(session, to.decide(session.view()))
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


def _back_off(session: Session, failures: int) -> Directive:
    """A line whose workers keep dying is tried ever more rarely; the sweeper starts the next try."""
    delay = min(10.0 * 2 ** (failures - MOST_FAILURES), 600.0)
    log.error("line %s: %s workers in a row died without progress", session.conversation.id, failures)
    try:
        return turns.rest_until_due(session, delay)
    except ConditionFailed:
        return REST


def _perform(session: Session, decision: to.Decision) -> Directive | None:  # noqa: C901, PLR0912 - one arm per decision
    """Carries out one decision. None: look at what comes next."""
    match decision:
        case to.OpenTurn():
            return turns.open_turn(session, decision)
        case to.StartSandbox(task=task):
            return preparation.start_sandbox(session, task)
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
        case to.Cut(keys=keys):
            return calls.cut(session, keys)
        case to.FinishTurn():
            return turns.finish_turn(session, decision)
        case to.End():
            return turns.end(session)
        case to.Release(sandbox=sandbox):
            return turns.release(session, sandbox)
        case to.Close():
            return turns.close(session)
        case to.Rest():
            return turns.rest(session, decision)
