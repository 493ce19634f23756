"""Choosing the turn's model: managed turns are routed by a small model call of their own (NOD-056)."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from nodus_core.conversations import backoff, cooling, endings, funding, requests
from nodus_core.conversations.attendance import attended
from nodus_core.conversations.ports import AGAIN, Directive
from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.inference import routing
from nodus_core.inference.errors import (
    ModelNotOffered,
    ModelOutcomeUnknown,
    ModelRefusedRequest,
    ModelUnavailable,
)
from nodus_core.inference.exchange import ModelReply, ModelRequest, UserMessage
from nodus_core.journal.steps import Changes
from nodus_core.journal.turns import chosen
from nodus_core.kernel import ids, projection
from nodus_core.kernel.decide import NOT_OFFERED
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.states import Guarantee, TaskKind, TaskState
from nodus_core.kernel.tasks import Result, Task
from nodus_core.resources.families import Family

log = logging.getLogger(__name__)


def choose_model(session: Session, task: Task | None) -> Directive | None:
    """Asks the router which family serves this prompt; when it cannot tell, the fallback serves it (NOD-059)."""
    try:
        families = session.ports.models.families(session.context.model)
    except ModelNotOffered as error:
        endings.fail(session, task or _task(session, ZERO, None), NOT_OFFERED, str(error), ZERO)
        return None
    only = routing.settled(families)
    if only is not None and task is None:
        _settle(session, _task(session, ZERO, None), only)
        return None
    if session.remaining() < backoff.CALL_TIME_S:
        return AGAIN
    request = _request(session, families)
    if task is None:
        task = _task(session, requests.reserve(session, request), request.target.shown_name)
        blocked = funding.secure(session, task.reserved or ZERO)
        if blocked is not None:
            return blocked
        session.record(Changes(begun=(task,)))
    elif task.key not in session.fresh:
        task = session.retake(task, resent=task.claim is not None)
    # A reply that no worker lives to record must not be asked for without end.
    if task.attempt > backoff.MOST_ATTEMPTS:
        _settle(session, task, routing.fallback(families))
        return None
    done, reply = _ask_router(session, task, request)
    _settle(session, done, routing.routed(reply, families) if reply else routing.fallback(families))
    return None


def _task(session: Session, reserved: Decimal | None, model: str | None) -> Task:
    """The routing step with its reserve, not yet written."""
    return Task(
        run=session.open_run.uid,
        key=ids.ROUTE,
        kind=TaskKind.MODEL,
        tool=ids.ROUTE,
        state=TaskState.RUNNING,
        guarantee=Guarantee.AT_LEAST_ONCE,
        number=1,
        started_at=session.ports.clock.now(),
        claim=session.claim(),
        reserved=reserved,
        model=model,
    )


def _request(session: Session, families: Sequence[Family]) -> ModelRequest:
    prompt = requests.transcript(session).messages[-1]
    text = prompt.text if isinstance(prompt, UserMessage) else ""
    prefix = f"call_{session.open_run.turn}_route_"
    return routing.routing_request(text, families, session.ports.models.router(), prefix)


def _ask_router(session: Session, task: Task, request: ModelRequest) -> tuple[Task, ModelReply | None]:
    """The router's reply, None without one; the task carries what the call cost, None where it may have run."""
    if cooling.left(session, request.target) is not None:
        log.info("the router of run %s is asked nothing now; the fallback serves the turn", task.run)
        return replace(task, cost=ZERO if task.resent == 0 else None), None
    try:
        reply = attended(session, partial(session.ports.models.call, request))
    except (ModelRefusedRequest, ModelUnavailable, ModelOutcomeUnknown) as error:
        log.warning("router of run %s: %s; the fallback serves the turn", session.open_run.uid, error)
        may_have_run = isinstance(error, ModelOutcomeUnknown) or task.resent > 0
        if isinstance(error, ModelUnavailable) and error.busy and error.retry_after:
            cooling.cool(session, request.target, error.retry_after)
        return replace(task, cost=None if may_have_run else ZERO), None
    if reply is None:
        return replace(task, cost=None), None  # stopped: it is settled as canceled
    return endings.settled_call(session, task, request, reply), reply


def _settle(session: Session, task: Task, choice: routing.Choice) -> None:
    """Records the choice with the routing step; its cost stands on the task, unknown where it may have run."""
    target = session.ports.models.target(session.context.model, choice.family)
    done = replace(
        task,
        state=TaskState.COMPLETED,
        finished_at=task.finished_at or session.ports.clock.now(),
        result=Result(text=session.keep(f"{target.shown_name} ({choice.chosen_by})")),
    )
    selection = Selection(target, choice.chosen_by).to_json()
    turn = replace(session.open_turn, model=target.shown_name, chosen_by=choice.chosen_by)
    status = projection.working(session.object.status, turn)
    try:
        session.record(Changes(settled=(done,), selection=selection, more=(chosen(turn),)), status)
    except ConditionFailed:
        endings.cut_reply(session, done)
    else:
        session.turn = turn
