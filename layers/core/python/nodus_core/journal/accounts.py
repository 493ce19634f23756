"""Commits on accounts: money goes to runs in slices, and comes back.

    account ──fund──► run's purse ──(calls reserve and settle there)──► give_back ──► account
       ▲                  └── too little: a waiter's row, the account is hungry, the line rests
       └── raise, give_back: a hungry account becomes due; whoever sees that kicks waiters ──► calm

Each moves both sides in one transaction, so that no slice is handed over twice or lost, whoever dies when.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from nodus_core.journal.codec import from_row
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import (
    account_key,
    account_partition,
    budgets_key,
    run_key,
    waiter_key,
)
from nodus_core.journal.lines import DUE, due
from nodus_core.journal.store import (
    Absent,
    AtLeast,
    Below,
    Condition,
    Delete,
    Equals,
    Operation,
    Present,
    Put,
    Row,
    Update,
    both,
)
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.money import Account, Purse, Waiter
from nodus_core.kernel.objects import Run

MOST_BUDGETS = 10
"""Budgets of one project: all of them are in every commit that moves money."""


class Accounts:
    """Reads and commits of accounts. Each commit raises `ConditionFailed`: look again and decide anew."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    # --- reads ---

    def account(self, account: str) -> Account | None:
        return self.accounts([account])[0]

    def accounts(self, names: Sequence[str]) -> list[Account | None]:
        """The accounts in the order of their ids."""
        rows = self._writer.store.get([account_key(name) for name in names]) if names else []
        return [None if row is None else from_row(Account, row) for row in rows]

    def budgets_of(self, org: str, project: str) -> frozenset[str]:
        """Ids of the accounts of a project's Budgets."""
        return _members(self._writer.store.get([budgets_key(org, project)])[0])

    def payers(self, org: str, project: str) -> tuple[Account, ...]:
        """Every account that a run of the project is paid from, in the order of their ids: none is no limit."""
        listed, credit = self._writer.store.get([budgets_key(org, project), account_key(credits_id(org))])
        found = [row for row in self._budget_rows(_members(listed)) if row is not None]
        accounts = [from_row(Account, row) for row in (*found, *([] if credit is None else [credit]))]
        return tuple(sorted((one for one in accounts if not one.closed), key=lambda one: one.id))

    def waiters(self, account: str) -> Iterator[Waiter]:
        """Lines that wait for money of an account."""
        after: str | None = None
        while True:
            page = self._writer.store.query(account_partition(account), "wait#", after=after)
            yield from (from_row(Waiter, row) for row in page.rows)
            if page.after is None:
                return
            after = page.after

    def _budget_rows(self, names: frozenset[str]) -> list[Row | None]:
        return self._writer.store.get([account_key(name) for name in sorted(names)]) if names else []

    # --- slices ---

    def fund(self, fence: Fence, run: Run, payers: Sequence[Account], amount: Decimal) -> Run:
        """Every payer hands `amount` to the run's purse; what the run has spent since is booked with it.

        Condition: the fence holds, the version is the one seen, nobody stopped the run, each payer has the amount.
        """
        purse = run.purse or Purse()
        names = tuple(account.id for account in payers)
        if purse.held and purse.payers != names:
            raise ValueError(f"run {run.uid}: its slice is of {purse.payers}, not of {names}")
        filled = Purse(names, purse.held - purse.due + amount, purse.left + amount)
        after = replace(run, version=run.version + 1, purse=filled)
        add = {"available": -amount, "held": amount - purse.due, "models": purse.due}
        self._writer.commit(
            "fund",
            _run(fence, run, after, Absent("stop")),
            *(
                Update(
                    account_key(account.id),
                    when=both(AtLeast("available", amount), Equals("closed", False)),
                    add=add,
                    remove=("outbox",),
                )
                for account in payers
            ),
            *_no_waiter(run, purse),
        )
        return after

    def give_back(self, fence: Fence, run: Run, accounts: Sequence[Account], now: datetime) -> Run:
        """What the run holds and has not reserved goes back; what it has spent is booked; it waits no more.

        `accounts` are the payers and the account that it waits for, as read. Condition: the fence holds, version
        and stop marker are the ones seen; an account is as hungry as it was.
        """
        purse = run.purse or Purse()
        rest = purse.reserved
        emptied = Purse(purse.payers, held=rest) if rest else None
        after = replace(run, version=run.version + 1, purse=emptied)
        moved = {"available": purse.left, "held": -(purse.left + purse.due), "models": purse.due}
        self._writer.commit(
            "give-back",
            _run(fence, run, after, Absent("stop") if run.stop is None else Present("stop")),
            *(freed(account, moved if account.id in purse.payers else {}, now) for account in accounts),
            *_no_waiter(run, purse),
        )
        return after

    # --- waiting ---

    def wait(self, fence: Fence, run: Run, account: Account, need: Decimal) -> tuple[Operation, ...]:
        """Operations by which a line that rests waits for money; they go into the commit that lets it rest.

        The run holds nothing, and waits nowhere else. Condition: the fence holds, the version is the one seen, nobody
        stopped the run, and the account has not got the money, so that whoever frees some finds the waiter.
        """
        after = replace(run, version=run.version + 1, purse=Purse(waits=account.id))
        waiter = Waiter(account.id, run.conversation, need)
        return (
            _run(fence, run, after, Absent("stop")),
            Put(stored(waiter_key(account.id, run.conversation), waiter)),
            Update(
                account_key(account.id),
                when=both(Below("available", need), Equals("closed", False)),
                assign={"hungry": True},
                add={"bell": 1},
                remove=("outbox",),
            ),
        )

    def calm(self, account: Account, again: datetime | None, *, hungry: bool) -> None:
        """Whoever could be served was kicked; looked at `again` then, or when the bell is rung (None).

        Condition: nobody rang the bell since the account was read.
        """
        key = account_key(account.id)
        self._writer.commit(
            "calm-account",
            Update(
                key,
                when=Equals("bell", account.bell),
                assign={"hungry": hungry, **(due(key.pk, again) if again else {})},
                remove=("outbox", *(() if again else DUE)),
            ),
        )

    def remove(self, account: Account) -> None:
        """A closed account of which nobody holds anything. Condition: it is as it was read."""
        settled = both(Equals("closed", True), Equals("bell", account.bell), Equals("held", 0))
        self._writer.commit("remove-account", Delete(account_key(account.id), when=settled))


def credits_id(org: str) -> str:
    """The account of an organization's credits; without its row they are unlimited."""
    return f"credits-{org}"


def opening(account: Account, known: frozenset[str]) -> tuple[Operation, ...]:
    """Operations that open a Budget's account. Condition: the project has the Budgets that were read."""
    return (
        Put(stored(account_key(account.id), account), when=Absent()),
        Update(
            budgets_key(account.org, account.project or ""),
            when=Equals("accounts", known) if known else Absent("accounts"),
            join={"accounts": frozenset({account.id})},
        ),
    )


def limiting(account: Account, limit: Decimal, now: datetime) -> Operation:
    """The operation that gives an account another limit. Condition: the limit is the one that was read."""
    change = limit - account.limit
    return freed(account, {"limit": change, "available": change}, now, Equals("limit", account.limit))


def closing(account: Account, now: datetime) -> tuple[Operation, ...]:
    """Operations that close a Budget's account: it limits nothing any more, and whoever waits for it goes on."""
    return (
        closed(account, now),
        Update(
            budgets_key(account.org, account.project or ""),
            when=Present(),
            leave={"accounts": frozenset({account.id})},
        ),
    )


def closed(account: Account, now: datetime) -> Update:
    """The operation after which an account limits nothing any more. Condition: it is not closed yet."""
    key = account_key(account.id)
    return Update(
        key,
        when=Equals("closed", False),
        assign={"closed": True, "outbox": "money", **due(key.pk, now)},
        add={"bell": 1},
    )


def freed(account: Account, add: dict[str, Decimal], now: datetime, when: Condition | None = None) -> Update:
    """Money comes to an account. A hungry one rings: it is due at once, and its waiters are looked at.

    Condition: it is as hungry as it was read, else somebody would wait who is not seen.
    """
    key = account_key(account.id)
    awake = account.hungry or account.closed
    more: dict[str, Any] = {"bell": 1} if awake else {}
    return Update(
        key,
        when=both(Equals("hungry", account.hungry), Equals("closed", account.closed), when),
        assign={"outbox": "money", **due(key.pk, now)} if awake else {},
        add={**add, **more},
        remove=() if awake else ("outbox",),
    )


def _run(fence: Fence, run: Run, after: Run, stop: Absent | Present) -> Put:
    """The run's whole row. A stop leaves its version as it is, so `stop` keeps it from being taken away unseen."""
    same = both(fence.on_run, Equals("version", run.version), stop)
    return Put(stored(run_key(run.uid), after), when=same)


def _no_waiter(run: Run, purse: Purse) -> tuple[Operation, ...]:
    return (Delete(waiter_key(purse.waits, run.conversation)),) if purse.waits else ()


def _members(row: Row | None) -> frozenset[str]:
    return frozenset() if row is None else frozenset(row.get("accounts", frozenset()))
