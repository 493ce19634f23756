"""How every commit is written: crash point, one conditional transaction under a fresh token, crash point."""

from dataclasses import dataclass
from typing import Any

from nodus_core.journal.changes import COMMIT_WITHIN_S
from nodus_core.journal.codec import SHAPE, to_row
from nodus_core.journal.keys import is_change
from nodus_core.journal.ports import CrashPoints, Ids
from nodus_core.journal.store import Key, Operation, Row, Store, Transaction


@dataclass(frozen=True)
class Writer:
    """What the journal's parts share."""

    store: Store
    ids: Ids
    crash: CrashPoints

    def commit(self, name: str, *operations: Operation) -> None:
        """Writes all or nothing. Raises `ConditionFailed` or `StoreUnavailable`."""
        self.crash.reach(f"{name}.before")
        within = COMMIT_WITHIN_S if any(is_change(operation.key) for operation in operations) else None
        self.store.commit(Transaction(name, operations, within), self.ids.fresh("w"))
        self.crash.reach(f"{name}.after")


def stored(key: Key, thing: Any, **more: Any) -> Row:
    """The row of an object: its fields, its key, the version of its shape, and what only the row has."""
    return {**to_row(thing), "pk": key.pk, "sk": key.sk, "v": SHAPE, **more}
