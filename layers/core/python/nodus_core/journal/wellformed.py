"""What every store refuses before it looks at a single row, so that the double is as strict as DynamoDB."""

from nodus_core.journal.store import MOST_OPERATIONS, Operation, Put, Transaction, Update

RESERVED = "w"
"""The attribute that adapters keep for themselves (the token of a row's last write)."""


def check(transaction: Transaction) -> None:
    """Raises ValueError when no store could carry out the transaction, whatever the rows are."""
    name, operations = transaction.name, transaction.operations
    if not operations:
        raise ValueError(f"{name}: a transaction without operations")
    if len(operations) > MOST_OPERATIONS:
        raise ValueError(f"{name}: {len(operations)} operations, at most {MOST_OPERATIONS}")
    if len({operation.key for operation in operations}) != len(operations):
        raise ValueError(f"{name}: two operations on one row")
    for operation in operations:
        _check_operation(name, operation)


def _check_operation(name: str, operation: Operation) -> None:
    match operation:
        case Put(row=row):
            if RESERVED in row:
                raise ValueError(f"{name}: the attribute {RESERVED!r} belongs to the store")
        case Update():
            _check_update(name, operation)
        case _:
            pass


def _check_update(name: str, update: Update) -> None:
    paths = [*update.assign, *update.remove, *update.add, *update.join, *update.leave]
    for path in paths:
        if path.partition(".")[0] in (RESERVED, "pk", "sk"):
            raise ValueError(f"{name}: an update may not change {path!r}")
    if len(paths) > 1 and _overlap(paths):
        raise ValueError(f"{name}: two changes to one place among {sorted(paths)}")
    for path in (*update.join, *update.leave):
        if "." in path:
            raise ValueError(f"{name}: sets are changed at the top of a row only, not at {path!r}")


def _overlap(paths: list[str]) -> bool:
    """Whether one of the paths is another, or lies inside another."""
    known = set(paths)
    if len(known) != len(paths):
        return True
    return any(
        ".".join(parts[:end]) in known
        for parts in (path.split(".") for path in paths)
        for end in range(1, len(parts))
    )
