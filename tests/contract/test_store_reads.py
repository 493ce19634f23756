"""Reading by key, by partition and by due time."""

import pytest
from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.aws.dynamodb_wire import DynamoDbWire
from nodus_core.journal.store import Absent, Key, Page, Present, Put, Row, Store, Transaction, Update


def _put(store: Store, *rows: Row) -> None:
    for start in range(0, len(rows), 100):
        chunk = rows[start : start + 100]
        store.commit(
            Transaction("seed", tuple(Put(row) for row in chunk)), f"seed {chunk[0]['pk']} {chunk[0]['sk']}"
        )


def _names(page: Page) -> list[str]:
    return [row["sk"] for row in page.rows]


def _walk(store: Store, pk: str, prefix: str, limit: int, newest_first: bool) -> list[list[str]]:
    """The sort keys, page by page, until there is no next page."""
    pages: list[list[str]] = []
    after: str | None = None
    while True:
        page = store.query(pk, prefix, after=after, limit=limit, newest_first=newest_first)
        pages.append(_names(page))
        after = page.after
        if after is None:
            return pages


def test_get_answers_in_the_order_of_the_keys(store: Store) -> None:
    _put(
        store, {"pk": "a", "sk": "1", "n": 1}, {"pk": "b", "sk": "1", "n": 2}, {"pk": "a", "sk": "2", "n": 3}
    )
    keys = [Key("b", "1"), Key("a", "2"), Key("nobody", "1"), Key("a", "1"), Key("b", "1")]

    found = store.get(keys)

    assert [row and row["n"] for row in found] == [2, 3, None, 1, 2]
    assert store.get([]) == []
    assert store.get([Key("nobody", "1")]) == [None]


def test_get_of_a_hundred_large_rows(store: Store) -> None:
    rows = [{"pk": "large", "sk": f"{n:03d}", "text": f"{n}" + "x" * 20_000} for n in range(100)]
    _put(store, *rows)

    assert store.get([Key("large", row["sk"]) for row in rows]) == rows


@pytest.mark.parametrize("newest_first", [False, True], ids=["oldest first", "newest first"])
@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 1000])
def test_pages_hold_every_row_once_and_the_last_says_so(store: Store, limit: int, newest_first: bool) -> None:
    names = [f"obs#{n:03d}" for n in range(6)]
    _put(store, *({"pk": "run", "sk": name} for name in [*names, "head", "t#a", "obs", "obs$"]))
    _put(store, {"pk": "run2", "sk": "obs#000"})
    ordered = names[::-1] if newest_first else names

    pages = _walk(store, "run", "obs#", limit, newest_first)

    assert [name for page in pages for name in page] == ordered
    assert all(len(page) == limit for page in pages[:-1])
    assert 0 < len(pages[-1]) <= limit


@pytest.mark.parametrize(
    ("after", "newest_first", "expected"),
    [
        ("b#1", False, ["b#2", "b#4"]),
        ("b#3", False, ["b#4"]),
        ("b#9", False, []),
        ("b#2", True, ["b#1"]),
        ("b#3", True, ["b#2", "b#1"]),
        ("b#0", True, []),
        ("a", False, ["b#1", "b#2", "b#4"]),
        ("b", False, ["b#1", "b#2", "b#4"]),
        ("c", False, []),
        ("a", True, []),
        ("c", True, ["b#4", "b#2", "b#1"]),
        ("", False, ["b#1", "b#2", "b#4"]),
        ("", True, []),
    ],
)
def test_after_need_not_be_a_row_nor_within_the_prefix(
    store: Store, after: str, newest_first: bool, expected: list[str]
) -> None:
    _put(store, *({"pk": "p", "sk": name} for name in ("a#1", "b#1", "b#2", "b#4", "c#1")))

    assert _names(store.query("p", "b#", after=after, newest_first=newest_first)) == expected


@pytest.mark.parametrize(
    ("after", "newest_first", "expected"), [("", False, ["a", "b"]), ("", True, []), ("a", False, ["b"])]
)
def test_after_without_a_prefix(store: Store, after: str, newest_first: bool, expected: list[str]) -> None:
    _put(store, {"pk": "p", "sk": "a"}, {"pk": "p", "sk": "b"})

    assert _names(store.query("p", after=after, newest_first=newest_first)) == expected


def test_an_empty_partition(store: Store) -> None:
    assert store.query("nobody") == Page(())
    assert store.query("nobody", "x", after="xy", newest_first=True) == Page(())


def test_a_partition_larger_than_one_answer(store: Store) -> None:
    rows = [{"pk": "large", "sk": f"{n:04d}", "text": "x" * 30_000} for n in range(120)]
    _put(store, *rows[:60])
    _put(store, *rows[60:])

    assert list(store.query("large").rows) == rows
    assert store.query("large", limit=119).after == "0118"


def test_sort_keys_are_ordered_by_their_bytes(store: Store) -> None:
    names = ["A", "a", "z", "é", "￿", "𐀀", "🎈"]
    _put(store, *({"pk": "p", "sk": name} for name in reversed(names)))

    assert _names(store.query("p")) == names


def test_due_rows_oldest_first(store: Store) -> None:
    _put(
        store,
        {"pk": "c1", "sk": "head", "dueShard": "due#1", "dueAt": "2030-01-01T00:00:03.000Z", "v": 1},
        {"pk": "c2", "sk": "head", "dueShard": "due#1", "dueAt": "2030-01-01T00:00:01.000Z"},
        {"pk": "c3", "sk": "head", "dueShard": "due#2", "dueAt": "2030-01-01T00:00:00.000Z"},
        {"pk": "c4", "sk": "head", "dueShard": "due#1", "dueAt": "2030-01-01T00:00:09.000Z"},
        {"pk": "c5", "sk": "head", "dueShard": "due#1"},
        {"pk": "c6", "sk": "head", "v": 1},
    )

    assert list(store.due("due#1", "2030-01-01T00:00:03.000Z", 10)) == [Key("c2", "head"), Key("c1", "head")]
    assert list(store.due("due#1", "2030-01-01T00:00:03.000Z", 1)) == [Key("c2", "head")]
    assert list(store.due("due#9", "2031", 10)) == []


def test_all_due_rows_are_given_however_many_they_are_also_while_they_are_moved(store: Store) -> None:
    names = [f"c{n:04d}" for n in range(300)]
    padding = "x" * 400  # so that a page of the index does not hold them all
    _put(
        store,
        *({"pk": f"{name}{padding}", "sk": "head", "dueShard": "due#7", "dueAt": "2030"} for name in names),
    )

    seen: list[str] = []
    for key in store.due("due#7", "2031"):
        seen.append(key.pk[:5])
        later = Update(key, Present(), assign={"dueAt": "2032"})
        store.commit(Transaction("kick", (later,)), f"kick {key.pk[:5]}")

    assert seen == names
    assert list(store.due("due#7", "2031")) == []


def test_a_row_leaves_the_due_index_with_its_due_time(store: Store) -> None:
    key = Key("c1", "head")
    _put(store, {"pk": "c1", "sk": "head", "dueShard": "due#1", "dueAt": "2030"})
    store.commit(Transaction("later", (Update(key, Present(), assign={"dueAt": "2032"}),)), "1")
    assert list(store.due("due#1", "2031", 10)) == []
    assert list(store.due("due#1", "2032", 10)) == [key]

    store.commit(Transaction("rest", (Update(key, Present(), remove=("dueAt", "dueShard")),)), "2")
    assert list(store.due("due#1", "9", 10)) == []


def test_no_caller_shares_a_row_with_the_store(store: Store) -> None:
    row = {"pk": "p", "sk": "s", "list": [{"n": 1}]}
    store.commit(Transaction("put", (Put(row, Absent()),)), "1")
    row["list"][0]["n"] = 2
    (read,) = store.get([Key("p", "s")])
    assert read is not None
    read["list"][0]["n"] = 3

    assert store.get([Key("p", "s")]) == [{"pk": "p", "sk": "s", "list": [{"n": 1}]}]


class _Forgetful:
    """A wire whose BatchGetItem leaves some keys unprocessed at first, as DynamoDB does under load."""

    def __init__(self, wire: DynamoDbWire) -> None:
        self._wire = wire
        self.asked: list[int] = []

    def call(self, operation: str, body: dict) -> dict:
        if operation != "BatchGetItem":
            return self._wire.call(operation, body)
        ((table, wanted),) = body["RequestItems"].items()
        keys = wanted["Keys"]
        self.asked.append(len(keys))
        some = {table: {**wanted, "Keys": keys[:4]}}
        answer = self._wire.call(operation, {"RequestItems": some})
        left = {table: {**wanted, "Keys": keys[4:]}} if len(keys) > 4 else {}
        return {**answer, "UnprocessedKeys": left}


def test_keys_left_unprocessed_are_asked_for_again(wire: DynamoDbWire, new_table) -> None:
    forgetful = _Forgetful(wire)
    store = DynamoDbStore(forgetful, new_table())
    rows = [{"pk": "p", "sk": str(n)} for n in range(10)]
    _put(store, *rows)

    assert store.get([Key("p", row["sk"]) for row in rows]) == rows
    assert forgetful.asked == [10, 6, 2]
