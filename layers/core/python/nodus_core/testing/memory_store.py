"""The store in memory: same conditions, same answers as the real one, one lock around every commit."""

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from itertools import islice
from typing import Any, cast

from nodus_core.journal import wellformed
from nodus_core.journal.store import (
    Absent,
    AtLeast,
    Below,
    Both,
    Check,
    Condition,
    Delete,
    Either,
    Equals,
    Holds,
    Key,
    OneOf,
    Operation,
    Page,
    Present,
    Put,
    Row,
    Transaction,
    Update,
)
from nodus_core.journal.values import DIGITS, canonical, number
from nodus_core.kernel.errors import ConditionFailed

_EXACT = Context(prec=4 * DIGITS)


class MemoryStore:
    """A `Store` that lives as long as the process. Copies go in and come out: no caller shares a row."""

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}
        self._names: dict[str, list[str]] = {}  # of each partition, in order
        self._due: set[Key] = set()
        self._tokens: dict[str, Transaction] = {}
        self._lock = threading.RLock()
        self.commits: list[Transaction] = []
        """Every transaction that was applied, in order: what a test counts."""

    def commit(self, transaction: Transaction, token: str) -> None:
        wellformed.check(transaction)
        with self._lock:
            known = self._tokens.get(token)
            if known is not None:
                if known != transaction:
                    raise ValueError(f"token {token!r} was used for another transaction")
                return
            failed = {
                index: _copy(self._rows.get(operation.key) or {})
                for index, operation in enumerate(transaction.operations)
                if operation.when is not None and not holds(operation.when, self._rows.get(operation.key))
            }
            if failed:
                raise ConditionFailed(transaction.name, failed)
            # Made whole before anything is kept: a path through a missing map must leave every row as it was.
            after = {
                operation.key: _after(operation, self._rows.get(operation.key))
                for operation in transaction.operations
                if not isinstance(operation, Check)
            }
            for key, row in after.items():
                self._keep(key, row)
            self._tokens[token] = transaction
            self.commits.append(transaction)

    def _keep(self, key: Key, row: Row | None) -> None:
        names = self._names.setdefault(key.pk, [])
        if row is not None and "dueShard" in row and "dueAt" in row:
            self._due.add(key)
        else:
            self._due.discard(key)
        if row is None:
            if self._rows.pop(key, None) is not None:
                names.remove(key.sk)
            return
        if key not in self._rows:
            insort(names, key.sk)
        self._rows[key] = row

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        with self._lock:
            return [_copy(self._rows.get(key)) for key in keys]

    def query(
        self,
        pk: str,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> Page:
        with self._lock:
            known = self._names.get(pk, [])
            if newest_first:
                end = len(known) if after is None else bisect_left(known, after)
                names: Iterable[str] = reversed(known[:end])
            else:
                start = bisect_left(known, prefix) if after is None else bisect_right(known, after)
                names = islice(known, start, None)
            found = list(islice((name for name in names if name.startswith(prefix)), limit + 1))
            chosen = found[:limit]
            rows = tuple(_copy(self._rows[Key(pk, name)]) for name in chosen)
        return Page(rows, chosen[-1] if len(found) > limit else None)

    def due(self, shard: str, until: str, limit: int | None = None) -> Iterable[Key]:
        with self._lock:
            rows = [(key, self._rows[key]) for key in self._due]
            found = sorted(
                (row["dueAt"], key.pk, key.sk)
                for key, row in rows
                if row["dueShard"] == shard and row["dueAt"] <= until
            )
        return [Key(pk, sk) for _, pk, sk in found[:limit]]

    def rows(self) -> dict[Key, Row]:
        """A copy of everything, for comparing two outcomes."""
        with self._lock:
            return _copy(self._rows)


def _copy(value: Any) -> Any:
    """A copy that shares nothing which can change: of what `canonical` makes, maps and lists."""
    if type(value) is dict:
        return {name: _copy(item) for name, item in cast("dict[Any, Any]", value).items()}
    if type(value) is list:
        return [_copy(item) for item in cast("list[Any]", value)]
    return value


def _after(operation: Operation, row: Row | None) -> Row | None:
    """The row that an operation leaves behind; None: no row."""
    match operation:
        case Put(row=written):
            return canonical({name: value for name, value in written.items() if value is not None})
        case Update():
            changed = _copy(row) if row else {"pk": operation.key.pk, "sk": operation.key.sk}
            _change(changed, operation)
            return changed
        case Delete():
            return None
        case Check():
            return row


def _change(row: Row, update: Update) -> None:
    for path, value in update.assign.items():
        holder, name = _holder(row, path)
        holder[name] = canonical(value)
    for path in update.remove:
        holder, name = _holder(row, path)
        holder.pop(name, None)
    for path, amount in update.add.items():
        holder, name = _holder(row, path)
        # Exact, whatever the thread's decimal context says of precision.
        holder[name] = number(_EXACT.add(Decimal(holder.get(name, 0)), Decimal(number(amount))))
    for path, members in update.join.items():
        if members:
            row[path] = frozenset(row.get(path, frozenset())) | members
    for path, members in update.leave.items():
        left = frozenset(row.get(path, frozenset())) - members
        if left:
            row[path] = left
        else:
            row.pop(path, None)


def _holder(row: Row, path: str) -> tuple[Row, str]:
    *parents, name = path.split(".")
    here = row
    for parent in parents:
        if parent not in here:
            raise ValueError(f"path {path!r} leads through a missing map")
        here = here[parent]
    return here, name


_MISSING = object()


def _value(row: Row, path: str) -> Any:
    here: Any = row
    for part in path.split("."):
        if not isinstance(here, dict) or part not in here:
            return _MISSING
        here = cast("Row", here)[part]
    return here


def holds(condition: Condition, row: Row | None) -> bool:
    """Whether a condition holds for a row as it is (None: there is no row)."""
    match condition:
        case Both(parts=parts):
            return all(holds(part, row) for part in parts)
        case Either(parts=parts):
            return any(holds(part, row) for part in parts)
        case Absent(path=path):
            return row is None or (path is not None and _value(row, path) is _MISSING)
        case Present(path=path):
            return row is not None and (path is None or _value(row, path) is not _MISSING)
        case _:
            value = _value(row, condition.path) if row is not None else _MISSING
            return value is not _MISSING and _compare(condition, value)


def _compare(condition: Condition, value: Any) -> bool:
    match condition:
        case Equals(value=wanted):
            return bool(value == wanted)
        case Below(value=bound):
            return bool(value < bound)
        case AtLeast(value=bound):
            return bool(value >= bound)
        case OneOf(values=values):
            return value in values
        case Holds(member=member):
            return member in value
        case _:
            raise TypeError(f"not a comparison: {condition!r}")
