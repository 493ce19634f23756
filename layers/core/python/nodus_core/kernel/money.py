"""Accounts that pay for runs, and what a run holds of them. Pure arithmetic in USD, exact.

account:  available ──hand over──► held ──┬──► models    (what calls have cost)
              ▲                           ├──► compute   (what the time of sandboxes has cost)
              │                           └──► back to available
              └── available + held + models + compute = limit, after every commit
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

ZERO = Decimal(0)

BUDGET = "Budget"
CREDITS = "Credits"


@dataclass(frozen=True)
class Account:
    """Money of a Budget, or of an organization's credits.

    `available` stands in the row because conditions cannot add; it is below zero only after the limit was lowered
    under what was spent or held. `models` and `compute` are spent. `hungry`: somebody waits for money here, so
    whoever frees some rings the `bell` and makes the account due. `closed`: its Budget is deleted.
    """

    id: str
    kind: str
    org: str
    name: str
    limit: Decimal
    available: Decimal
    project: str | None = None
    held: Decimal = ZERO
    models: Decimal = ZERO
    compute: Decimal = ZERO
    bell: int = 0
    hungry: bool = False
    closed: bool = False

    @property
    def spent(self) -> Decimal:
        return self.models + self.compute


@dataclass(frozen=True)
class Purse:
    """What a run holds of accounts: the same amount of each payer, so that one call needs one number.

    `held` is what each payer counts as held by this run; `left` of it is neither reserved nor spent; `due` was
    spent and is not booked on the accounts yet. `waits` is the account where the run's line waits for money.
    """

    payers: tuple[str, ...] = ()
    held: Decimal = ZERO
    left: Decimal = ZERO
    due: Decimal = ZERO
    waits: str | None = None

    @property
    def reserved(self) -> Decimal:
        """What calls that are under way may cost."""
        return self.held - self.left - self.due


@dataclass(frozen=True)
class Waiter:
    """A line that waits for `need` USD of an account."""

    account: str
    conversation: str
    need: Decimal


@dataclass(frozen=True)
class Meter:
    """What a sandbox's time costs, and until when it is paid.

    `hourly` is USD, pinned when the sandbox is asked for; `earlier` is what the conversation's sandboxes before it
    have cost. Each of `payers` holds `held` for it; of what its time has cost, `booked` is counted. `periods` counts
    the commits on it. `closed`: it is gone, and all of its time is booked.
    """

    hourly: Decimal
    until: datetime
    earlier: Decimal = ZERO
    payers: tuple[str, ...] = ()
    held: Decimal = ZERO
    booked: Decimal = ZERO
    periods: int = 0
    closed: bool = False
