"""Commits on an organization's credits: each goes with a line of their ledger, so that a request counts once."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from nodus_core.journal.accounts import closed, freed
from nodus_core.journal.codec import from_row
from nodus_core.journal.keys import account_key, entry_key, organization_key
from nodus_core.journal.store import Absent, Check, Equals, Operation, Present, Put, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.money import Account


@dataclass(frozen=True)
class Entry:
    """A line of an account's ledger: what an operator's request put in, and what the request said."""

    account: str
    key: str
    amount: Decimal
    at: datetime
    meaning: str = ""


class Ledger:
    """Commits on credits. Each raises `ConditionFailed`, which says by position what was not as it was read."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def put_in(self, account: Account | None, opened: Account, entry: Entry, now: datetime) -> None:
        """An organization's credits change by an entry of the ledger; the first one opens the account.

        `account` is the one as read, `opened` the new one where there is none. Condition, by position: nothing
        of the account has moved; the entry's key is new; the organization exists.
        """
        move: Operation = Put(stored(account_key(opened.id), opened), when=Absent())
        if account is not None:
            same = both(Equals("available", account.available), Equals("limit", account.limit))
            move = freed(account, {"limit": entry.amount, "available": entry.amount}, now, same)
            move = replace(move, assign={**move.assign, "closed": False})
        self._writer.commit(
            "put-in",
            move,
            Put(stored(entry_key(entry.account, entry.key), entry), when=Absent()),
            Check(organization_key(opened.org), Present()),
        )

    def end(self, account: Account | None, entry: Entry, org: str, now: datetime) -> None:
        """An organization's credits are unlimited from now on, by an entry of the ledger.

        `account` is the one as read. Condition, by position: they are limited, or not, as it says; the entry's
        key is new; the organization exists.
        """
        end: Operation = Check(account_key(entry.account), Absent())
        if account is not None:
            as_read = Check(account_key(account.id), Equals("closed", True))
            end = as_read if account.closed else closed(account, now)
        self._writer.commit(
            "end-credits",
            end,
            Put(stored(entry_key(entry.account, entry.key), entry), when=Absent()),
            Check(organization_key(org), Present()),
        )

    def entry(self, account: str, key: str) -> Entry | None:
        row = self._writer.store.get([entry_key(account, key)])[0]
        return None if row is None else from_row(Entry, row)
