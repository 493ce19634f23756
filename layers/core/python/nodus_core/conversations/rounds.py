"""Model rounds: seal the request, reserve its upper bound, claim, call, record the reply with its calls' claims."""

import json
import logging
from dataclasses import replace
from functools import partial

from nodus_core.conversations import backoff, calls, commands, cooling, endings, funding, requests
from nodus_core.conversations.attendance import attended
from nodus_core.conversations.own_keys import OwnKeys
from nodus_core.conversations.ports import AGAIN, Directive
from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.inference import pricing, window
from nodus_core.inference.errors import (
    ContextTooLong,
    ModelOutcomeUnknown,
    ModelRefusedRequest,
    ModelUnavailable,
)
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.own_keys import UnusableKey
from nodus_core.journal.steps import Changes
from nodus_core.kernel import ids
from nodus_core.kernel.decide import CUT
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.projection import MODEL_UNAVAILABLE as UNAVAILABLE
from nodus_core.kernel.states import Guarantee, TaskState
from nodus_core.kernel.tasks import Result, Task

log = logging.getLogger(__name__)


def ask(session: Session, number: int, task: Task | None) -> Directive | None:
    """Makes the model call of a round and records its reply."""
    if session.remaining() < backoff.CALL_TIME_S:
        if task is not None and task.key in session.fresh:
            # Claimed and not made: whoever takes it up must not think that it was.
            session.let_go(task, session.object.status)
        return AGAIN
    prepared = session.take_prepared(ids.round_key(number))
    request = prepared.request if prepared else None
    if task is None:
        request = requests.sealed(session, number)
        task = requests.round_claim(session, number, request)
        blocked = funding.secure(session, task.reserved or ZERO)
        if blocked is not None:
            return blocked
        session.record(Changes(begun=(task,)))
    elif task.key not in session.fresh:
        taken = _take_up(session, task)
        if not isinstance(taken, Task):
            return taken
        task = taken
    if not (prepared and prepared.gate_is_free) and (seconds := _held_back(session)) is not None:
        return backoff.hold(session, task, seconds)
    return _call(session, task, request or requests.sealed(session, number))


def _take_up(session: Session, task: Task) -> Task | Directive | None:
    """Claims a further try of an open call that this invocation has not claimed; else what comes in its place."""
    if task.claim is not None and task.guarantee is Guarantee.AT_MOST_ONCE:
        endings.leave_uncertain(session, task, "Its worker died before it could record a reply.")
        return None
    if (waits := backoff.early(session, task)) is not None:
        return waits
    if (seconds := _held_back(session)) is not None:
        return backoff.hold(session, task, seconds)
    if task.attempt >= backoff.MOST_ATTEMPTS:
        text = "Its workers died before they could record a reply."
        endings.fail(session, task, UNAVAILABLE, text, None)
        return None
    return session.retake(task, resent=task.claim is not None)


def _held_back(session: Session) -> float | None:
    """Seconds until the turn's model may be asked; None: now."""
    return cooling.left(session, Selection.of(session.open_run).target)


def _call(session: Session, task: Task, request: ModelRequest) -> Directive | None:
    own_keys = OwnKeys(session.ports.journal, session.ports.vault)
    try:
        key = own_keys.read(session.object.key, request.target)
        session.fresh.discard(task.key)  # from here on it may have been made, whatever becomes of this worker
        reply = attended(session, partial(session.ports.models.call, request, key))
    except UnusableKey as error:
        endings.fail(session, task, "ApiKeyUnusable", str(error), ZERO)
        return None
    except ContextTooLong as error:
        return _shorten(session, task, error)
    except ModelRefusedRequest as error:
        endings.fail(session, task, "ModelRequestRefused", str(error), ZERO)
        return None
    except (ModelUnavailable, ModelOutcomeUnknown) as error:
        if isinstance(error, ModelOutcomeUnknown) and task.guarantee is Guarantee.AT_MOST_ONCE:
            endings.leave_uncertain(session, task, str(error))
            return None
        return backoff.wait_for_model(session, task, error)
    if reply is None:
        session.reload()  # what was decided before the stop marker holds no longer
        return None
    _record(session, task, request, reply)
    return None


def _shorten(session: Session, task: Task, error: ContextTooLong) -> None:
    """Makes the call again without the oldest results; without any left to leave out, the turn ends."""
    left_out = window.further(requests.transcript(session).messages, session.open_run.left_out)
    if left_out == session.open_run.left_out or task.attempt >= backoff.MOST_ATTEMPTS:
        endings.fail(session, task, "ContextWindowExceeded", str(error), None if task.resent else ZERO)
        return
    log.warning("run %s: %s; %s messages of results are left out", task.run, error, left_out)
    session.retake(task, resent=False, left_out=left_out)


def _record(session: Session, task: Task, request: ModelRequest, reply: ModelReply) -> None:
    """Settles the round, and begins what its calls need, in one commit."""
    was_cut = reply.stop == "cut"
    plan = calls.planned(session, task, reply, was_cut=was_cut)
    error = CUT if was_cut else None
    # No text at all tells `decide` that a reply made calls of which none found room.
    says_something = bool(plan.calls and reply.message.text) or not reply.message.calls
    done = replace(
        endings.settled_call(session, task, request, reply),
        message=session.keep(json.dumps(reply.message.to_record(), ensure_ascii=False), head=False),
        calls=plan.calls,
        size=pricing.size_of(request),
        left_out=session.open_run.left_out,
        result=Result(text=session.keep(reply.message.text) if says_something else None, error=error),
    )
    if reply.stop == "refused":
        done = replace(
            done,
            state=TaskState.FAILED,
            result=Result(text=session.keep(reply.message.text), is_error=True, error="ModelRefused"),
        )
    try:
        session.record(
            Changes(
                settled=(done, *plan.refused),
                begun=plan.begun,
                commands=plan.commands,
                left_out=_left_out_after(session, request, reply),
            )
        )
    except ConditionFailed:
        endings.cut_reply(session, done)
        return
    requests.transcript(session).measure(done)
    requests.transcript(session).add_reply(done.key, reply.message, was_cut=was_cut)
    if plan.begun:
        commands.ring(session)
    calls.hear(session)


def _left_out_after(session: Session, request: ModelRequest, reply: ModelReply) -> int:
    """How many messages of results the calls after this reply leave out."""
    run = session.open_run
    if not window.is_full(endings.credible(request, reply.usage), request.target.context_window):
        return run.left_out
    return window.further(requests.transcript(session).messages, run.left_out)
