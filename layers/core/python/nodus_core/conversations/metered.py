"""The time of a run's sandbox: the project's Budgets pay it ahead, and it is booked when the sandbox is gone.

asked for ──► every Budget has a period? ──no──► the run waits, BudgetBlocked (NODQ-108)
running, its period ends ──► extend ──no money──► `stopping`
gone ──► book what its time has cost; what was held beyond goes back

Credits pay for models only (NOD-104).
"""

from dataclasses import replace
from decimal import Decimal

from nodus_core.billing import compute
from nodus_core.billing.compute import Lacking
from nodus_core.conversations import commands, runs_sandboxes
from nodus_core.conversations.resting import give_back
from nodus_core.conversations.session import Session
from nodus_core.journal.meters import moves
from nodus_core.journal.store import Operation
from nodus_core.kernel import projection
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.machines import MACHINE
from nodus_core.kernel.money import BUDGET, Account, Meter
from nodus_core.kernel.sandboxes import Sandbox


def opened(session: Session, sandbox: Sandbox) -> tuple[Sandbox, tuple[Operation, ...]] | Lacking:
    """A sandbox that is to be asked for, with its meter, and the operations by which Budgets hold its first period.

    They go into the commit that asks for it. The run waits for no money any more.
    """
    if session.run is not None and session.run.purse is not None and session.run.purse.waits:
        give_back(session)
    payers, machine = _budgets(session), session.machine
    rate = Decimal(machine.hourly_usd) if machine.hourly_usd else compute.hourly(machine.cpu, machine.memory)
    least = compute.BOOTING if machine.gpus else compute.SHORT
    meter = compute.opened(sandbox, rate, session.conversation.compute, payers, least)
    if isinstance(meter, Lacking):
        return meter
    before = replace(meter, payers=())
    return replace(sandbox, meter=meter), moves(before, meter, payers, sandbox.created_at)


def extend(session: Session) -> Lacking | None:
    """Pays for the sandbox's next period, or says which Budget has not got the money.

    Whoever pays is asked anew: a Budget that is made now holds from here on. Raises `ConditionFailed`.
    """
    sandbox, now = session.sandbox, session.ports.clock.now()
    if sandbox is None or sandbox.meter is None:
        raise CorruptRow(f"conversation {session.conversation.id}: no sandbox whose time could be paid")
    payers = _budgets(session)
    after = compute.extended(sandbox, sandbox.meter, payers, now)
    if isinstance(after, Lacking):
        return after
    accounts = (*payers, *_accounts(session, sandbox.meter, known=payers))
    session.sandbox = session.ports.journal.meters.extend(session.fence, sandbox, after, accounts, now)
    return None


def book(session: Session, sandbox: Sandbox) -> None:
    """Books what the time of a sandbox that is gone has cost, gives back the rest, and shows it with the run.

    Commands in it that had not ended are written off, those of people among them, which no step waits for.
    """
    if sandbox.meter is None:
        raise CorruptRow(f"sandbox {sandbox.id} has no meter to book")
    commands.write_off(session, sandbox, [*session.ports.journal.open_commands(sandbox.id)])
    now = session.ports.clock.now()
    after = compute.closed(sandbox, sandbox.meter, now)
    shown = projection.computed(session.object.status, after.earlier + after.booked)
    is_a_runs = session.conversation.kind != MACHINE
    released = runs_sandboxes.is_gone(session, sandbox, after.booked) if is_a_runs else ()
    session.conversation, session.sandbox = session.ports.journal.meters.book(
        session.fence,
        session.conversation,
        sandbox,
        after,
        accounts=_accounts(session, sandbox.meter),
        now=now,
        more=(*session.projected(shown), *released),
    )


def _budgets(session: Session) -> tuple[Account, ...]:
    place = session.conversation.object
    payers = session.ports.journal.accounts.payers(place.org, place.project)
    return tuple(account for account in payers if account.kind == BUDGET)


def _accounts(session: Session, meter: Meter, known: tuple[Account, ...] = ()) -> tuple[Account, ...]:
    """The meter's payers that are not among those known."""
    names = [name for name in meter.payers if name not in {account.id for account in known}]
    return tuple(found for found in session.ports.journal.accounts.accounts(names) if found is not None)
