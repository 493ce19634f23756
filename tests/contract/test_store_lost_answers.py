"""What DynamoDB does and no emulator shows: lost answers, conflicts, throttling. One planned fault at a time."""

from collections.abc import Callable

import pytest
from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.aws.dynamodb_wire import DynamoDbWire
from nodus_core.aws.patience import Patience
from nodus_core.journal.store import (
    Absent,
    Check,
    Delete,
    Either,
    Equals,
    Key,
    Operation,
    Present,
    Put,
    Row,
    Store,
    Transaction,
    Update,
)
from nodus_core.kernel.errors import ConditionFailed, StoreUnavailable
from nodus_core.testing.faults import CARRIED_OUT, Fault, Faults, FaultyStore
from nodus_core.testing.memory_store import MemoryStore

KEY, OTHER = Key("p", "row"), Key("p", "other")
SEED: Row = {"pk": "p", "sk": "row", "n": 1, "state": "ready", "open": frozenset({"a"})}
QUICK = Patience(tries=3, seconds=10, first_s=0.001, most_s=0.002)

COMMITS: dict[str, tuple[Operation, ...]] = {
    "put if absent": (Put({"pk": "p", "sk": "new", "v": 1}, Absent()),),
    "put on a condition": (Put({"pk": "p", "sk": "row", "n": 2, "gone": None}, Equals("n", 1)),),
    "put": (Put({"pk": "p", "sk": "row", "n": 2, "parts": ("a", 1)}),),
    "update": (
        Update(
            KEY,
            Equals("state", "ready"),
            assign={"state": "running", "m": {"k": None}},
            remove=("n",),
            join={"open": frozenset({"b"})},
        ),
    ),
    "update that leaves": (Update(KEY, Present(), leave={"open": frozenset({"a"})}),),
    "update that may be repeated": (Update(KEY, Present(), assign={"state": "running"}),),
    "addition": (Update(KEY, Present(), add={"n": 1}),),
    "delete": (Delete(KEY),),
    "delete on a condition": (Delete(KEY, Equals("n", 1)),),
    "check": (Check(KEY, Equals("n", 1)),),
    "transaction": (
        Update(KEY, Equals("n", 1), add={"n": 1}),
        Put({"pk": "p", "sk": "new"}, Absent()),
        Delete(OTHER, Present()),
    ),
}


@pytest.fixture
def dynamo(faulty_wire: DynamoDbWire, new_table: Callable[[], str]) -> DynamoDbStore:
    """A store with two rows, behind a network that is still whole."""
    store = DynamoDbStore(faulty_wire, new_table(), QUICK)
    seed(store)
    return store


def seed(store: Store) -> None:
    store.commit(Transaction("seed", (Put(SEED), Put({"pk": "p", "sk": "other"}))), "seed")


def after(commit: str) -> list[Row]:
    """The rows that an undisturbed commit leaves."""
    store = MemoryStore()
    seed(store)
    store.commit(Transaction(commit, COMMITS[commit]), "t")
    return list(store.query("p").rows)


@pytest.mark.parametrize("fault", list(Fault), ids=str)
@pytest.mark.parametrize("commit", sorted(COMMITS))
def test_a_fault_changes_nothing_for_the_caller(
    dynamo: DynamoDbStore, faults: Faults, commit: str, fault: Fault
) -> None:
    faults.plan(fault)

    dynamo.commit(Transaction(commit, COMMITS[commit]), "t")

    assert list(dynamo.query("p").rows) == after(commit)
    assert faults.injected == [fault]


@pytest.mark.parametrize("commit", sorted(COMMITS))
def test_a_loser_is_told_so_whatever_the_network_does(
    dynamo: DynamoDbStore, faults: Faults, commit: str
) -> None:
    """A refusal whose own answer is lost stays a refusal."""
    (first, *rest) = COMMITS[commit]
    key = first.key
    losing = (_with(first, Equals("state", "never")), *rest)
    current = {0: SEED if key == KEY else {}}
    faults.plan(Fault.LOST)

    with pytest.raises(ConditionFailed) as lost:
        dynamo.commit(Transaction(commit, losing), "t")

    assert lost.value.current == current
    assert list(dynamo.query("p").rows) == [{"pk": "p", "sk": "other"}, SEED]


@pytest.mark.parametrize("commit", sorted(COMMITS))
def test_the_same_token_is_the_same_commit(dynamo: DynamoDbStore, commit: str) -> None:
    for _ in range(3):
        dynamo.commit(Transaction(commit, COMMITS[commit]), "t")

    assert list(dynamo.query("p").rows) == after(commit)


@pytest.mark.parametrize(
    ("commit", "other"),
    [
        ("put if absent", (Put({"pk": "p", "sk": "new", "v": 2}, Absent()),)),
        ("put on a condition", (Put({"pk": "p", "sk": "row", "n": 3}, Equals("n", 1)),)),
        ("put", (Put({"pk": "p", "sk": "row", "n": 3}),)),
        ("update", (Update(KEY, Equals("state", "ready"), assign={"state": "other"}),)),
        ("update that leaves", (Update(KEY, Present(), join={"open": frozenset({"c"})}),)),
        ("addition", (Update(KEY, Present(), add={"n": 2}),)),
        ("transaction", (*COMMITS["transaction"][:2], Delete(OTHER))),
    ],
)
def test_a_token_stands_for_one_transaction(
    backend: str, request: pytest.FixtureRequest, commit: str, other: tuple[Operation, ...]
) -> None:
    store: Store = request.getfixturevalue("store")
    seed(store)
    store.commit(Transaction(commit, COMMITS[commit]), "t")
    before = store.query("p").rows

    with pytest.raises(ValueError, match="token"):
        store.commit(Transaction(commit, other), "t")

    assert store.query("p").rows == before


def test_another_writer_in_between_makes_no_addition_twice(
    dynamo: DynamoDbStore, faults: Faults, new_table: Callable[[], str]
) -> None:
    """The answer is lost, somebody else writes the row, and only then the first writer tries again."""
    bell = Transaction("bell", (Update(KEY, Present(), add={"n": 1}),))
    impatient = Patience(tries=1)
    hasty = DynamoDbStore(dynamo._wire, dynamo._table, impatient)
    faults.plan(Fault.LOST)
    with pytest.raises(StoreUnavailable):
        hasty.commit(bell, "mine")
    dynamo.commit(bell, "another's")

    dynamo.commit(bell, "mine")

    (row,) = dynamo.get([KEY])
    assert row is not None
    assert row["n"] == 3


def test_a_repeated_claim_does_not_overrule_a_later_writer(dynamo: DynamoDbStore, faults: Faults) -> None:
    """A single write whose trace is gone is reported as lost; it is not made again over what came later."""
    claim = Transaction(
        "claim", (Update(KEY, Equals("state", "ready"), assign={"state": "running", "by": "me"}),)
    )
    hasty = DynamoDbStore(dynamo._wire, dynamo._table, Patience(tries=1))
    faults.plan(Fault.LOST)
    with pytest.raises(StoreUnavailable):
        hasty.commit(claim, "mine")
    dynamo.commit(
        Transaction("finish", (Update(KEY, Equals("by", "me"), assign={"state": "done"}),)), "other"
    )

    with pytest.raises(ConditionFailed) as lost:
        dynamo.commit(claim, "mine")

    assert lost.value.current[0]["by"] == "me"
    assert lost.value.current[0]["state"] == "done"


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.SLOW], ids=str)
def test_patience_ends_with_an_honest_error(dynamo: DynamoDbStore, faults: Faults, fault: Fault) -> None:
    faults.plan(*[fault] * QUICK.tries)

    with pytest.raises(StoreUnavailable, match="step"):
        dynamo.commit(Transaction("step", COMMITS["addition"]), "t")

    assert faults.injected == [fault] * QUICK.tries
    (row,) = dynamo.get([KEY])
    assert row is not None
    assert row["n"] == (2 if fault in CARRIED_OUT else 1)


@pytest.mark.parametrize("fault", list(Fault), ids=str)
def test_reads_are_tried_again(dynamo: DynamoDbStore, faults: Faults, fault: Fault) -> None:
    for read in (
        lambda: dynamo.get([KEY]) == [SEED],
        lambda: dynamo.get([KEY, OTHER]) == [SEED, {"pk": "p", "sk": "other"}],
        lambda: [row["sk"] for row in dynamo.query("p").rows] == ["other", "row"],
        lambda: list(dynamo.due("none", "9", 1)) == [],
    ):
        faults.plan(fault)
        assert read()
    assert faults.injected == [fault] * 4


def test_many_commits_over_a_bad_network_are_each_made_once(
    faulty_wire: DynamoDbWire, new_table: Callable[[], str], faults: Faults
) -> None:
    store = DynamoDbStore(
        faulty_wire, new_table(), Patience(tries=60, seconds=20, first_s=0.001, most_s=0.002)
    )
    faults.roll(7, rate=0.5)
    bell = Transaction("bell", (Update(KEY, Either((Absent(), Present())), add={"n": 1}),))

    for number in range(60):
        step = Transaction("step", (*bell.operations, Put({"pk": "p", "sk": f"t#{number:02d}"}, Absent())))
        store.commit(bell, f"bell {number}")
        store.commit(step, f"step {number}")

    faults.roll(7, rate=0)
    (head,) = store.get([KEY])
    assert head == {"pk": "p", "sk": "row", "n": 120}
    assert len(store.query("p", "t#").rows) == 60
    assert set(faults.injected) == set(Fault)


@pytest.mark.parametrize("fault", list(Fault), ids=str)
def test_faults_around_the_double_reach_its_caller(fault: Fault) -> None:
    inner, faults = MemoryStore(), Faults(fault)
    store = FaultyStore(inner, faults)
    put = Transaction("put", (Put({"pk": "p", "sk": "s"}, Absent()),))

    if fault is Fault.SLOW:
        store.commit(put, "t")
    else:
        with pytest.raises(StoreUnavailable, match=fault):
            store.commit(put, "t")

    assert len(inner.commits) == (fault in CARRIED_OUT)
    store.commit(put, "t")
    assert store.get([Key("p", "s")]) == [{"pk": "p", "sk": "s"}]
    assert len(inner.commits) == 1


def _with(operation: Operation, when: Equals) -> Operation:
    match operation:
        case Put(row=row):
            return Put(row, when)
        case Update(key=key, assign=assign, add=add):
            return Update(key, when, assign=assign, add=add)
        case Delete(key=key):
            return Delete(key, when)
        case Check(key=key):
            return Check(key, when)
