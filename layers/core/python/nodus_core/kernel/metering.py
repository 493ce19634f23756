"""What the time of a sandbox costs, and when its next period must be paid. Pure arithmetic in USD.

asked for (a period is held) ──► running ──due──► extended ──► … ──► gone ──► booked, the rest is given back
"""

from datetime import datetime, timedelta
from decimal import ROUND_UP, Decimal

from nodus_core.kernel.money import ZERO, Meter
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.saving import WINDOW
from nodus_core.kernel.states import SandboxState

AHEAD = timedelta(minutes=1)
"""Before its paid time ends, a sandbox's next period is paid, or the sandbox is stopped."""

Times = tuple[datetime | None, datetime]
"""When a task's time began to count, None: as it was noted when it was asked for; and when it ended."""

_HOUR_S = 3600
_MICRO = Decimal("0.000001")


def price(hourly: Decimal, time: timedelta) -> Decimal:
    """USD of a time: begun seconds count, in millionths of a dollar, rounded up."""
    seconds = -(-max(time, timedelta()) // timedelta(seconds=1))
    return (hourly * seconds / _HOUR_S).quantize(_MICRO, ROUND_UP)


def spent(sandbox: Sandbox, now: datetime) -> Decimal:
    """USD that a sandbox's time has cost until now, or until it was gone; nothing before its task is known."""
    if sandbox.meter is None or sandbox.started_at is None:
        return ZERO
    if sandbox.meter.closed:
        return sandbox.meter.booked
    if sandbox.task is None and sandbox.token_hash is None:
        return ZERO
    return price(sandbox.meter.hourly, (sandbox.gone_at or now) - sandbox.started_at)


def counted(sandbox: Sandbox, began: datetime | None, ended: datetime | None, now: datetime) -> Times:
    """The times by which a sandbox that is gone is booked: its task's own, as its provider tells them.

    Never before the task was asked for, never after now: another clock than ours is not believed beyond that.
    """
    asked = sandbox.started_at or sandbox.created_at
    end = max(min(ended or now, now), asked)
    return (None if began is None or sandbox.started_at is None else min(max(began, asked), end)), end


def total(sandbox: Sandbox, now: datetime) -> Decimal:
    """USD that a conversation's sandboxes have cost, of which this is the last one."""
    return (sandbox.meter.earlier if sandbox.meter else ZERO) + spent(sandbox, now)


def reaches(sandbox: Sandbox, meter: Meter, amount: Decimal) -> datetime:
    """When a sandbox's time will have cost so many USD."""
    seconds = float(max(amount, ZERO) / meter.hourly * _HOUR_S)
    return (sandbox.started_at or sandbox.created_at) + timedelta(seconds=seconds)


def held_until(sandbox: Sandbox, meter: Meter, until: datetime) -> Decimal:
    """USD to hold for a sandbox, so that its time is paid until then: what is not booked of it."""
    return price(meter.hourly, until - (sandbox.started_at or sandbox.created_at)) - meter.booked


def is_unbooked(sandbox: Sandbox) -> bool:
    """Whether a sandbox is gone, and what its time has cost is not booked yet."""
    return sandbox.state is SandboxState.GONE and sandbox.meter is not None and not sandbox.meter.closed


def look_at(sandbox: Sandbox | None) -> datetime | None:
    """When a running sandbox's next period must be paid; None for one that runs no more, or not yet.

    Where its folder is saved, that early that a last save is paid for, too.
    """
    if sandbox is None or sandbox.meter is None or sandbox.state is not SandboxState.RUNNING:
        return None
    return sandbox.meter.until - AHEAD - (WINDOW if sandbox.state_dir else timedelta())


def is_due(sandbox: Sandbox | None, now: datetime) -> bool:
    at = look_at(sandbox)
    return at is not None and now >= at
