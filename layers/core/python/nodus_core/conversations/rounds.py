"""Model rounds: seal the request, reserve its upper bound, claim, call, record the reply with its calls' claims."""

import json
import logging
from dataclasses import replace

from nodus_core.conversations import calls, commands
from nodus_core.conversations.ports import AGAIN, Directive
from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.conversations.transcript import Transcript, read_transcript
from nodus_core.conversations.turns import rest, rest_until_due
from nodus_core.inference import pricing
from nodus_core.inference.errors import ModelOutcomeUnknown, ModelRefusedRequest, ModelUnavailable
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.journal.steps import Changes
from nodus_core.kernel import ids
from nodus_core.kernel.decide import CUT, Rest
from nodus_core.kernel.objects import ZERO, Result, Task, Usage
from nodus_core.kernel.progress import fits
from nodus_core.kernel.states import Guarantee, TaskKind, TaskState
from nodus_core.sandboxes.tools import TOOLS

MOST_ATTEMPTS = 8
"""Tries of one model call, whatever made the earlier ones fail."""

LONGEST_INLINE_WAIT_S = 10.0
"""Seconds of a provider's waiting time that a worker sits out; longer ones let the line rest (FLD-04)."""

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0

CALL_TIME_S = 330.0
"""Seconds that an invocation must have left to begin a model call: the providers' time-out and some."""

log = logging.getLogger(__name__)


def transcript(session: Session) -> Transcript:
    """The conversation so far; read from the journal once per invocation."""
    if session.transcript is None:
        session.transcript = read_transcript(
            session.ports.journal,
            session.ports.payloads,
            session.scope,
            session.conversation,
            session.context.model.max_tokens,
        )
    return session.transcript


def sealed(session: Session, number: int) -> ModelRequest:
    """The request of a round: a function of what is settled, so that sealing again gives the same."""
    run = session.open_run
    return ModelRequest(
        target=Selection.of(run).target,
        system=session.context.system,
        messages=tuple(transcript(session).messages),
        tools=TOOLS,
        max_tokens=session.context.model.max_tokens,
        id_prefix=f"call_{run.turn}_{number}_",
    )


def round_claim(session: Session, number: int) -> Task:
    """The claim of a round with the reserve of its upper bound, not yet written (NOD-128)."""
    selection = Selection.of(session.open_run)
    bound = pricing.upper_bound(sealed(session, number))
    return Task(
        run=session.open_run.uid,
        key=ids.round_key(number),
        kind=TaskKind.MODEL,
        state=TaskState.RUNNING,
        guarantee=Guarantee.AT_LEAST_ONCE,
        number=number,
        started_at=session.ports.clock.now(),
        claim=session.claim(),
        reserved=bound,
        model=selection.target.shown_name,
    )


def ask(session: Session, number: int, task: Task | None) -> Directive | None:
    """Makes the model call of a round and records its reply."""
    if session.remaining() < CALL_TIME_S:
        return AGAIN
    if task is None:
        task = round_claim(session, number)
        if not fits(session.open_run, task.reserved or ZERO):
            return rest(session, Rest("MaxCostReached"))
        session.record(Changes(begun=(task,)))
    elif task.key not in session.fresh:
        if task.attempt >= MOST_ATTEMPTS:
            _fail(session, task, "ModelUnavailable", "Its workers died before they could record a reply.")
            return None
        task = session.retake(task, resent=task.claim is not None)
    return _call(session, task, sealed(session, number))


def _call(session: Session, task: Task, request: ModelRequest) -> Directive | None:
    try:
        reply = session.ports.models.call(request)
    except ModelRefusedRequest as error:
        _fail(session, task, "ModelRequestRefused", str(error))
        return None
    except (ModelUnavailable, ModelOutcomeUnknown) as error:
        return wait_for_model(session, task, error)
    _record(session, task, request, reply)
    return None


def wait_for_model(
    session: Session, task: Task, error: ModelUnavailable | ModelOutcomeUnknown
) -> Directive | None:
    """Waits as the provider asks, then lets the call be made again, at most eight times in all."""
    log.warning("model call %s/%s, attempt %s: %s", task.run, task.key, task.attempt, error)
    if task.attempt >= MOST_ATTEMPTS:
        _fail(session, task, "ModelUnavailable", str(error))
        return None
    delay = min(FIRST_DELAY_S * 2 ** (task.attempt - 1), LONGEST_DELAY_S)
    if isinstance(error, ModelUnavailable) and error.retry_after is not None:
        delay = max(error.retry_after, FIRST_DELAY_S)
    may_have_run = isinstance(error, ModelOutcomeUnknown)
    if delay <= min(LONGEST_INLINE_WAIT_S, session.remaining() - CALL_TIME_S):
        session.ports.clock.sleep(delay)
        session.retake(task, resent=may_have_run)
        return None
    session.let_go(replace(task, resent=task.resent + 1) if may_have_run else task)
    return rest_until_due(session, delay)


def _record(session: Session, task: Task, request: ModelRequest, reply: ModelReply) -> None:
    """Settles the round, and begins what its calls need, in one commit."""
    was_cut = reply.stop == "cut"
    plan = calls.planned(session, task, reply, was_cut=was_cut)
    error = CUT if was_cut else None
    done = replace(
        settled_call(session, task, request, reply),
        message=session.keep(json.dumps(reply.message.to_record(), ensure_ascii=False)),
        calls=plan.calls,
        result=Result(text=None if reply.message.calls else session.keep(reply.message.text), error=error),
    )
    if reply.stop == "refused":
        done = replace(
            done,
            state=TaskState.FAILED,
            result=Result(text=session.keep(reply.message.text), is_error=True, error="ModelRefused"),
        )
    session.record(Changes(settled=(done, *plan.refused), begun=plan.begun, commands=plan.commands))
    transcript(session).add_reply(done.key, reply.message, was_cut=was_cut)
    if plan.begun:
        commands.ring(session)
    calls.hear(session)


def settled_call(session: Session, task: Task, request: ModelRequest, reply: ModelReply) -> Task:
    """A model or routing call's task with its usage and cost booked (NOD-061, NOD-063)."""
    usage = reply.usage
    return replace(
        task,
        state=TaskState.COMPLETED,
        finished_at=session.ports.clock.now(),
        cost=pricing.cost(request.target, usage) if usage else None,
        usage=Usage(usage.prompt_tokens, usage.output_tokens) if usage else None,
    )


def _fail(session: Session, task: Task, error: str, message: str) -> None:
    failed = replace(
        task,
        state=TaskState.FAILED,
        finished_at=session.ports.clock.now(),
        result=Result(text=session.keep(message), is_error=True, error=error),
        cost=ZERO,
    )
    session.record(Changes(settled=(failed,)))
