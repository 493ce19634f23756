"""Before a call costs anything: its reserve fits under the run's cap, and budgets and credits cover it.

secure ──► under the cap? ──no──► rest, MaxCostReached
              └─► covered by the purse? ──yes──► go on (only the run's row is touched)
                     └─► every payer has a slice? ──yes──► fund, go on
                            └─► give back what is left, wait at the first that lacks it, rest
"""

from decimal import Decimal

from nodus_core.billing.slices import lacking, slice_for
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.resting import give_back, rest, wait_until
from nodus_core.conversations.session import BUDGET_BLOCKED, NO_CREDITS, Session
from nodus_core.journal.terms import Terms
from nodus_core.kernel.decisions import Rest
from nodus_core.kernel.money import BUDGET, ZERO, Account, Purse
from nodus_core.kernel.objects import Run
from nodus_core.kernel.progress import covered, fits

UNDER_WAY_S = 5.0
"""Seconds until a line asks again whose own calls are under way: what they do not spend comes back."""


def is_secured(session: Session, reserve: Decimal, terms: Terms | None = None) -> bool:
    """Whether a call with this reserve may be claimed as things are: nobody has to be asked for money.

    A run that nobody pays for asks each time, so that a Budget that is made now holds from the next call on; unless
    the look just before, of which the call follows, has brought the answer as its `terms`.
    """
    run = session.open_run
    if not fits(run, reserve):
        return False
    return reserve == ZERO or _is_paid(run) or (terms is not None and terms.free) or not _payers(session)


def secure(session: Session, reserve: Decimal) -> Directive | None:
    """Sees to it that a call with this reserve may be claimed. A directive: it may not, and the line rests.

    Raises `ConditionFailed` when somebody else was faster: look again.
    """
    run = session.open_run
    if reserve > run.available:
        return rest(session, Rest("MaxCostReached"))
    if reserve == ZERO or (_is_paid(run) and covered(run, reserve)):
        return None
    payers, purse = _payers(session), run.purse or Purse()
    if purse.payers and purse.payers != tuple(account.id for account in payers):
        # The project's Budgets are others now, or nobody pays any more; calls that are under way keep theirs.
        if purse.held == purse.reserved:
            return wait_until(session, UNDER_WAY_S)
        give_back(session)
        return secure(session, reserve)
    if not payers:
        return None
    short = reserve - purse.left
    blocked = lacking(payers, short)
    if blocked is None:
        amount = slice_for(short, reserve, run.available - reserve, payers)
        session.run = session.ports.journal.accounts.fund(session.fence, run, payers, amount)
        return None
    if purse.reserved:
        return wait_until(session, UNDER_WAY_S)
    if purse.left or purse.due or purse.waits not in (None, blocked.id):
        give_back(session)  # what is left may be what another call needs
        return secure(session, reserve)
    return _wait(session, blocked, reserve)


def wait_for(session: Session, account: Account, need: Decimal) -> Directive | None:
    """Lets the line rest until the account has got the money; the run holds nothing meanwhile."""
    give_back(session)
    return _wait(session, account, need)


def _wait(session: Session, account: Account, need: Decimal) -> Directive | None:
    """Lets the line rest until the account has got the money: whoever frees some finds it."""
    operations = session.ports.journal.accounts.wait(session.fence, session.open_run, account, need)
    return rest(session, Rest(BUDGET_BLOCKED if account.kind == BUDGET else NO_CREDITS), operations)


def _payers(session: Session) -> tuple[Account, ...]:
    """The accounts that pay for the run: its project's Budgets and its organization's credits.

    While calls are under way, those that have reserved for them stay the payers.
    """
    run, accounts = session.open_run, session.ports.journal.accounts
    if run.purse is not None and run.purse.reserved:
        return tuple(account for account in accounts.accounts(run.purse.payers) if account is not None)
    if _reserved_unpaid(session, run):
        return ()
    place = session.conversation.object
    return accounts.payers(place.org, place.project)


def _is_paid(run: Run) -> bool:
    return run.purse is not None and bool(run.purse.payers)


def _reserved_unpaid(session: Session, run: Run) -> bool:
    """Whether calls are under way that began before anybody paid for the run."""
    head = session.conversation
    return head.cap - head.spent - run.available - run.spent > ZERO and not _is_paid(run)
