"""Random transactions leave equal rows and fail equally in the double and in DynamoDB."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nodus_core.aws.dynamodb_store import DynamoDbStore
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
    Present,
    Put,
    Row,
    Store,
    Transaction,
    Update,
)
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.testing.faults import Faults
from nodus_core.testing.memory_store import MemoryStore

from tests.contract.conftest import PATIENCE

SORT_KEYS = ("a", "b", "c", "d")
_examples = itertools.count(1)

whole = st.integers(-3, 3)
numbers = whole | st.decimals(-3, 3, places=2) | st.just(10**30)
words = st.sampled_from(["", "x", "y", "é"])
sets = st.frozensets(st.sampled_from(["t1", "t2", "t3"]), min_size=1)
leaves = numbers | words | st.booleans() | st.none() | sets
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
maps = st.fixed_dictionaries({}, optional={"count": numbers, "name": words})
NUMBERS, WORDS, SETS = ("n", "m.count"), ("s", "m.name"), ("open", "seen")
PATHS = (*NUMBERS, *WORDS, *SETS, "m", "any", "any.x")


def _about(path: str) -> st.SearchStrategy[Any]:
    if path in NUMBERS:
        return numbers
    if path in WORDS:
        return words
    return sets if path in SETS else maps if path == "m" else anything


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    kind = draw(st.sampled_from([Equals, Below, AtLeast, OneOf, Holds]))
    if kind is Holds:
        return Holds(draw(st.sampled_from(SETS)), draw(st.sampled_from(["t1", "t2"])))
    path = draw(st.sampled_from((*NUMBERS, *WORDS)))
    value = _about(path)
    if kind is OneOf:
        return OneOf(path, tuple(draw(st.lists(value, max_size=3))))
    return kind(path, draw(value))


existence = st.builds(Absent, st.none() | st.sampled_from(PATHS)) | st.builds(
    Present, st.none() | st.sampled_from(PATHS)
)
conditions = st.recursive(
    existence | comparisons(),
    lambda inner: (
        st.builds(Both, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Either, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=4,
)
likely = st.just(Present()) | st.just(Either((Present(), Absent()))) | conditions
bodies = st.fixed_dictionaries(
    {},
    optional={"n": numbers, "s": words, "open": sets, "seen": sets, "m": maps, "any": anything},
)


@st.composite
def updates(draw: st.DrawFn, key: Key) -> Update:
    changed = draw(st.lists(st.sampled_from(PATHS), max_size=4, unique=True))
    assign: dict[str, Any] = {}
    remove: list[str] = []
    add: dict[str, Any] = {}
    join: dict[str, frozenset[str]] = {}
    leave: dict[str, frozenset[str]] = {}
    for path in changed:
        match draw(st.sampled_from(["assign", "assign", "remove", "change"])):
            case "remove" if "." not in path:  # DynamoDB and its emulators differ on a missing map here
                remove.append(path)
            case "change" if path in NUMBERS:
                add[path] = draw(numbers)
            case "change" if path in SETS:
                draw(st.sampled_from([join, leave]))[path] = draw(sets)
            case _:
                assign[path] = draw(_about(path))
    return Update(key, draw(likely), assign, tuple(remove), add, join, leave)


@st.composite
def operations(draw: st.DrawFn, key: Key) -> Operation:
    match draw(st.sampled_from(["put", "put", "update", "update", "update", "delete", "check"])):
        case "put":
            row = {**draw(bodies), "pk": key.pk, "sk": key.sk}
            return Put(row, draw(st.none() | likely))
        case "update":
            return draw(updates(key))
        case "delete":
            return Delete(key, draw(st.none() | likely))
        case _:
            return Check(key, draw(likely))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Operation, ...]]:
    """Commits one after the other, each on some of the four rows of one partition, named `p`."""
    commits = st.lists(st.sampled_from(SORT_KEYS), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.tuples(*(operations(Key("p", name)) for name in names))
    )
    return draw(st.lists(commits, min_size=1, max_size=8))


def _outcome(store: Store, number: int, commit: tuple[Operation, ...]) -> object:
    try:
        store.commit(Transaction("random", commit), f"commit {number}")
    except ConditionFailed as error:
        return error.current
    except ValueError:
        return "refused"
    return "written"


def _story(store: Store, history: list[tuple[Operation, ...]]) -> list[object]:
    told: list[object] = []
    for number, commit in enumerate(history):
        told += [_outcome(store, number, commit), store.query("p").rows]
    return told


class _Apart:
    """A store for one example alone: its partition and tokens are renamed on the way in and out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mine = f"example {next(_examples)}"

    def commit(self, transaction: Transaction, token: str) -> None:
        renamed = tuple(self._in(operation) for operation in transaction.operations)
        try:
            self._store.commit(Transaction(transaction.name, renamed), f"{self._mine} {token}")
        except ConditionFailed as error:
            error.current = {index: self._out(row) for index, row in error.current.items()}
            raise

    def query(self, pk: str) -> Any:
        page = self._store.query(self._mine)
        return type(page)(tuple(self._out(row) for row in page.rows))

    def _in(self, operation: Operation) -> Operation:
        match operation:
            case Put(row=row, when=when):
                return Put({**row, "pk": self._mine}, when)
            case Update(key=key, when=when):
                fields = (operation.assign, operation.remove, operation.add, operation.join, operation.leave)
                return Update(Key(self._mine, key.sk), when, *fields)
            case _:
                return type(operation)(Key(self._mine, operation.key.sk), operation.when)

    def _out(self, row: Row) -> Row:
        return {**row, "pk": "p"} if row else row


@pytest.fixture(params=[False, True], ids=["whole network", "faulty network"])
def dynamo(request: pytest.FixtureRequest, new_table: Callable[[], str], faults: Faults) -> DynamoDbStore:
    if request.param:
        faults.roll(20300101)
    name = "faulty_wire" if request.param else "wire"
    return DynamoDbStore(request.getfixturevalue(name), new_table(), PATIENCE)


@pytest.mark.timeout(180)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=histories())
def test_both_stores_tell_the_same_story(dynamo: DynamoDbStore, history: list[tuple[Operation, ...]]) -> None:
    apart: Any = _Apart(dynamo)

    assert _story(apart, history) == _story(MemoryStore(), history)
