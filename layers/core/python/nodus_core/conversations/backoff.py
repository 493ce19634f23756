"""A provider that takes no call now: the call waits for it, with its worker or without one (FLD-04)."""

import logging
from dataclasses import replace
from datetime import timedelta

from nodus_core.conversations import cooling, endings
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.resting import MESSAGE_LIMIT, wait_until
from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.inference.errors import ModelOutcomeUnknown, ModelUnavailable
from nodus_core.kernel import projection
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.projection import MODEL_UNAVAILABLE as UNAVAILABLE
from nodus_core.kernel.states import Guarantee
from nodus_core.kernel.stopping import next_look
from nodus_core.kernel.tasks import Result, Task
from nodus_core.kernel.text import cut
from nodus_core.kernel.times import stamp

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 8
"""Tries of one model call, whatever made the earlier ones fail."""

LONGEST_INLINE_WAIT_S = 10.0
"""Seconds of a provider's waiting time that a worker sits out; longer ones let the line rest (FLD-04)."""

LONGEST_WAIT_S = 3600.0
"""Seconds that one call waits for its provider in all; then the turn is given up rather than held with its sandbox."""

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0

CALL_TIME_S = 330.0
"""Seconds that an invocation must have left to begin a model call: the providers' time-out and some."""


def wait_for_model(
    session: Session, task: Task, error: ModelUnavailable | ModelOutcomeUnknown
) -> Directive | None:
    """Waits as the provider asks, then lets the call be made again, at most eight times in all."""
    log.warning("model call %s/%s, attempt %s: %s", task.run, task.key, task.attempt, error)
    may_have_run = isinstance(error, ModelOutcomeUnknown)
    delay = _delay(task, error)
    if isinstance(error, ModelUnavailable) and error.busy:
        cooling.cool(session, Selection.of(session.open_run).target, delay)
    if task.attempt >= MOST_ATTEMPTS or _is_too_long(session, task, delay):
        endings.fail(session, task, UNAVAILABLE, str(error), None if task.resent or may_have_run else ZERO)
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


def early(session: Session, task: Task) -> Directive | None:
    """Lets the line rest on when something else, as a message, has woken it before the call's time: that is no try.

    None: the time has come.
    """
    if task.not_before is None:
        return None
    left = (task.not_before - session.ports.clock.now()).total_seconds()
    return wait_until(session, left) if left > 0 else None


def _delay(task: Task, error: ModelUnavailable | ModelOutcomeUnknown) -> float:
    """Seconds that the provider named, else ever more of them."""
    if isinstance(error, ModelUnavailable) and error.retry_after is not None:
        return max(error.retry_after, FIRST_DELAY_S)
    return min(FIRST_DELAY_S * 2 ** (task.attempt - 1), LONGEST_DELAY_S)


def _is_too_long(session: Session, task: Task, seconds: float) -> bool:
    """Whether a call that waits so many seconds more has waited longer than one may."""
    waited = (session.ports.clock.now() - task.started_at).total_seconds()
    return waited + seconds > LONGEST_WAIT_S


def _waits_here(session: Session, task: Task, delay: float) -> bool:
    """Whether the worker sits the delay out. Not with a claim that its death would make uncertain."""
    own = task.guarantee is Guarantee.AT_MOST_ONCE
    return not own and delay <= min(LONGEST_INLINE_WAIT_S, session.remaining() - CALL_TIME_S)


def hold(session: Session, task: Task, seconds: float) -> Directive | None:
    """Another call with this endpoint and key was asked to wait: this one waits too, and is not made."""
    if _is_too_long(session, task, seconds):
        text = f"The provider takes no call with this key for {seconds:.0f} s more; this one was not made."
        nobody_made_it = task.claim is None or task.key in session.fresh
        endings.fail(session, task, UNAVAILABLE, text, ZERO if nobody_made_it and not task.resent else None)
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
    until = session.ports.clock.now() + timedelta(seconds=delay)
    message = f"The model is asked again at {stamp(until)}. {cut(why, MESSAGE_LIMIT)}"
    session.let_go(task, projection.held_up(session.object.status, UNAVAILABLE, message), until)
    return wait_until(session, delay)


def _until_deadline(session: Session, seconds: float) -> float:
    """So many seconds, or those that are left until the run's deadline."""
    now = session.ports.clock.now()
    until = next_look(session.conversation, now + timedelta(seconds=seconds))
    return seconds if until is None else max((until - now).total_seconds(), 0)
