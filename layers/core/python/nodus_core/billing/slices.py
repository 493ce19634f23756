"""How large a slice a run is handed: enough for some calls, and never so much that idle runs lock money up."""

from collections.abc import Iterable
from decimal import Decimal

from nodus_core.kernel.money import Account

CALLS = 4
"""Calls of the present size that a slice covers while money is plenty: an account is touched for one in so many."""

PLENTY = 16
"""Slices of that size that an account must still have; with less, a run gets just what its next call needs."""


def slice_for(short: Decimal, need: Decimal, allowance: Decimal, payers: Iterable[Account]) -> Decimal:
    """USD to hand over, at least `short`.

    Args:
        short: what is missing for the next call.
        need: what that call may cost.
        allowance: what the run's own cap leaves beyond that call: no run is handed what it may not spend.
        payers: the accounts that pay, as read.
    """
    ample = short + min(need * (CALLS - 1), allowance)
    if all(account.available >= ample * PLENTY for account in payers):
        return ample
    return short


def lacking(payers: Iterable[Account], amount: Decimal) -> Account | None:
    """The first account that has not got the amount."""
    return next((account for account in payers if account.available < amount), None)
