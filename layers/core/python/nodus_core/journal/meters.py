"""Commits on the meters of sandboxes: their time is paid ahead, period by period, and booked when they are gone.

request-sandbox (`moves`: Budgets hold a period) ──► extend … ──► book (what is left goes back) ──► disowned, replaced

Each moves both sides in one transaction; the meter's `periods` is its receipt, so no period is paid twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from nodus_core.journal.accounts import freed
from nodus_core.journal.codec import to_row
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import account_key, conversation_key, sandbox_key
from nodus_core.journal.store import AtLeast, Check, Equals, Operation, Update, both
from nodus_core.journal.writer import Writer
from nodus_core.kernel.money import ZERO, Account, Meter
from nodus_core.kernel.objects import Conversation
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState


class Meters:
    """Each commit raises `ConditionFailed`: look again and decide anew."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def extend(
        self, fence: Fence, sandbox: Sandbox, after: Meter, accounts: Sequence[Account], now: datetime
    ) -> Sandbox:
        """The sandbox's next period is paid: what its time has cost is booked, what it may cost is held.

        `accounts` are the payers of the meter before and after, as read. Condition: the fence holds, the sandbox
        runs, its meter is the one seen, and each payer has what it is asked for.
        """
        self._writer.commit(
            "extend-sandbox",
            _metered(sandbox, SandboxState.RUNNING, after),
            Check(conversation_key(fence.conversation), fence.on_conversation),
            *moves(_meter(sandbox), after, accounts, now),
        )
        return replace(sandbox, meter=after)

    def book(
        self,
        fence: Fence,
        conversation: Conversation,
        sandbox: Sandbox,
        after: Meter,
        *,
        accounts: Sequence[Account],
        now: datetime,
        more: Sequence[Operation] = (),
    ) -> tuple[Conversation, Sandbox]:
        """A sandbox that is gone: all of its time is booked, what was held beyond goes back.

        `accounts` are its meter's payers, as read; `more` is the status projection. Condition: the fence holds, the
        sandbox is gone, its meter is the one seen; an account is as hungry as it was.
        """
        compute = after.earlier + after.booked
        self._writer.commit(
            "book-sandbox",
            _metered(sandbox, SandboxState.GONE, after),
            Update(
                conversation_key(conversation.id),
                when=both(fence.on_conversation, Equals("sandbox", sandbox.id)),
                assign={"compute": compute},
                remove=("outbox",),
            ),
            *moves(_meter(sandbox), after, accounts, now),
            *more,
        )
        return replace(conversation, compute=compute), replace(sandbox, meter=after)


def moves(before: Meter, after: Meter, accounts: Sequence[Account], now: datetime) -> tuple[Operation, ...]:
    """What accounts do when a meter changes: payers before book what was spent since and get back what they hold;
    payers after hold what it asks for.

    Condition: a payer that must give more than it gets has it, and is not closed. What has been spent is always
    booked, also where it is more than was held: the sandbox lived longer than it was paid for.
    """
    cost = after.booked - before.booked
    operations: list[Operation] = []
    for account in accounts:
        back = before.held if account.id in before.payers else ZERO
        booked = cost if account.id in before.payers else ZERO
        ahead = after.held if account.id in after.payers else ZERO
        add = {"available": back - booked - ahead, "held": ahead - back, "compute": booked}
        if ahead and add["available"] < ZERO:
            operations.append(
                Update(
                    account_key(account.id),
                    when=both(AtLeast("available", -add["available"]), Equals("closed", False)),
                    add=add,
                    remove=("outbox",),
                )
            )
        elif any(add.values()):
            operations.append(freed(account, add, now))
    return tuple(operations)


def _metered(sandbox: Sandbox, state: SandboxState, after: Meter) -> Update:
    same = Equals("meter.periods", _meter(sandbox).periods)
    return Update(
        sandbox_key(sandbox.id),
        when=both(Equals("state", state.value), same, Equals("meter.closed", False)),
        assign={"meter": to_row(after)},
        remove=("outbox",),
    )


def _meter(sandbox: Sandbox) -> Meter:
    if sandbox.meter is None:
        raise ValueError(f"sandbox {sandbox.id} has no meter")
    return sandbox.meter
