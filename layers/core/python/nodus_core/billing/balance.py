"""What an account shows of itself."""

from decimal import Decimal
from typing import Any

from nodus_core.kernel.money import ZERO, Account
from nodus_core.kernel.projection import dollars


def shown(account: Account) -> dict[str, Any]:
    """`status` of a Budget: models and compute are separate lines (NOD-144).

    `reservedUSD` is what runs hold at the moment: what their calls that are under way may cost, what they have cost
    and is not booked yet, and the rest of their slices.
    """
    remaining = max(account.available, ZERO)
    return {
        "phase": "Exhausted" if remaining == ZERO else "Active",
        "spentUSD": dollars(account.spent),
        "modelUSD": dollars(account.models),
        "computeUSD": dollars(account.compute),
        "reservedUSD": dollars(max(account.held, ZERO)),
        "remainingUSD": dollars(Decimal(remaining)),
    }
