"""Model rounds: seal the request, reserve its upper bound, claim, call, record the reply with its calls' claims."""

import json
import logging
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from nodus_core.conversations import calls, commands, cooling, funding
from nodus_core.conversations.attendance import attended
from nodus_core.conversations.own_keys import OwnKeys
from nodus_core.conversations.ports import AGAIN, Directive
from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.conversations.transcript import Transcript, read_transcript
from nodus_core.conversations.turns import MESSAGE_LIMIT, wait_until
from nodus_core.inference import pricing, window
from nodus_core.inference.errors import (
    ContextTooLong,
    ModelOutcomeUnknown,
    ModelRefusedRequest,
    ModelUnavailable,
)
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.exchange import Usage as ProviderUsage
from nodus_core.inference.own_keys import UnusableKey
from nodus_core.inference.pricing import Measured
from nodus_core.journal.steps import Changes
from nodus_core.kernel import ids, projection
from nodus_core.kernel.decide import CUT
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.projection import MODEL_UNAVAILABLE as UNAVAILABLE
from nodus_core.kernel.states import Guarantee, TaskKind, TaskState
from nodus_core.kernel.stopping import next_look
from nodus_core.kernel.tasks import Result, Task, Usage
from nodus_core.kernel.text import cut
from nodus_core.kernel.times import stamp
from nodus_core.sandboxes.tools import TOOLS

MOST_ATTEMPTS = 8
"""Tries of one model call, whatever made the earlier ones fail."""

LONGEST_INLINE_WAIT_S = 10.0
"""Seconds of a provider's waiting time that a worker sits out; longer ones let the line rest (FLD-04)."""

LONGEST_WAIT_S = 3600.0
"""Seconds that one call waits for its provider; then the turn is given up rather than held with its sandbox."""

SMALLEST = Decimal("0.000001")
"""USD that a call of unknown price needs at least: it is never taken for one that costs nothing."""

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
        session.owned_head()  # else it may hold what another worker has added: no request could be made of it
    return session.transcript


def sealed(session: Session, number: int) -> ModelRequest:
    """The request of a round: a function of what is settled, so that sealing again gives the same."""
    run = session.open_run
    return ModelRequest(
        target=Selection.of(run).target,
        system=session.context.system,
        messages=window.shortened(transcript(session).messages, run.left_out),
        tools=TOOLS,
        max_tokens=session.context.model.max_tokens,
        id_prefix=f"call_{run.turn}_{number}_",
    )


def reserve(session: Session, request: ModelRequest, measured: Measured | None = None) -> Decimal:
    """What a call may cost at most, in USD (NOD-128).

    Where a price is unknown it may cost anything: all that is left is reserved, and booked; once nothing is left, no
    such call fits any more. `measured` is what an earlier request of the same conversation to the same model held,
    if it was counted.
    """
    if request.target.own_key is not None:
        return ZERO  # the user's account pays, and nothing is capped here (NOD-121)
    bound = pricing.upper_bound(request, measured)
    return max(session.open_run.available, SMALLEST) if bound is None else bound


def _measured(session: Session, request: ModelRequest) -> Measured | None:
    """What the latest request to this model held that was counted, as far as this one repeats it.

    Results that are left out since then make it shorter by an unknown number of tokens: they count as if they still
    were there, beside the words in their place.
    """
    found, messages = (
        transcript(session).measured.get(request.target.shown_name),
        transcript(session).messages,
    )
    if found is None or found.left_out == session.open_run.left_out:
        return found
    before = replace(request, messages=window.shortened(messages, found.left_out))
    words = window.words_in_place(request.messages) - window.words_in_place(before.messages)
    return replace(found, size=found.size - (pricing.size_of(before) - pricing.size_of(request)) - words)


def round_claim(session: Session, number: int, request: ModelRequest) -> Task:
    """The claim of a round with the reserve of its request, not yet written."""
    return Task(
        run=session.open_run.uid,
        key=ids.round_key(number),
        kind=TaskKind.MODEL,
        state=TaskState.RUNNING,
        guarantee=Guarantee.AT_MOST_ONCE if request.target.own_key else Guarantee.AT_LEAST_ONCE,
        number=number,
        started_at=session.ports.clock.now(),
        claim=session.claim(),
        reserved=reserve(session, request, _measured(session, request)),
        model=request.target.shown_name,
    )


def ask(session: Session, number: int, task: Task | None) -> Directive | None:
    """Makes the model call of a round and records its reply."""
    if session.remaining() < CALL_TIME_S:
        if task is not None and task.key in session.fresh:
            # Claimed and not made: whoever takes it up must not think that it was.
            session.let_go(task, session.object.status)
        return AGAIN
    request = None
    if task is None:
        request = sealed(session, number)
        task = round_claim(session, number, request)
        blocked = funding.secure(session, task.reserved or ZERO)
        if blocked is not None:
            return blocked
        session.record(Changes(begun=(task,)))
    elif task.key not in session.fresh:
        if task.claim is not None and task.guarantee is Guarantee.AT_MOST_ONCE:
            leave_uncertain(session, task, "Its worker died before it could record a reply.")
            return None
        if (seconds := cooling.left(session, Selection.of(session.open_run).target)) is not None:
            return _hold(session, task, seconds)
        if task.attempt >= MOST_ATTEMPTS:
            fail(session, task, UNAVAILABLE, "Its workers died before they could record a reply.", None)
            return None
        task = session.retake(task, resent=task.claim is not None)
    if (seconds := cooling.left(session, Selection.of(session.open_run).target)) is not None:
        return _hold(session, task, seconds)
    return _call(session, task, request or sealed(session, number))


def _call(session: Session, task: Task, request: ModelRequest) -> Directive | None:
    own_keys = OwnKeys(session.ports.journal, session.ports.vault)
    try:
        key = own_keys.read(session.object.key, request.target)
        session.fresh.discard(task.key)  # from here on it may have been made, whatever becomes of this worker
        reply = attended(session, request, key)
    except UnusableKey as error:
        fail(session, task, "ApiKeyUnusable", str(error), ZERO)
        return None
    except ContextTooLong as error:
        return _shorten(session, task, error)
    except ModelRefusedRequest as error:
        fail(session, task, "ModelRequestRefused", str(error), ZERO)
        return None
    except (ModelUnavailable, ModelOutcomeUnknown) as error:
        if isinstance(error, ModelOutcomeUnknown) and task.guarantee is Guarantee.AT_MOST_ONCE:
            leave_uncertain(session, task, str(error))
            return None
        return wait_for_model(session, task, error)
    if reply is None:
        session.reload()  # what was decided before the stop marker holds no longer
        return None
    _record(session, task, request, reply)
    return None


def _shorten(session: Session, task: Task, error: ContextTooLong) -> None:
    """Makes the call again without the oldest results; without any left to leave out, the turn ends."""
    left_out = window.further(transcript(session).messages, session.open_run.left_out)
    if left_out == session.open_run.left_out or task.attempt >= MOST_ATTEMPTS:
        fail(session, task, "ContextWindowExceeded", str(error), None if task.resent else ZERO)
        return
    log.warning("run %s: %s; %s messages of results are left out", task.run, error, left_out)
    session.retake(task, resent=False, left_out=left_out)


def leave_uncertain(session: Session, task: Task, why: str) -> None:
    """A call on the user's account that may have been made: it is not made again, and a person is asked (NOD-123)."""
    log.warning("model call %s/%s: its outcome is not known: %s", task.run, task.key, why)
    unknown = replace(
        task,
        state=TaskState.UNCERTAIN,
        finished_at=session.ports.clock.now(),
        cost=ZERO,
        result=Result(text=session.keep(why), is_error=True, error="OutcomeUnknown"),
    )
    session.record(Changes(settled=(unknown,)))


def wait_for_model(
    session: Session, task: Task, error: ModelUnavailable | ModelOutcomeUnknown
) -> Directive | None:
    """Waits as the provider asks, then lets the call be made again, at most eight times in all."""
    log.warning("model call %s/%s, attempt %s: %s", task.run, task.key, task.attempt, error)
    may_have_run = isinstance(error, ModelOutcomeUnknown)
    delay = _delay(task, error)
    if isinstance(error, ModelUnavailable) and error.busy:
        cooling.cool(session, Selection.of(session.open_run).target, delay)
    if task.attempt >= MOST_ATTEMPTS or delay > LONGEST_WAIT_S:
        fail(session, task, UNAVAILABLE, str(error), None if task.resent or may_have_run else ZERO)
        return None
    delay += cooling.spread(task, delay)
    # Shown on the step while it is tried again: what keeps it, and how often it was tried.
    task = replace(task, result=Result(text=session.keep(str(error)), is_error=True, error=UNAVAILABLE))
    if _waits_here(session, task, delay):
        session.ports.clock.sleep(_until_deadline(session, delay))
        if not session.is_overdue():
            session.retake(task, resent=may_have_run)
            return None
    return _let_go(
        session, replace(task, resent=task.resent + 1) if may_have_run else task, delay, str(error)
    )


def _delay(task: Task, error: ModelUnavailable | ModelOutcomeUnknown) -> float:
    """Seconds that the provider named, else ever more of them."""
    if isinstance(error, ModelUnavailable) and error.retry_after is not None:
        return max(error.retry_after, FIRST_DELAY_S)
    return min(FIRST_DELAY_S * 2 ** (task.attempt - 1), LONGEST_DELAY_S)


def _waits_here(session: Session, task: Task, delay: float) -> bool:
    """Whether the worker sits the delay out. Not with a claim that its death would make uncertain."""
    own = task.guarantee is Guarantee.AT_MOST_ONCE
    return not own and delay <= min(LONGEST_INLINE_WAIT_S, session.remaining() - CALL_TIME_S)


def _hold(session: Session, task: Task, seconds: float) -> Directive | None:
    """Another call with this endpoint and key was asked to wait: this one waits too, and is not made."""
    waited = (session.ports.clock.now() - task.started_at).total_seconds()
    if waited + seconds > LONGEST_WAIT_S:
        text = f"The provider takes no call with this key for {seconds:.0f} s more; this one was not made."
        nobody_made_it = task.claim is None or task.key in session.fresh
        fail(session, task, UNAVAILABLE, text, ZERO if nobody_made_it and not task.resent else None)
        return None
    delay = seconds + cooling.spread(task, seconds)
    if _waits_here(session, task, delay):
        session.ports.clock.sleep(_until_deadline(session, delay))
        if not session.is_overdue():
            return None
    if task.key not in session.fresh:
        return wait_until(session, delay)
    return _let_go(session, task, delay, "The provider has asked all calls with this key to wait.")


def _let_go(session: Session, task: Task, delay: float, why: str) -> Directive | None:
    """Waits without a worker; the run shows for what, and until when."""
    until = stamp(session.ports.clock.now() + timedelta(seconds=delay))
    message = f"The model is asked again at {until}. {cut(why, MESSAGE_LIMIT)}"
    session.let_go(task, projection.held_up(session.object.status, UNAVAILABLE, message))
    return wait_until(session, delay)


def _until_deadline(session: Session, seconds: float) -> float:
    """So many seconds, or those that are left until the run's deadline."""
    now = session.ports.clock.now()
    until = next_look(session.conversation, now + timedelta(seconds=seconds))
    return seconds if until is None else max((until - now).total_seconds(), 0)


def _record(session: Session, task: Task, request: ModelRequest, reply: ModelReply) -> None:
    """Settles the round, and begins what its calls need, in one commit."""
    was_cut = reply.stop == "cut"
    plan = calls.planned(session, task, reply, was_cut=was_cut)
    error = CUT if was_cut else None
    done = replace(
        settled_call(session, task, request, reply),
        message=session.keep(json.dumps(reply.message.to_record(), ensure_ascii=False), head=False),
        calls=plan.calls,
        size=pricing.size_of(request),
        left_out=session.open_run.left_out,
        result=Result(text=None if reply.message.calls else session.keep(reply.message.text), error=error),
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
        cut_reply(session, done)
        return
    transcript(session).measure(done)
    transcript(session).add_reply(done.key, reply.message, was_cut=was_cut)
    if plan.begun:
        commands.ring(session)
    calls.hear(session)


def _left_out_after(session: Session, request: ModelRequest, reply: ModelReply) -> int:
    """How many messages of results the calls after this reply leave out."""
    run = session.open_run
    if not window.is_full(credible(request, reply.usage), request.target.context_window):
        return run.left_out
    return window.further(transcript(session).messages, run.left_out)


def settled_call(session: Session, task: Task, request: ModelRequest, reply: ModelReply) -> Task:
    """A model or routing call's task with its usage and cost booked (NOD-061, NOD-063)."""
    usage = credible(request, reply.usage)
    cost = pricing.cost(request.target, usage)
    if cost is not None and task.reserved is not None and cost > task.reserved:
        # More than the call can have cost: no cap may be broken by what a provider says of itself.
        log.warning("model call %s/%s: usage %s is beyond its bound", task.run, task.key, usage)
        usage = cost = None
    return replace(
        task,
        state=TaskState.COMPLETED,
        finished_at=session.ports.clock.now(),
        cost=ZERO if request.target.own_key else cost,
        usage=Usage(usage.prompt_tokens, usage.output_tokens) if usage else None,
    )


def credible(request: ModelRequest, usage: ProviderUsage | None) -> ProviderUsage | None:
    """The usage, unless it says more than the call can have taken: then it is unknown, and the reserve is booked."""
    if usage is None or usage.output_tokens > request.output_limit:
        return None
    most = request.target.context_window or pricing.most_input_tokens(request)
    return usage if usage.prompt_tokens <= most else None


def cut_reply(session: Session, done: Task) -> None:
    """A reply that came in after the stop marker: nothing follows from it, but what it cost is booked.

    Raises `Fenced` when the line is another's, and `ConditionFailed` when it was no stop that came between.
    """
    session.reload()
    if session.open_run.stop is None:
        raise ConditionFailed("record", {})
    session.cut([replace(done, state=TaskState.CANCELED, calls=())])


def fail(session: Session, task: Task, error: str, message: str, cost: Decimal | None) -> None:
    """A model or routing call is given up. `cost` None: it may have run, and its reserve is booked."""
    session.record(Changes(settled=(replace(session.failure(task, error, message), cost=cost),)))
