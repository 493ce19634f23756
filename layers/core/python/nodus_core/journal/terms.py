"""What a further model call depends on beside its run: rows that a worker reads with whatever else it looks at."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodus_core.journal.accounts import credits_id
from nodus_core.journal.codec import from_row
from nodus_core.journal.keys import account_key, budgets_key, cooling_key
from nodus_core.journal.store import Key, Row
from nodus_core.kernel.money import Account
from nodus_core.kernel.objects import Cooling


@dataclass(frozen=True)
class CallPlace:
    """Where a model call would be made: in whose project, through which gate (an endpoint and a key)."""

    org: str
    project: str
    gate: str


@dataclass(frozen=True)
class Terms:
    """`free`: no Budget and no credits pay for the project's runs; `cooling`: until when the gate takes no call."""

    free: bool
    cooling: Cooling | None


def keys_of(place: CallPlace) -> tuple[Key, ...]:
    """The rows that say it, for `terms_of`."""
    credit = account_key(credits_id(place.org))
    return budgets_key(place.org, place.project), credit, cooling_key(place.gate)


def terms_of(rows: Sequence[Row | None]) -> Terms:
    """The terms in the rows of `keys_of`."""
    budgets, credit, cooling = rows
    listed = budgets is not None and bool(budgets.get("accounts"))
    limited = credit is not None and not from_row(Account, credit).closed
    return Terms(
        free=not listed and not limited,
        cooling=None if cooling is None else from_row(Cooling, cooling),
    )
