"""Requests of model rounds: sealed from what is settled, with what each may cost at most."""

from dataclasses import replace
from decimal import Decimal

from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.conversations.transcript import Transcript, read_transcript
from nodus_core.inference import pricing, window
from nodus_core.inference.exchange import ModelRequest
from nodus_core.inference.pricing import Measured
from nodus_core.kernel import ids
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.states import Guarantee, TaskKind, TaskState
from nodus_core.kernel.tasks import Task
from nodus_core.sandboxes.tools import TOOLS

SMALLEST = Decimal("0.000001")
"""USD that a call of unknown price needs at least: it is never taken for one that costs nothing."""


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
