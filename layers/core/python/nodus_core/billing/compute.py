"""What sandboxes cost, and how much of their time is paid ahead.

Prices: AWS Fargate on demand, Linux on x86, us-east-1 (https://aws.amazon.com/fargate/pricing/). Compared in November
2026 with the lists of https://cloudburn.io/blog/aws-fargate-pricing (March 2026) and
https://www.factualminds.com/blog/amazon-fargate-ecs-task-pricing-2026 (June 2026), not with AWS's own page. Metered
alike but cheaper there: arm64 (a fifth less) and Spot. Not metered: a task's public IPv4 address (0.005 USD an hour)
and data transfer. Another place's or operator's prices are written here; a sandbox keeps those that it was asked for
under.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from nodus_core.billing.slices import PLENTY
from nodus_core.kernel.metering import held_until, spent
from nodus_core.kernel.money import ZERO, Account, Meter
from nodus_core.kernel.sandboxes import Sandbox

VCPU_HOUR = Decimal("0.04048")
GB_HOUR = Decimal("0.004445")

LONG = timedelta(minutes=15)
"""A paid period while money is plenty: a run that waits with its sandbox open is looked at once in each."""

SHORT = timedelta(minutes=6)
"""A paid period when money is not: longer than a sandbox may take to come up, so that it is never stopped before."""

BOOTING = timedelta(minutes=16)
"""The least first period of a sandbox whose machine may have to be started first, for the same reason."""

_UNITS_PER_VCPU = 1024
_MIB_PER_GB = 1024


@dataclass(frozen=True)
class Lacking:
    """An account that has not got the money for a sandbox's next period, and what it needs."""

    account: Account
    need: Decimal


def hourly(cpu: int, memory: int) -> Decimal:
    """USD per hour of a sandbox with so many units of 1/1024 virtual processor and MiB."""
    return cpu * VCPU_HOUR / _UNITS_PER_VCPU + memory * GB_HOUR / _MIB_PER_GB


def opened(
    sandbox: Sandbox, rate: Decimal, earlier: Decimal, payers: Sequence[Account], least: timedelta = SHORT
) -> Meter | Lacking:
    """The meter of a sandbox that is asked for now, with its first period, which lasts as long as `least` or longer."""
    meter = Meter(rate, sandbox.created_at, earlier=earlier)
    return _paid(sandbox, meter, payers, sandbox.created_at, {}, least=least)


def extended(sandbox: Sandbox, meter: Meter, payers: Sequence[Account], now: datetime) -> Meter | Lacking:
    """The meter once what the sandbox has cost is booked and its next period is paid by those who pay now."""
    after = replace(meter, booked=spent(sandbox, now), periods=meter.periods + 1)
    back = meter.held - (after.booked - meter.booked)
    return _paid(sandbox, after, payers, now, dict.fromkeys(meter.payers, back))


def closed(sandbox: Sandbox, meter: Meter, now: datetime) -> Meter:
    """The meter of a sandbox that is gone: everything is booked, nothing is held.

    What was booked stays booked, also where the task's own times are shorter than they were taken to be.
    """
    return replace(
        meter,
        booked=max(meter.booked, spent(sandbox, now)),
        payers=(),
        held=ZERO,
        periods=meter.periods + 1,
        closed=True,
    )


def _paid(
    sandbox: Sandbox,
    meter: Meter,
    payers: Sequence[Account],
    now: datetime,
    back: dict[str, Decimal],
    *,
    least: timedelta = SHORT,
) -> Meter | Lacking:
    """The meter with its next period; `back` is what accounts get back of what they hold now."""
    long, short = (now + max(period, least) for period in (LONG, SHORT))
    much, little = (held_until(sandbox, meter, until) for until in (long, short))
    plenty = all(account.available >= much * PLENTY for account in payers)
    need, until = (much, long) if plenty else (little, short)
    for account in payers:
        if account.available + back.get(account.id, ZERO) < need:
            return Lacking(account, need)
    names = tuple(account.id for account in payers)
    return replace(meter, until=until, payers=names, held=need if names else ZERO)
