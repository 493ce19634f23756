"""What each operation leaves behind, and what every store refuses."""

from decimal import Decimal
from typing import Any

import pytest
from nodus_core.journal.codec import from_row, moment, to_row
from nodus_core.journal.store import (
    MOST_OPERATIONS,
    Absent,
    Check,
    Delete,
    Key,
    Operation,
    Present,
    Put,
    Row,
    Store,
    Transaction,
    Update,
)
from nodus_core.kernel.states import Guarantee, TaskKind, TaskState
from nodus_core.kernel.tasks import Claim, PlannedCall, Result, Task, Usage
from nodus_core.kernel.text import Inline, Stored

KEY = Key("p", "row")


def _commit(store: Store, *operations: Operation, token: str = "t") -> None:
    store.commit(Transaction("test", operations), token)


def _seeded(store: Store, **values: Any) -> None:
    _commit(store, Put({"pk": KEY.pk, "sk": KEY.sk, **values}), token="seed")


def _row(store: Store) -> Row:
    (row,) = store.get([KEY])
    assert row is not None
    return {name: value for name, value in row.items() if name not in ("pk", "sk")}


def _named(value: Any) -> str:
    """The same in every process: the order of a set is not."""
    return f"set of {sorted(value)}" if isinstance(value, frozenset) else repr(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "text",
        "Grüße 🎈\x00\n\u2028",
        0,
        -7,
        2**63,
        10**37,
        -(10**38) + 1,
        10**120,
        Decimal("0.1"),
        Decimal("-0.000000000000000000000000000000000001"),
        Decimal("12345678901234567890.123456789012345678"),
        Decimal("1E-120"),
        Decimal("9.9999999999999999999999999999999999999E+125"),
        True,
        False,
        [],
        {},
        ["", None, 1, Decimal("2.5"), [True], {"a": frozenset({"x"})}],
        {"": {"deep": {"deeper": [None]}}, "with.dot": 1, "status": "size"},
        frozenset({"a"}),
        frozenset({"", "b", "é"}),
    ],
    ids=_named,
)
def test_values_come_back_as_they_went_in(store: Store, value: Any) -> None:
    _seeded(store, value=value, nested={"value": value})
    _commit(store, Update(KEY, Present(), assign={"again": value}))

    assert _row(store) == {"value": value, "nested": {"value": value}, "again": value}
    assert _shape(_row(store)["value"]) == _shape(value)


def test_none_is_left_out_of_a_row_that_is_put(store: Store) -> None:
    _seeded(store, gone=None, kept={"inside": None})

    assert _row(store) == {"kept": {"inside": None}}


def test_whole_numbers_come_back_as_int(store: Store) -> None:
    _seeded(store, count=Decimal("5.00"), price=Decimal("5.10"))

    assert {name: type(value) for name, value in _row(store).items()} == {"count": int, "price": Decimal}


def test_an_object_of_the_kernel_survives_the_store(store: Store) -> None:
    now = moment("2030-01-02T03:04:05.678Z")
    task = Task(
        "r1",
        "r1t0",
        TaskKind.TOOL,
        TaskState.COMPLETED,
        Guarantee.AT_MOST_ONCE,
        3,
        now,
        claim=Claim("me", 2, now),
        reads=("a", "b"),
        input=Inline(""),
        cost=Decimal("0.000120"),
        reserved=Decimal("1"),
        usage=Usage(10, 0),
        message=Stored("ab" * 32, 10**7, "head"),
        calls=(PlannedCall("r1t0", "bash", 1),),
        result=Result(Inline("out"), exit_code=0),
    )
    _commit(store, Put({**to_row(task), "pk": KEY.pk, "sk": KEY.sk}))

    (row,) = store.get([KEY])

    assert row is not None
    assert from_row(Task, row) == task


def test_put_replaces_the_whole_row(store: Store) -> None:
    _seeded(store, a=1, b=2)
    _commit(store, Put({"pk": KEY.pk, "sk": KEY.sk, "c": 3}))

    assert _row(store) == {"c": 3}


def test_update_changes_only_what_it_names(store: Store) -> None:
    _seeded(store, a=1, b={"c": 2, "d": {"e": 3}}, gone=1, seen=frozenset({"x", "y"}), n=1)
    _commit(
        store,
        Update(
            KEY,
            Present(),
            assign={"a": "new", "b.d.e": [1], "b.new": {"k": None}},
            remove=("gone", "b.c", "never"),
            add={"n": 4, "b.d.count": 2, "money": Decimal("-0.25")},
            join={"seen": frozenset({"z"}), "open": frozenset({"t"})},
        ),
    )

    assert _row(store) == {
        "a": "new",
        "b": {"d": {"e": [1], "count": 2}, "new": {"k": None}},
        "n": 5,
        "money": Decimal("-0.25"),
        "seen": frozenset({"x", "y", "z"}),
        "open": frozenset({"t"}),
    }


def test_update_creates_an_absent_row(store: Store) -> None:
    _commit(store, Update(KEY, Absent(), assign={"a": 1}, add={"n": 2}, join={"s": frozenset({"x"})}))

    assert _row(store) == {"a": 1, "n": 2, "s": frozenset({"x"})}


def test_an_update_may_change_nothing(store: Store) -> None:
    _seeded(store, a=1)
    _commit(store, Update(KEY, Present()))

    assert _row(store) == {"a": 1}


def test_a_set_that_all_members_leave_is_gone(store: Store) -> None:
    _seeded(store, open=frozenset({"a", "b"}))
    _commit(store, Update(KEY, Present(), leave={"open": frozenset({"a", "other"})}), token="1")
    assert _row(store) == {"open": frozenset({"b"})}

    _commit(store, Update(KEY, Present(), leave={"open": frozenset({"b"})}), token="2")
    assert _row(store) == {}

    _commit(store, Update(KEY, Present(), leave={"open": frozenset({"b"})}), token="3")
    assert _row(store) == {}


def test_joining_nothing_makes_no_set(store: Store) -> None:
    _seeded(store, a=1)
    _commit(store, Update(KEY, Present(), join={"open": frozenset()}, leave={"other": frozenset()}))

    assert _row(store) == {"a": 1}


def test_reserved_words_are_ordinary_names(store: Store) -> None:
    words = {"name": 1, "status": 2, "size": 3, "values": {"order": {"by": 4}}, "_x": 5, "1st": 6, "a-b": 7}
    _seeded(store, **words)
    _commit(
        store,
        Update(
            KEY,
            Check(KEY, Present("values.order.by")).when,
            assign={"values.order.by": 5, "set": 8},
            add={"size": 1, "count": 1},
            remove=("status", "a-b"),
        ),
    )

    assert _row(store) == {
        **{"name": 1, "size": 4, "values": {"order": {"by": 5}}, "_x": 5, "1st": 6},
        **{"set": 8, "count": 1},
    }


def test_deleting_an_absent_row_is_fine(store: Store) -> None:
    _commit(store, Delete(KEY), token="1")
    _seeded(store, a=1)
    _commit(store, Delete(KEY), token="2")

    assert store.get([KEY]) == [None]


def test_a_hundred_operations_are_one_commit(store: Store) -> None:
    keys = [Key(f"p{n % 7}", f"r{n}") for n in range(MOST_OPERATIONS)]
    _commit(store, *(Put({"pk": key.pk, "sk": key.sk, "n": 1}, Absent()) for key in keys))

    assert [row and row["n"] for row in store.get(keys)] == [1] * MOST_OPERATIONS


REFUSED: dict[str, tuple[Operation, ...]] = {
    "no operation": (),
    "101 operations": tuple(Put({"pk": "p", "sk": str(n)}) for n in range(MOST_OPERATIONS + 1)),
    "one row twice": (Check(KEY, Present()), Delete(KEY)),
    "the store's attribute put": (Put({"pk": "p", "sk": "row", "w": 1}),),
    "the store's attribute assigned": (Update(KEY, Present(), assign={"w": 1}),),
    "the key assigned": (Update(KEY, Present(), assign={"sk": "x"}),),
    "one place twice": (Update(KEY, Present(), assign={"n": 1}, add={"n": 1}),),
    "a place inside another": (Update(KEY, Present(), assign={"m": {}}, remove=("m.a.b",)),),
    "a set inside a map": (Update(KEY, Present(), join={"m.open": frozenset({"x"})}),),
    "a path through a missing map": (Update(KEY, Present(), assign={"missing.a": 1}),),
    "a path through a missing map, after a write": (
        Put({"pk": "p", "sk": "first"}),
        Update(KEY, Present(), add={"missing.a": 1}),
    ),
    "an empty set": (Put({"pk": "p", "sk": "row", "m": {"open": frozenset()}}),),
    "an empty set assigned": (Update(KEY, Present(), assign={"open": frozenset()}),),
    "39 digits": (Put({"pk": "p", "sk": "row", "n": 10**38 + 1}),),
    "39 digits behind the point": (Put({"pk": "p", "sk": "row", "n": Decimal("1." + "1" * 38)}),),
    "a number too large": (Update(KEY, Present(), add={"n": Decimal("1E+126")}),),
    "no number": (Put({"pk": "p", "sk": "row", "n": Decimal("NaN")}),),
}


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_what_no_store_can_write_is_refused_and_nothing_is_written(store: Store, what: str) -> None:
    _seeded(store, n=1, m={"a": {"b": 1}})

    with pytest.raises(ValueError, match=r"\w"):
        _commit(store, *REFUSED[what])

    assert _row(store) == {"n": 1, "m": {"a": {"b": 1}}}
    assert len(store.query("p").rows) == 1


@pytest.mark.parametrize(
    "value", [1.5, b"bytes", object(), frozenset({1})], ids=["float", "bytes", "object", "set of int"]
)
def test_a_foreign_type_is_refused(store: Store, value: Any) -> None:
    with pytest.raises(TypeError):
        _seeded(store, value=value)


def _shape(value: Any) -> Any:
    """The types inside a value: 1 and True, and an int and a Decimal, are equal but not the same."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int
    return type(value)
