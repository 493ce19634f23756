"""Commits as DynamoDB requests, and how a repeated request recognises the write of the first.

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
from typing import Any

from nodus_core.aws.dynamodb_expressions import Expressions, condition_text, not_written_by, update_text
from nodus_core.aws.dynamodb_values import WRITE_TOKEN, Wired, decode_row, encode_row
from nodus_core.journal.store import (
    Absent,
    Check,
    Condition,
    Delete,
    Key,
    Operation,
    Put,
    Row,
    Transaction,
    Update,
)
from nodus_core.journal.values import canonical


def wired_key(key: Key) -> Wired:
    """A primary key as it is sent."""
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def write_mark(table: str, token: str) -> str:
    """What stands for a write token in the rows, and as client token (32 of its 36 characters).

    With the table in it: DynamoDB knows client tokens by account, ours are fresh by table.
    """
    return hashlib.sha256(f"{table}\n{token}".encode()).hexdigest()[:32]


class Requests:
    """Makes the request of one commit on one table."""

    def __init__(self, table: str, mark: str) -> None:
        self._table = table
        self._mark = mark

    def of(self, transaction: Transaction) -> tuple[str, dict[str, Any]]:
        """The operation of DynamoDB and its body, the same bytes for the same transaction."""
        if len(transaction.operations) == 1:
            match transaction.operations[0]:
                case Put() as put:
                    return "PutItem", self._put(put, guard=True)
                case Update() as update if not update.add:
                    return "UpdateItem", self._update(update, guard=True)
                case Delete(when=None) as delete:
                    return "DeleteItem", self._on_key(delete)
                case _:
                    pass
        items = [self._item(operation) for operation in transaction.operations]
        return "TransactWriteItems", {"TransactItems": items, "ClientRequestToken": self._mark}

    def _item(self, operation: Operation) -> dict[str, Any]:
        match operation:
            case Put():
                return {"Put": self._put(operation, guard=False)}
            case Update():
                return {"Update": self._update(operation, guard=False)}
            case Delete():
                return {"Delete": self._on_key(operation)}
            case Check():
                return {"ConditionCheck": self._on_key(operation)}

    def _put(self, put: Put, *, guard: bool) -> dict[str, Any]:
        named = Expressions()
        item = encode_row(put.row)
        item[WRITE_TOKEN] = {"S": self._mark}
        # A row that must be absent cannot carry our token: that condition is its own guard.
        condition = self._condition(put.when, named, guard=guard and put.when != Absent())
        return {"TableName": self._table, "Item": item, **condition, **named.parameters()}

    def _update(self, update: Update, *, guard: bool) -> dict[str, Any]:
        named = Expressions()
        return {
            "TableName": self._table,
            "Key": wired_key(update.key),
            "UpdateExpression": update_text(update, self._mark, named),
            **self._condition(update.when, named, guard=guard),
            **named.parameters(),
        }

    def _on_key(self, operation: Delete | Check) -> dict[str, Any]:
        named = Expressions()
        return {
            "TableName": self._table,
            "Key": wired_key(operation.key),
            **self._condition(operation.when, named, guard=False),
            **named.parameters(),
        }

    def _condition(self, when: Condition | None, named: Expressions, *, guard: bool) -> dict[str, Any]:
        mark = self._mark if guard else None
        if when is not None:
            text = condition_text(when, named, unless_written_by=mark)
        elif mark is not None:
            text = not_written_by(mark, named)
        else:
            return {}
        return {"ConditionExpression": text, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def is_own_write(transaction: Transaction, failed: dict[int, Wired], mark: str) -> bool:
    """Whether conditions failed on rows that this very commit has written, when its answer was lost.

    `failed` holds the rows as sent, by position. Raises ValueError when a row was written under this
    commit's token, but not by this transaction.
    """
    ours = [index for index, item in failed.items() if item.get(WRITE_TOKEN) == {"S": mark}]
    for index in ours:
        if not _left_by(transaction.operations[index], decode_row(failed[index])):
            raise ValueError(f"{transaction.name}: its token was used for another transaction")
    return bool(ours)


def _left_by(operation: Operation, row: Row) -> bool:
    """Whether `row` is what this write leaves; nobody has written the row since."""
    match operation:
        case Put(row=written):
            return canonical({name: value for name, value in written.items() if value is not None}) == row
        case Update():
            return (
                all(_at(row, path) == canonical(value) for path, value in operation.assign.items())
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
