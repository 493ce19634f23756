"""The store on one DynamoDB table: `pk`, `sk`, and the sparse index `due` over `dueShard` and `dueAt`."""

from collections.abc import Iterator, Sequence
from typing import Any

from nodus_core.aws.dynamodb_expressions import Expressions
from nodus_core.aws.dynamodb_requests import Requests, is_own_write, wired_key, write_mark
from nodus_core.aws.dynamodb_values import Wired, decode_row
from nodus_core.aws.dynamodb_wire import DynamoDbError, NoAnswer, Wire
from nodus_core.aws.patience import Patience
from nodus_core.journal import wellformed
from nodus_core.journal.store import Key, Page, Row, Transaction
from nodus_core.kernel.errors import ConditionFailed, StoreUnavailable, TerminalError

BATCH = 100
"""Keys in one BatchGetItem (DynamoDB's limit)."""

DUE_INDEX = "due"

_CONDITION_CODES = ("ConditionalCheckFailed", "ConditionalCheckFailedException")


class DynamoDbStore:
    """A `Store`; safe to share between threads. `patience` bounds the attempts of one call."""

    def __init__(self, wire: Wire, table: str, patience: Patience | None = None) -> None:
        self._wire = wire
        self._table = table
        self._patience = patience or Patience()

    # --- writes -------------------------------------------------------------------------------------------

    def commit(self, transaction: Transaction, token: str) -> None:
        """Writes all operations or none (see `Store.commit`).

        Also raises ValueError for a transaction that cannot be written as it is, or whose token stands for
        another one, and `TerminalError` when the table is missing or access is denied.

        After a lost answer and a later write of the same row by somebody else, a single put or update may
        raise `ConditionFailed` although it was applied; the caller looks again, as after any lost race.
        """
        wellformed.check(transaction)
        mark = write_mark(self._table, token)
        operation, body = Requests(self._table, mark).of(transaction)
        try:
            self._send(operation, body, transaction.name, transaction.within_s)
        except DynamoDbError as error:
            failed = _failed_rows(error)
            if not failed:
                raise _translated(error, transaction.name) from error
            if not is_own_write(transaction, failed, mark):
                rows = {index: decode_row(item) for index, item in failed.items()}
                raise ConditionFailed(transaction.name, rows) from error

    # --- reads --------------------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        """See `Store.get`. Each row is as it is now; rows of different keys may be of different moments."""
        if len(keys) == 1:
            body = {"TableName": self._table, "Key": wired_key(keys[0]), "ConsistentRead": True}
            item = self._read("GetItem", body).get("Item")
            return [decode_row(item) if item else None]
        distinct = list(dict.fromkeys(keys))
        found: dict[Key, Row] = {}
        for start in range(0, len(distinct), BATCH):
            found |= self._batch(distinct[start : start + BATCH])
        return [found.get(key) for key in keys]

    def _batch(self, keys: list[Key]) -> dict[Key, Row]:
        found: dict[Key, Row] = {}
        wanted: dict[str, Any] = {
            self._table: {"Keys": [wired_key(key) for key in keys], "ConsistentRead": True}
        }
        for _ in self._patience.attempts():
            answer = self._read("BatchGetItem", {"RequestItems": wanted})
            for item in answer.get("Responses", {}).get(self._table, []):
                row = decode_row(item)
                found[Key(row["pk"], row["sk"])] = row
            wanted = answer.get("UnprocessedKeys") or {}
            if not wanted:
                return found
        left = len(wanted[self._table]["Keys"])
        raise StoreUnavailable(f"table {self._table}: {left} of {len(keys)} rows were not answered")

    def query(
        self,
        pk: str,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> Page:
        named = Expressions()
        condition = f"pk = {named.value(pk)}"
        if prefix:
            condition += f" AND begins_with(sk, {named.value(prefix)})"
        start = None
        if after is not None:
            if not after or not after.startswith(prefix):
                # DynamoDB refuses a start outside of the range: it lies before all of it or behind all of it.
                if (after < prefix or not after) == newest_first:
                    return Page(())
            else:
                start = wired_key(Key(pk, after))
        body: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": condition,
            "ConsistentRead": True,
            "ScanIndexForward": not newest_first,
            **named.parameters(),
        }
        # One row more than asked for tells whether there is a next page.
        items = list(self._items(body, start, limit + 1))
        rows = tuple(decode_row(item) for item in items[:limit])
        return Page(rows, rows[-1]["sk"] if len(items) > limit else None)

    def due(self, shard: str, until: str, limit: int | None = None) -> Iterator[Key]:
        named = Expressions()
        condition = f"dueShard = {named.value(shard)} AND dueAt <= {named.value(until)}"
        body: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": DUE_INDEX,
            "KeyConditionExpression": condition,
            "ProjectionExpression": "pk, sk",
            **named.parameters(),
        }
        for item in self._items(body, None, limit):
            yield Key(item["pk"]["S"], item["sk"]["S"])

    def _items(
        self, body: dict[str, Any], start: dict[str, Any] | None, most: int | None
    ) -> Iterator[dict[str, Any]]:
        """The items of a query, page by page as they are asked for; `most` of them, or all."""
        left = most
        while left is None or left > 0:
            request = body if left is None else {**body, "Limit": left}
            if start is not None:
                request = {**request, "ExclusiveStartKey": start}
            answer = self._read("Query", request)
            items: list[dict[str, Any]] = answer.get("Items", [])
            yield from items
            left = None if left is None else left - len(items)
            start = answer.get("LastEvaluatedKey")
            if not start:
                return

    # --- one request --------------------------------------------------------------------------------------

    def _read(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._send(operation, body, operation)
        except DynamoDbError as error:
            raise _translated(error, operation) from error

    def _send(
        self, operation: str, body: dict[str, Any], name: str, within_s: float | None = None
    ) -> dict[str, Any]:
        """The answer, after as many attempts as patience allows. Every body here may be sent twice."""
        last: Exception | None = None
        for _ in self._patience.within(within_s).attempts():
            try:
                return self._wire.call(operation, body)
            except NoAnswer as error:
                last = error
            except DynamoDbError as error:
                if not error.again:
                    raise
                last = error
        raise StoreUnavailable(f"table {self._table}: {name} got no answer that holds: {last}") from last


def _failed_rows(error: DynamoDbError) -> dict[int, Wired]:
    """The rows whose conditions failed, as sent, by position."""
    if error.code in _CONDITION_CODES:
        return {0: error.body.get("Item") or {}}
    return {
        index: reason.get("Item") or {}
        for index, reason in enumerate(error.reasons)
        if reason.get("Code") in _CONDITION_CODES
    }


def _translated(error: DynamoDbError, name: str) -> Exception:
    """What the caller can do about an answer that trying again does not change."""
    if error.code == "IdempotentParameterMismatchException":
        return ValueError(f"{name}: its token was used for another transaction")
    if error.code in ("ValidationException", "TransactionCanceledException", "SerializationException"):
        reasons = "; ".join(
            f"operation {index}: {reason.get('Message') or reason['Code']}"
            for index, reason in enumerate(error.reasons)
            if (reason.get("Code") or "None") != "None"
        )
        return ValueError(f"{name} is refused by DynamoDB: {reasons or error.message}")
    return TerminalError(
        f"{name}: DynamoDB refused the request ({error}): check the table's name and the role"
    )
