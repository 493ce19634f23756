"""How a model or routing call ends: with its reply, without one, or with nobody knowing."""

import logging
from dataclasses import replace
from decimal import Decimal

from nodus_core.conversations.session import Session
from nodus_core.inference import pricing
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.exchange import Usage as ProviderUsage
from nodus_core.journal.steps import Changes
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.tasks import Result, Task, Usage

log = logging.getLogger(__name__)


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
