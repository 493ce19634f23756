"""How the store sends commits, and what it makes of DynamoDB's refusals (the rest: tests/contract)."""

from typing import Any

import pytest
from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.aws.dynamodb_values import decode
from nodus_core.aws.dynamodb_wire import CONNECT_S, READ_S, DynamoDbError, NoAnswer
from nodus_core.aws.patience import Patience
from nodus_core.aws.system import FreshIds
from nodus_core.journal.changes import COMMIT_WITHIN_S, OVERLAP
from nodus_core.journal.keys import change_key
from nodus_core.journal.ports import NoCrash
from nodus_core.journal.store import (
    Absent,
    Check,
    Delete,
    Equals,
    Key,
    Operation,
    Present,
    Put,
    Transaction,
    Update,
)
from nodus_core.journal.writer import Writer
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, StoreUnavailable, TerminalError
from nodus_core.kernel.objects import ObjectKey

KEY = Key("p", "s")
ROW = {"pk": "p", "sk": "s", "n": 1}
NO_PAUSE = Patience(sleep=lambda _: None)


class _Wire:
    """Plays its answers in order and keeps what it was asked."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((operation, body))
        answer = self._answers.pop(0) if self._answers else {}
        if isinstance(answer, Exception):
            raise answer
        return answer


def _error(code: str, status: int = 400, **body: Any) -> DynamoDbError:
    return DynamoDbError("Op", code, "because", status, body)


def _commit(wire: _Wire, *operations: Operation) -> None:
    DynamoDbStore(wire, "journal", NO_PAUSE).commit(Transaction("step", operations), "token")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Put(ROW), "PutItem"),
        (Put(ROW, Absent()), "PutItem"),
        (Update(KEY, Present(), assign={"n": 1}), "UpdateItem"),
        (Update(KEY, Present(), join={"open": frozenset({"a"})}), "UpdateItem"),
        (Update(KEY, Present(), add={"n": 1}), "TransactWriteItems"),
        (Delete(KEY), "DeleteItem"),
        (Delete(KEY, Present()), "TransactWriteItems"),
        (Check(KEY, Present()), "TransactWriteItems"),
    ],
)
def test_one_operation_goes_the_cheapest_way_that_may_be_repeated(
    operation: Operation, expected: str
) -> None:
    wire = _Wire()
    _commit(wire, operation)

    assert [sent for sent, _ in wire.asked] == [expected]


def test_a_repeated_request_is_the_same_bytes() -> None:
    wire = _Wire(
        NoAnswer("cut"),
        _error("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}]),
    )
    _commit(
        wire,
        Put({**ROW, "set": frozenset({"c", "b", "a"})}, Absent()),
        Update(Key("p", "o"), Equals("n", 1), add={"n": 1}, join={"x": frozenset({"2", "1"})}),
    )

    (_, first), (_, second), (_, third) = wire.asked
    assert first == second == third
    assert len(first["ClientRequestToken"]) <= 36
    assert first["TransactItems"][0]["Put"]["Item"]["set"] == {"SS": ["a", "b", "c"]}


def test_tables_do_not_share_tokens() -> None:
    wire = _Wire()
    check = Transaction("step", (Check(KEY, Present()),))
    for table in ("journal", "other"):
        DynamoDbStore(wire, table).commit(check, "token")

    first, second = (body["ClientRequestToken"] for _, body in wire.asked)
    assert first != second


def test_a_lost_condition_beside_a_conflict_is_a_lost_condition() -> None:
    reasons = [
        {"Code": "TransactionConflict"},
        {"Code": "ConditionalCheckFailed", "Item": {"pk": {"S": "p"}, "sk": {"S": "o"}, "w": {"S": "other"}}},
    ]
    wire = _Wire(_error("TransactionCanceledException", CancellationReasons=reasons))

    with pytest.raises(ConditionFailed) as lost:
        _commit(wire, Put(ROW, Absent()), Put({"pk": "p", "sk": "o"}, Absent()))

    assert lost.value.current == {1: {"pk": "p", "sk": "o"}}
    assert len(wire.asked) == 1


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (_error("ValidationException"), ValueError, "step is refused by DynamoDB: because"),
        (
            _error(
                "TransactionCanceledException",
                CancellationReasons=[{"Code": "None"}, {"Code": "ValidationError", "Message": "too large"}],
            ),
            ValueError,
            "operation 1: too large",
        ),
        (_error("IdempotentParameterMismatchException"), ValueError, "token was used"),
        (_error("ResourceNotFoundException"), TerminalError, "table's name"),
        (_error("AccessDeniedException"), TerminalError, "the role"),
    ],
)
def test_what_trying_again_does_not_change(error: Exception, expected: type[Exception], message: str) -> None:
    wire = _Wire(error)

    with pytest.raises(expected, match=message):
        _commit(wire, Put(ROW, Absent()), Delete(Key("p", "o")))

    assert len(wire.asked) == 1


def test_a_store_that_never_answers_is_unavailable_after_bounded_tries() -> None:
    wire = _Wire(*[NoAnswer("cut")] * 100)

    with pytest.raises(StoreUnavailable, match=r"table journal: step.*cut"):
        _commit(wire, Put(ROW))

    assert len(wire.asked) == Patience().tries


@pytest.mark.parametrize(
    ("key", "hastens"), [(change_key(ObjectKey("o", "p", "Agent", "a"), 7), True), (Key("p", "o"), False)]
)
def test_a_commit_that_tells_a_change_is_visible_before_watchers_have_gone_on(
    key: Key, hastens: bool
) -> None:
    """Its version was made before its first attempt: whoever watches waits `OVERLAP` for what lies before a position."""
    now, begun, clocks = [0.0], list[float](), 2.0

    class Mute:
        def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
            begun.append(now[0])
            now[0] += CONNECT_S + READ_S
            raise NoAnswer("cut")

    patience = Patience(sleep=lambda _: None, elapsed=lambda: now[0])
    writer = Writer(DynamoDbStore(Mute(), "journal", patience), FreshIds(), NoCrash())
    with pytest.raises(StoreUnavailable):
        writer.commit("step", Put(ROW), Put({"pk": key.pk, "sk": key.sk}))
    assert (begun[-1] + CONNECT_S + READ_S + clocks <= OVERLAP / 1_000_000) is hastens
    assert COMMIT_WITHIN_S + CONNECT_S + READ_S + clocks <= OVERLAP / 1_000_000


def test_rows_that_stay_unprocessed_are_an_error() -> None:
    left = {"journal": {"Keys": [{"pk": {"S": "p"}, "sk": {"S": "2"}}]}}
    wire = _Wire(*[{"Responses": {"journal": []}, "UnprocessedKeys": left}] * 100)

    with pytest.raises(StoreUnavailable, match="1 of 2 rows"):
        DynamoDbStore(wire, "journal", NO_PAUSE).get([Key("p", "1"), Key("p", "2")])


def test_more_than_a_hundred_keys_are_asked_for_in_turn() -> None:
    wire = _Wire()
    keys = [Key("p", str(n)) for n in range(250)]

    assert DynamoDbStore(wire, "journal").get(keys) == [None] * 250
    assert [len(body["RequestItems"]["journal"]["Keys"]) for _, body in wire.asked] == [100, 100, 50]


def test_reads_are_consistent_but_for_the_index() -> None:
    wire = _Wire()
    store = DynamoDbStore(wire, "journal")
    store.get([KEY])
    store.query("p")
    list(store.due("due#1", "2030", 10))

    assert [body.get("ConsistentRead") for _, body in wire.asked] == [True, True, None]


def test_a_value_that_we_never_write_is_a_corrupt_row() -> None:
    with pytest.raises(CorruptRow, match="'B'"):
        decode({"B": "AAAA"})
