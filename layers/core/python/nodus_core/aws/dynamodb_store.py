"""The store on one DynamoDB table (`pk`, `sk`, and the sparse index `due` over `dueShard`, `dueAt`).

How a commit survives a lost answer, by the way it is sent:

- `TransactWriteItems` carries a hash of the write token as `ClientRequestToken`: for ten minutes DynamoDB
  itself answers a repetition with success and does nothing.
- A single put, or update that only sets, goes as `PutItem`/`UpdateItem`, at half the price. Its condition
  also demands that the row's write token (`w`) is not ours, so a repetition fails and shows the old row:
  `w` is ours, hence our write was applied. Carried out twice in spite of that (another writer came in
  between, and the condition holds again) it leaves what carrying it out once leaves.
- That is not so for a number that is added, and a deleted row has no `w` to show: a single update with `add`
  and a single delete with a condition therefore go as a transaction of one.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from nodus_core.aws.dynamodb_expressions import Expressions, condition_text, not_written_by, update_text
from nodus_core.aws.dynamodb_values import WRITE_TOKEN, decode_row, encode_row
from nodus_core.aws.dynamodb_wire import DynamoDbError, NoAnswer, Wire
from nodus_core.aws.patience import Patience
from nodus_core.journal import wellformed
from nodus_core.journal.store import (
    Absent,
    Check,
    Condition,
    Delete,
    Key,
    Operation,
    Page,
    Put,
    Row,
    Transaction,
    Update,
)
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
        # DynamoDB knows client tokens by account and ours are fresh by table.
        mark = hashlib.sha256(f"{self._table}\n{token}".encode()).hexdigest()[:32]
        operation, body = self._request(transaction, mark)
        try:
            self._send(operation, body, transaction.name)
        except DynamoDbError as error:
            failed = _failed_rows(error)
            if not failed:
                raise _translated(error, transaction.name) from error
            if not _is_ours(failed, mark, transaction):
                rows = {index: decode_row(item) for index, item in failed.items()}
                raise ConditionFailed(transaction.name, rows) from error

    def _request(self, transaction: Transaction, mark: str) -> tuple[str, dict[str, Any]]:
        if len(transaction.operations) == 1:
            match transaction.operations[0]:
                case Put() as put:
                    return "PutItem", self._put(put, mark, guard=True)
                case Update(add={}) as update if not update.add:
                    return "UpdateItem", self._update(update, mark, guard=True)
                case Delete(when=None) as delete:
                    return "DeleteItem", self._on_key(delete, Expressions())
                case _:
                    pass
        items = [self._item(operation, mark) for operation in transaction.operations]
        return "TransactWriteItems", {"TransactItems": items, "ClientRequestToken": mark}

    def _item(self, operation: Operation, mark: str) -> dict[str, Any]:
        match operation:
            case Put():
                return {"Put": self._put(operation, mark, guard=False)}
            case Update():
                return {"Update": self._update(operation, mark, guard=False)}
            case Delete():
                return {"Delete": self._on_key(operation, Expressions())}
            case Check():
                return {"ConditionCheck": self._on_key(operation, Expressions())}

    def _put(self, put: Put, mark: str, *, guard: bool) -> dict[str, Any]:
        named = Expressions()
        item = encode_row(put.row)
        item[WRITE_TOKEN] = {"S": mark}
        # A row that must be absent cannot carry our token: that condition is its own guard.
        condition = _condition(put.when, named, mark if guard and put.when != Absent() else None)
        return {"TableName": self._table, "Item": item} | condition | named.parameters()

    def _update(self, update: Update, mark: str, *, guard: bool) -> dict[str, Any]:
        named = Expressions()
        text = update_text(update, mark, named)
        condition = _condition(update.when, named, mark if guard else None)
        return {
            "TableName": self._table,
            "Key": _wired_key(update.key),
            "UpdateExpression": text,
            **condition,
            **named.parameters(),
        }

    def _on_key(self, operation: Delete | Check, named: Expressions) -> dict[str, Any]:
        condition = _condition(operation.when, named, None)
        return {
            "TableName": self._table,
            "Key": _wired_key(operation.key),
            **condition,
            **named.parameters(),
        }

    # --- reads --------------------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        """See `Store.get`. Each row is as it is now; rows of different keys may be of different moments."""
        if len(keys) == 1:
            body = {"TableName": self._table, "Key": _wired_key(keys[0]), "ConsistentRead": True}
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
            self._table: {"Keys": [_wired_key(key) for key in keys], "ConsistentRead": True}
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
                start = _wired_key(Key(pk, after))
        body: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": condition,
            "ConsistentRead": True,
            "ScanIndexForward": not newest_first,
            **named.parameters(),
        }
        # One row more than asked for tells whether there is a next page.
        items = self._pages(body, start, limit + 1)
        rows = tuple(decode_row(item) for item in items[:limit])
        return Page(rows, rows[-1]["sk"] if len(items) > limit else None)

    def due(self, shard: str, until: str, limit: int) -> Iterable[Key]:
        named = Expressions()
        condition = f"dueShard = {named.value(shard)} AND dueAt <= {named.value(until)}"
        body: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": DUE_INDEX,
            "KeyConditionExpression": condition,
            "ProjectionExpression": "pk, sk",
            **named.parameters(),
        }
        return [Key(item["pk"]["S"], item["sk"]["S"]) for item in self._pages(body, None, limit)]

    def _pages(self, body: dict[str, Any], start: dict[str, Any] | None, most: int) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        while True:
            request = {**body, "Limit": most - len(items)}
            if start is not None:
                request["ExclusiveStartKey"] = start
            answer = self._read("Query", request)
            items += answer.get("Items", [])
            start = answer.get("LastEvaluatedKey")
            if not start or len(items) >= most:
                return items

    # --- one request --------------------------------------------------------------------------------------

    def _read(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._send(operation, body, operation)
        except DynamoDbError as error:
            raise _translated(error, operation) from error

    def _send(self, operation: str, body: dict[str, Any], name: str) -> dict[str, Any]:
        """The answer, after as many attempts as patience allows. Every body here may be sent twice."""
        last: Exception | None = None
        for _ in self._patience.attempts():
            try:
                return self._wire.call(operation, body)
            except NoAnswer as error:
                last = error
            except DynamoDbError as error:
                if not error.again:
                    raise
                last = error
        raise StoreUnavailable(f"table {self._table}: {name} got no answer that holds: {last}") from last


def _wired_key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def _condition(when: Condition | None, named: Expressions, guarded: str | None) -> dict[str, Any]:
    texts = [condition_text(when, named)] if when is not None else []
    if guarded is not None:
        texts.append(not_written_by(guarded, named))
    if not texts:
        return {}
    return {
        "ConditionExpression": " AND ".join(texts),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _failed_rows(error: DynamoDbError) -> dict[int, dict[str, Any]]:
    """The rows whose conditions failed, as sent, by position."""
    if error.code in _CONDITION_CODES:
        return {0: error.body.get("Item") or {}}
    return {
        index: reason.get("Item") or {}
        for index, reason in enumerate(error.reasons)
        if reason.get("Code") in _CONDITION_CODES
    }


def _is_ours(failed: dict[int, dict[str, Any]], mark: str, transaction: Transaction) -> bool:
    """Whether a failed condition is our own write, seen by its repetition.

    Raises ValueError when the row was written under our token, but not by this transaction.
    """
    ours = [index for index, item in failed.items() if item.get(WRITE_TOKEN) == {"S": mark}]
    for index in ours:
        if not _left_by(transaction.operations[index], failed[index]):
            raise ValueError(f"{transaction.name}: its token was used for another transaction")
    return bool(ours)


def _left_by(operation: Operation, item: dict[str, Any]) -> bool:
    """Whether `item` is what this write leaves; nobody has written the row since."""
    match operation:
        case Put(row=row):
            return {name: value for name, value in row.items() if value is not None} == decode_row(item)
        case Update():
            row = decode_row(item)
            return (
                all(_at(row, path) == value for path, value in operation.assign.items())
                and all(_at(row, path) is None for path in operation.remove)
                and all(members <= row.get(path, frozenset()) for path, members in operation.join.items())
                and not any(members & row.get(path, frozenset()) for path, members in operation.leave.items())
            )
        case _:
            return False


def _at(row: Row, path: str) -> Any:
    here: Any = row
    for part in path.split("."):
        if not isinstance(here, dict) or part not in here:
            return None
        here = here[part]
    return here


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
