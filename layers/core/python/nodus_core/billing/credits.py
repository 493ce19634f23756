"""An organization's credits: what pays for managed models (NOD-104). Without an account they are unlimited."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from nodus_core.billing import balance
from nodus_core.journal.access import Access
from nodus_core.journal.accounts import Accounts, credits_id
from nodus_core.journal.ledger import Entry, Ledger
from nodus_core.journal.ports import Clock
from nodus_core.kernel.errors import Cause, ConditionFailed, Refusal
from nodus_core.kernel.money import CREDITS, Account
from nodus_core.kernel.projection import dollars

UNLIMITED = "unlimited"

MOST_TRIES = 8
LONGEST_KEY = 128
MOST_DOLLARS = Decimal(1_000_000_000)

Amount = Callable[[Account | None], Decimal]
"""What a request puts in, given the account as it is."""

_AMOUNT = re.compile(r"\d{1,10}(\.\d{1,6})?", re.ASCII)


@dataclass(frozen=True)
class Credits:
    """Use cases of the operator. Each raises `Refusal`: `Invalid` for a bad argument, `NotFound` without the
    organization, `Conflict` after too many lost races."""

    access: Access
    accounts: Accounts
    ledger: Ledger
    clock: Clock

    def read(self, org: str) -> dict[str, Any]:
        """What an organization has left, has spent, and what its runs hold at the moment. Raises `NotFound`."""
        if self.access.organization(org) is None:
            raise _no_organization(org)
        return self._shown(org)

    def _shown(self, org: str) -> dict[str, Any]:
        account = self.accounts.account(credits_id(org))
        if account is None or account.closed:
            return {"unlimited": True}
        figures = balance.shown(account)
        return {name: figures[name] for name in ("remainingUSD", "spentUSD", "reservedUSD")}

    def add(self, org: str, amount: str, request_key: str) -> dict[str, Any]:
        """Adds to the credits; runs that wait for them go on. The first amount ends that they are unlimited.

        The same request key adds once; with another request it is an `IdempotencyKeyConflict`.
        """
        put = _dollars("amountUSD", amount)
        return self._once(org, request_key, f"add {dollars(put)}", lambda account: put)

    def set(self, org: str, remaining: str, request_key: str) -> dict[str, Any]:
        """What is left from now on, or `unlimited`. The request key as in `add`."""
        if remaining == UNLIMITED:
            return self._once(org, request_key, f"set {UNLIMITED}", None)
        wanted = _dollars("remainingUSD", remaining)
        return self._once(
            org,
            request_key,
            f"set {dollars(wanted)}",
            lambda account: wanted - (account.available if account else Decimal(0)),
        )

    def _once(self, org: str, request_key: str, meaning: str, amount: Amount | None) -> dict[str, Any]:
        """Makes the change of a request, unless its key says that it was made. No amount: unlimited."""
        if not request_key.isprintable() or not 0 < len(request_key) <= LONGEST_KEY:
            raise _invalid("requestKey", f"must be 1 to {LONGEST_KEY} printable characters")
        name = credits_id(org)
        for _ in range(MOST_TRIES):
            made = self.ledger.entry(name, request_key)
            if made is not None:
                _check_same(made, meaning)
                return self._shown(org)
            account, now = self.accounts.account(name), self.clock.now()
            change = amount(account) if amount else Decimal(0)
            entry = Entry(name, request_key, change, now, meaning)
            try:
                if amount:
                    self.ledger.put_in(account, opened(org, change), entry, now)
                else:
                    self.ledger.end(account, entry, org, now)
            except ConditionFailed as lost:
                if not lost.current.get(2, {"there": True}):
                    raise _no_organization(org) from None
                continue
            return self._shown(org)
        raise Refusal("Conflict", f"the credits of {org!r} are being changed by others; try again")


def _check_same(made: Entry, meaning: str) -> None:
    if made.meaning and made.meaning != meaning:
        message = f"requestKey {made.key!r} was used for another request ({made.meaning}); take a new one"
        raise Refusal("IdempotencyKeyConflict", message)


def opened(org: str, amount: Decimal) -> Account:
    """The account of an organization whose credits begin to count."""
    return Account(credits_id(org), CREDITS, org, org, amount, available=amount)


def _dollars(field: str, text: str) -> Decimal:
    if _AMOUNT.fullmatch(text) is None or Decimal(text) > MOST_DOLLARS:
        raise _invalid(
            field, f'must be an amount of US dollars such as "25.00", at most {dollars(MOST_DOLLARS)}'
        )
    return Decimal(text)


def _invalid(field: str, message: str) -> Refusal:
    return Refusal("Invalid", f"{field} {message}", causes=(Cause(field, message),))


def _no_organization(org: str) -> Refusal:
    message = f"there is no organization {org!r}; make it first with CreateOrganization"
    return Refusal("NotFound", message, kind="Organization", name=org)
