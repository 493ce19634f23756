"""A line that lets go: for what it waits, when it looks again, and what it gives back meanwhile."""

from collections.abc import Iterable
from datetime import timedelta

from nodus_core.conversations import sandbox_ends
from nodus_core.conversations.ports import REST, Directive
from nodus_core.conversations.session import Session
from nodus_core.conversations.unresolved import unresolved
from nodus_core.journal.lines import LEASE
from nodus_core.journal.store import Operation
from nodus_core.kernel import projection
from nodus_core.kernel.decisions import Rest
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.stopping import next_look

MESSAGE_LIMIT = 1024
"""Bytes of a failed step's text in `status.message`."""

WAITS = {
    "MessageWait": "The run waits for a message.",
    "NeedsResolution": (
        "What became of a step is not known, and it is not repeated. Look at `unresolved`, find out, and say it: "
        "nodus agentrun resolve NAME STEP --happened or --did-not-happen (POST …/resolution). Or cancel the run."
    ),
    "MaxCostReached": (
        "The next model call does not fit under the run's cost cap. Cancel the run and start a new one with a "
        "higher perRunMaxCostUSD."
    ),
    "BudgetBlocked": (
        "The next step does not fit under what is left of a Budget of this project. Raise its limitUSD (`nodus get "
        "budgets` shows it); the run then goes on by itself."
    ),
    "InsufficientCredits": (
        "The organization's credits do not cover the next model call. The run goes on by itself when credits are "
        "added."
    ),
}


def rest(session: Session, decision: Rest, more: Iterable[Operation] = ()) -> Directive | None:
    """Lets the line go until something from outside moves it on; shows what it waits for.

    The provider is asked for a sandbox that should run, at each payment of its time as well: None where it has gone.
    `more` goes into the same commit: what makes that something find the line.
    """
    if sandbox_ends.has_gone(session):
        return None
    operations = tuple(more)
    if not operations:
        give_back(session)
    status = session.object.status
    left = unresolved(session.ports.journal, session.run) if session.run else None
    shown = projection.waiting(status, decision.reason, WAITS.get(decision.reason, decision.reason), left)
    if session.sandbox is not None and session.sandbox.state is SandboxState.GONE:
        shown = projection.without_sandbox(shown)
    if shown != status:
        operations = (*operations, *session.projected(shown))
    own = [at for at in (session.next_checkpoint(), session.idle_at()) if at is not None]
    look = session.next_look(min(own, default=None)) if session.run is None else session.next_look(None)
    session.ports.journal.lines.rest(session.fence, session.conversation, look, *operations)
    return REST


def rest_until_due(session: Session, seconds: float) -> Directive:
    """Lets the line go; the sweeper looks at it after `seconds` if no kick has come."""
    give_back(session)
    due = session.ports.clock.now() + timedelta(seconds=seconds)
    session.ports.journal.lines.rest(session.fence, session.conversation, session.next_look(due))
    return REST


def wait_until(session: Session, seconds: float) -> Directive:
    """Lets the line go; its execution looks again after `seconds`, or the sweeper if that has died.

    It looks at its deadline, if that comes first. A kick in between starts another execution, and this one ends when
    it wakes under its old generation.
    """
    give_back(session)
    head = session.conversation
    own = session.ports.clock.now() + timedelta(seconds=seconds)
    at = session.next_look(own) or own
    session.ports.journal.lines.rest(session.fence, head, at + LEASE)
    return Directive("soon", next_look(head, at))


def give_back(session: Session) -> None:
    """What the run holds of budgets and credits and has not reserved goes back; what it has spent is booked there.

    So a run that waits or has ended locks nothing up. Where it waits for money, it waits no more.
    """
    run = session.run
    if run is None or run.purse is None or not (run.purse.left or run.purse.due or run.purse.waits):
        return
    accounts, purse = session.ports.journal.accounts, run.purse
    names = sorted({*purse.payers, purse.waits or ""} - {""})
    found = [account for account in accounts.accounts(names) if account is not None]
    session.run = accounts.give_back(session.fence, run, found, session.ports.clock.now())
