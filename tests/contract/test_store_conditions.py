"""Every kind of condition, on every kind of operation, means the same in every store."""

from collections.abc import Callable
from decimal import Decimal

import pytest
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
    Store,
    Transaction,
    Update,
)
from nodus_core.kernel.errors import ConditionFailed

KEY = Key("p", "row")
ROW = {
    "pk": KEY.pk,
    "sk": KEY.sk,
    "count": 3,
    "price": Decimal("1.25"),
    "name": "b",
    "flag": True,
    "off": False,
    "nothing": {"inside": None},
    "open": frozenset({"t1", "t2"}),
    "lines": {"main": {"generation": 4, "claimant": "me"}},
    "list": ["a", 1],
    "status": "running",
    "empty": "",
}

ON_ROW: list[tuple[Condition, bool]] = [
    (Absent(), False),
    (Present(), True),
    (Absent("name"), False),
    (Absent("other"), True),
    (Absent("lines.main.lease"), True),
    (Absent("lines.side.lease"), True),
    (Absent("name.inside"), True),
    (Present("name"), True),
    (Present("other"), False),
    (Present("lines.main.claimant"), True),
    (Present("lines.side.claimant"), False),
    (Present("empty"), True),
    (Present("nothing.inside"), True),
    (Equals("count", 3), True),
    (Equals("count", Decimal("3.0")), True),
    (Equals("count", 4), False),
    (Equals("price", Decimal("1.250")), True),
    (Equals("name", "b"), True),
    (Equals("name", "B"), False),
    (Equals("empty", ""), True),
    (Equals("flag", True), True),
    (Equals("off", True), False),
    (Equals("nothing.inside", None), True),
    (Equals("open", frozenset({"t2", "t1"})), True),
    (Equals("open", frozenset({"t1"})), False),
    (Equals("list", ["a", 1]), True),
    (Equals("lines.main", {"claimant": "me", "generation": 4}), True),
    (Equals("lines.main.generation", 4), True),
    (Equals("other", 1), False),
    (Equals("status", "running"), True),
    (Below("count", 4), True),
    (Below("count", 3), False),
    (Below("name", "c"), True),
    (Below("name", "b"), False),
    (Below("price", Decimal("1.26")), True),
    (Below("other", 9), False),
    (AtLeast("count", 3), True),
    (AtLeast("count", 4), False),
    (AtLeast("name", "aé"), True),
    (AtLeast("name", "é"), False),
    (AtLeast("other", 0), False),
    (Holds("open", "t1"), True),
    (Holds("open", "t3"), False),
    (Holds("other", "t1"), False),
    (OneOf("name", ("a", "b")), True),
    (OneOf("name", ("a", "c")), False),
    (OneOf("name", ()), False),
    (OneOf("other", ("a",)), False),
    (Both((Equals("count", 3), Present("name"))), True),
    (Both((Equals("count", 3), Absent("name"))), False),
    (Both(()), True),
    (Either((Equals("count", 9), Present("name"))), True),
    (Either((Equals("count", 9), Absent("name"))), False),
    (Either(()), False),
    (Both((Either((Absent("other"), Equals("other", 1))), Either((Equals("count", 3), Absent())))), True),
    (
        Either((Both((Equals("count", 3), Absent("name"))), Both((Present("flag"), Equals("off", False))))),
        True,
    ),
]

ON_NOTHING: list[tuple[Condition, bool]] = [
    (Absent(), True),
    (Present(), False),
    (Absent("name"), True),
    (Present("name"), False),
    (Equals("name", "b"), False),
    (Below("count", 4), False),
    (AtLeast("count", 0), False),
    (Holds("open", "t1"), False),
    (OneOf("name", ("b",)), False),
    (Both(()), True),
    (Both((Absent(), Absent("name"))), True),
    (Either(()), False),
    (Either((Absent(), Equals("name", "b"))), True),
]

OPERATIONS: dict[str, Callable[[Key, Condition], Operation]] = {
    "put": lambda key, when: Put({"pk": key.pk, "sk": key.sk, "new": 1}, when),
    "update": lambda key, when: Update(key, when, assign={"new": 1}),
    "add": lambda key, when: Update(key, when, add={"new": 1}),
    "delete": Delete,
    "check": Check,
}


def test_conditions_on_a_row(store: Store) -> None:
    store.commit(Transaction("seed", (Put(ROW),)), "seed")
    for number, (condition, expected) in enumerate(ON_ROW):
        assert _passes(store, Check(KEY, condition), f"c{number}") is expected, condition


def test_conditions_on_no_row(store: Store) -> None:
    for number, (condition, expected) in enumerate(ON_NOTHING):
        assert _passes(store, Check(KEY, condition), f"c{number}") is expected, condition


@pytest.mark.parametrize("kind", sorted(OPERATIONS))
@pytest.mark.parametrize("company", [False, True], ids=["alone", "with another"])
def test_each_operation_obeys_its_condition(store: Store, kind: str, company: bool) -> None:
    other = Key("p", "other")
    more: tuple[Operation, ...] = (Put({"pk": "p", "sk": "other"}),) if company else ()
    store.commit(Transaction("seed", (Put(ROW),)), "seed")

    with pytest.raises(ConditionFailed) as lost:
        store.commit(Transaction("lose", (*more, OPERATIONS[kind](KEY, Equals("count", 4)))), "lose")

    assert lost.value.commit == "lose"
    assert lost.value.current == {len(more): ROW}
    assert store.get([KEY, other]) == [ROW, None]

    store.commit(Transaction("win", (*more, OPERATIONS[kind](KEY, Equals("count", 3)))), "win")

    kept = {"put": {"pk": "p", "sk": "row", "new": 1}, "delete": None, "check": ROW}
    expected = kept.get(kind, {**ROW, "new": 1})
    assert store.get([KEY, other]) == [expected, {"pk": "p", "sk": "other"} if company else None]


@pytest.mark.parametrize("kind", sorted(OPERATIONS))
def test_a_failure_on_no_row_shows_an_empty_one(store: Store, kind: str) -> None:
    with pytest.raises(ConditionFailed) as lost:
        store.commit(Transaction("lose", (OPERATIONS[kind](KEY, Present()),)), "lose")

    assert lost.value.current == {0: {}}
    assert store.get([KEY]) == [None]


def test_every_failed_condition_is_shown_by_position(store: Store) -> None:
    rows = [{"pk": "p", "sk": f"r{n}", "n": n} for n in range(4)]
    store.commit(Transaction("seed", tuple(Put(row) for row in rows)), "seed")

    with pytest.raises(ConditionFailed) as lost:
        store.commit(
            Transaction(
                "lose",
                (
                    Check(Key("p", "r0"), Equals("n", 9)),
                    Update(Key("p", "r1"), Equals("n", 1), add={"n": 1}),
                    Put({"pk": "p", "sk": "r2"}, Absent()),
                    Delete(Key("p", "r3"), Equals("n", 3)),
                    Check(Key("p", "r4"), Present()),
                ),
            ),
            "lose",
        )

    assert lost.value.current == {0: rows[0], 2: rows[2], 4: {}}
    assert store.get([Key("p", f"r{n}") for n in range(5)]) == [*rows, None]


def _passes(store: Store, check: Check, token: str) -> bool:
    try:
        store.commit(Transaction("check", (check,)), token)
    except ConditionFailed:
        return False
    return True
