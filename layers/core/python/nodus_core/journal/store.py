"""The store port: conditional writes as data, so that every adapter obeys the very same conditions.

A `Transaction` is written wholly or not at all. `token` makes it recognisable: applying the same transaction
again under the same token changes nothing and succeeds, also when the first answer was lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Row = dict[str, Any]
"""A stored row: `pk`, `sk` and values of type str, int, Decimal, bool, None, list, dict, frozenset[str]."""


@dataclass(frozen=True)
class Key:
    """Primary key of a row."""

    pk: str
    sk: str


# --- conditions -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Absent:
    """The row (no path), or the value at `path`, does not exist."""

    path: str | None = None


@dataclass(frozen=True)
class Present:
    """The row (no path), or the value at `path`, exists."""

    path: str | None = None


@dataclass(frozen=True)
class Equals:
    path: str
    value: Any


@dataclass(frozen=True)
class Below:
    """The value at `path` exists and is less than `value`."""

    path: str
    value: Any


@dataclass(frozen=True)
class AtLeast:
    """The value at `path` exists and is at least `value`."""

    path: str
    value: Any


@dataclass(frozen=True)
class Holds:
    """The set at `path` holds `member`."""

    path: str
    member: str


@dataclass(frozen=True)
class OneOf:
    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Both:
    """All of the parts are true."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True)
class Either:
    """At least one of the parts is true."""

    parts: tuple["Condition", ...]


Condition = Absent | Present | Equals | Below | AtLeast | Holds | OneOf | Both | Either


def both(first: Condition, *rest: Condition | None) -> Condition:
    """All given conditions; None among the further ones is left out."""
    parts = (first, *(part for part in rest if part is not None))
    return first if len(parts) == 1 else Both(parts)


# --- operations -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    """Writes the whole row."""

    row: Row
    when: Condition | None = None

    @property
    def key(self) -> Key:
        return Key(self.row["pk"], self.row["sk"])


@dataclass(frozen=True)
class Update:
    """Changes values of one row. Paths are dotted (`lines.main.generation`).

    `assign` sets, `remove` drops, `add` adds to numbers (absent counts as 0), `join`/`leave` change a set of
    strings. An update of an absent row creates it, unless `when` forbids that: give a condition.
    """

    key: Key
    when: Condition
    assign: Row = field(default_factory=dict[str, Any])
    remove: tuple[str, ...] = ()
    add: dict[str, Any] = field(default_factory=dict[str, Any])
    join: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    leave: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])


@dataclass(frozen=True)
class Check:
    """Writes nothing; the transaction fails when the condition does not hold."""

    key: Key
    when: Condition


@dataclass(frozen=True)
class Delete:
    key: Key
    when: Condition | None = None


Operation = Put | Update | Check | Delete

MOST_OPERATIONS = 100
"""Operations in one transaction (DynamoDB's limit)."""


@dataclass(frozen=True)
class Transaction:
    """One commit: its name (also the name of its crash points) and its operations, on distinct rows.

    `within_s`: seconds after which no further attempt of it is begun, where it must not become visible late.
    """

    name: str
    operations: tuple[Operation, ...]
    within_s: float | None = None


# --- reads ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Page:
    """Rows in key order; `after` is the sort key to go on behind, or None at the end."""

    rows: tuple[Row, ...]
    after: str | None = None


class Store(Protocol):
    """Durable rows. Every read is strongly consistent, except `due`, whose rows must be read again by key."""

    def commit(self, transaction: Transaction, token: str) -> None:
        """Writes all operations or none.

        Raises `ConditionFailed` with the current rows by position, `StoreUnavailable` when it is not known
        whether it was applied or when it certainly was not and trying again may help.
        """
        ...

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        """The rows under up to 100 keys, in the order of the keys."""
        ...

    def query(
        self,
        pk: str,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> Page:
        """Rows of a partition whose sort key begins with `prefix`, behind `after`."""
        ...

    def due(self, shard: str, until: str, limit: int | None = None) -> Iterable[Key]:
        """Keys of rows whose `dueShard` is `shard` and whose `dueAt` is at most `until`, oldest first.

        All of them, read as they are asked for, or the first `limit`.
        """
        ...
