"""Sixteen threads at once: one winner, nothing lost, nothing torn."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from nodus_core.journal.store import Absent, Equals, Key, Present, Put, Store, Transaction, Update
from nodus_core.kernel.errors import ConditionFailed

THREADS = 16
HEAD = Key("run", "head")


def _at_once(work: Callable[[int], object]) -> list[object]:
    """What each thread's work returns; they begin together."""
    gate = threading.Barrier(THREADS)

    def begin(number: int) -> object:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def _wins(store: Store, transaction: Transaction, token: str) -> bool:
    try:
        store.commit(transaction, token)
    except ConditionFailed:
        return False
    return True


def test_of_many_puts_of_an_absent_row_one_wins(store: Store) -> None:
    def claim(number: int) -> list[bool]:
        return [
            _wins(
                store,
                Transaction("claim", (Put({"pk": "p", "sk": f"{key}", "by": number}, Absent()),)),
                f"{key} {number}",
            )
            for key in range(5)
        ]

    won = _at_once(claim)

    for key in range(5):
        winners = [number for number, wins in enumerate(won) if wins[key]]
        (row,) = store.get([Key("p", str(key))])
        assert row is not None
        assert winners == [row["by"]]


def test_of_many_transactions_on_one_generation_one_wins(store: Store) -> None:
    store.commit(Transaction("seed", (Put({"pk": "run", "sk": "head", "generation": 0}),)), "seed")

    def advance(number: int) -> list[int]:
        won: list[int] = []
        for generation in range(5):
            step = {"pk": "run", "sk": f"g{generation}", "by": number}
            transaction = Transaction(
                "step",
                (
                    Update(HEAD, Equals("generation", generation), assign={"generation": generation + 1}),
                    Put(step, Absent()),
                ),
            )
            if _wins(store, transaction, f"{generation} {number}"):
                won.append(generation)
        return won

    winners = Counter(generation for won in _at_once(advance) for generation in won)

    (head,) = store.get([HEAD])
    assert head is not None
    assert winners == {generation: 1 for generation in range(head["generation"])}
    assert len(store.query("run", "g").rows) == head["generation"] >= 1


def test_no_addition_is_lost_or_made_twice(store: Store) -> None:
    store.commit(Transaction("seed", (Put({"pk": "run", "sk": "head", "n": 0}),)), "seed")

    def add(number: int) -> None:
        for turn in range(5):
            transaction = Transaction("bell", (Update(HEAD, Present(), add={"n": 1}),))
            store.commit(transaction, f"{number} {turn}")

    _at_once(add)

    (head,) = store.get([HEAD])
    assert head is not None
    assert head["n"] == THREADS * 5


def test_one_transaction_from_many_hands_is_applied_once(store: Store) -> None:
    """The same commit under the same token, at once: what a retry after a lost answer is, at its worst."""
    store.commit(Transaction("seed", (Put({"pk": "run", "sk": "head", "n": 0}),)), "seed")
    transaction = Transaction(
        "step", (Update(HEAD, Present(), add={"n": 1}), Put({"pk": "run", "sk": "t#1"}, Absent()))
    )

    _at_once(lambda _: store.commit(transaction, "the one token"))

    (head,) = store.get([HEAD])
    assert head is not None
    assert head["n"] == 1


def test_no_reader_sees_half_a_transaction(store: Store) -> None:
    """Rows are read one after the other, the one that is written second first: it never runs ahead."""
    first, second = Key("p", "1"), Key("p", "2")
    done = threading.Event()

    def write(number: int) -> None:
        rows = tuple(Put({"pk": key.pk, "sk": key.sk, "n": number}) for key in (first, second))
        store.commit(Transaction("both", rows), f"{number}")

    def read() -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        while not done.is_set():
            (late,), (early,) = store.get([second]), store.get([first])
            assert late is not None
            assert early is not None
            seen.append((early["n"], late["n"]))
        return seen

    write(0)
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for number in range(1, 40):
                write(number)
        finally:
            done.set()
        seen = [pair for reader in readers for pair in reader.result()]

    assert seen
    assert all(early >= late for early, late in seen)
