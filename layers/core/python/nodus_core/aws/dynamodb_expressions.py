"""Conditions and changes as DynamoDB expressions.

Every attribute name goes through `ExpressionAttributeNames` (a third of the words one would choose are
reserved), every value through `ExpressionAttributeValues`.
"""

from typing import Any

from nodus_core.aws.dynamodb_values import WRITE_TOKEN, encode
from nodus_core.journal.store import (
    Absent,
    AtLeast,
    Below,
    Both,
    Condition,
    Either,
    Equals,
    Holds,
    OneOf,
    Present,
    Update,
)

_ROW_EXISTS = "attribute_exists(pk)"
_NO_ROW = "attribute_not_exists(pk)"
_NEVER = f"{_ROW_EXISTS} AND {_NO_ROW}"


class Expressions:
    """The names and values that the expressions of one operation share."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def path(self, dotted: str) -> str:
        """`lines.main.state` as `#a.#b.#c`."""
        return ".".join([self._name(part) for part in dotted.split(".")])

    def value(self, value: Any) -> str:
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = encode(value)
        return placeholder

    def parameters(self) -> dict[str, Any]:
        """The request's members for what was named; an empty member would be refused."""
        found: dict[str, Any] = {}
        if self._names:
            found["ExpressionAttributeNames"] = {alias: name for name, alias in self._names.items()}
        if self._values:
            found["ExpressionAttributeValues"] = self._values
        return found

    def _name(self, name: str) -> str:
        alias = self._names.get(name)
        if alias is None:
            alias = self._names[name] = f"#{len(self._names)}"
        return alias


def condition_text(condition: Condition, named: Expressions, *, unless_written_by: str | None = None) -> str:
    """A condition as the text of a `ConditionExpression`.

    `unless_written_by`: the row's last write must also not be the one with this token.
    """
    text, compound = _text(condition, named)
    if unless_written_by is None:
        return text
    return f"{f'({text})' if compound else text} AND {not_written_by(unless_written_by, named)}"


def not_written_by(token: str, named: Expressions) -> str:
    """True unless the row's last write was the one with this token; also where there is no row."""
    return f"NOT {WRITE_TOKEN} = {named.value(token)}"


def _text(condition: Condition, named: Expressions) -> tuple[str, bool]:
    """The text, and whether it needs parentheses inside another (DynamoDB refuses redundant ones)."""
    match condition:
        case Both(parts=parts):
            return _joined(" AND ", parts, named) or (f"{_ROW_EXISTS} OR {_NO_ROW}", True)
        case Either(parts=parts):
            return _joined(" OR ", parts, named) or (_NEVER, True)
        case OneOf(values=()):
            return _NEVER, True
        case _:
            return _simple(condition, named), False


def _joined(word: str, parts: tuple[Condition, ...], named: Expressions) -> tuple[str, bool] | None:
    if len(parts) <= 1:
        return _text(parts[0], named) if parts else None
    texts = [_text(part, named) for part in parts]
    return word.join([f"({text})" if compound else text for text, compound in texts]), True


def _simple(
    condition: Absent | Present | Equals | Below | AtLeast | Holds | OneOf, named: Expressions
) -> str:
    match condition:
        case Absent(path=path):
            return _NO_ROW if path is None else f"attribute_not_exists({named.path(path)})"
        case Present(path=path):
            return _ROW_EXISTS if path is None else f"attribute_exists({named.path(path)})"
        case Holds(path=path, member=member):
            return f"contains({named.path(path)}, {named.value(member)})"
        case OneOf(path=path, values=values):
            return f"{named.path(path)} IN ({', '.join([named.value(value) for value in values])})"
        case Equals(path=path, value=value):
            return f"{named.path(path)} = {named.value(value)}"
        case Below(path=path, value=value):
            return f"{named.path(path)} < {named.value(value)}"
        case AtLeast(path=path, value=value):
            return f"{named.path(path)} >= {named.value(value)}"


def update_text(update: Update, token: str, named: Expressions) -> str:
    """The changes of an update, and the write token, as an `UpdateExpression`.

    Numbers are added by `SET … if_not_exists`: `ADD` is documented for top-level attributes only.
    """
    sets = [f"{WRITE_TOKEN} = {named.value(token)}"]
    sets += [f"{named.path(path)} = {named.value(value)}" for path, value in update.assign.items()]
    for path, amount in update.add.items():
        place = named.path(path)
        sets.append(f"{place} = if_not_exists({place}, {named.value(0)}) + {named.value(amount)}")
    clauses = [f"SET {', '.join(sets)}"]
    if update.remove:
        clauses.append(f"REMOVE {', '.join([named.path(path) for path in update.remove])}")
    for word, changes in (("ADD", update.join), ("DELETE", update.leave)):
        texts = [f"{named.path(path)} {named.value(members)}" for path, members in changes.items() if members]
        if texts:
            clauses.append(f"{word} {', '.join(texts)}")
    return " ".join(clauses)
