"""Objects to rows and back. Every row carries the version of its shape (`v`) and can be read for ever."""

import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from nodus_core.journal.store import Row
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.text import Inline, Stored, Text
from nodus_core.kernel.times import moment, stamp

SHAPE = 1
"""Version of the stored shapes that this release writes."""

T = TypeVar("T")

_EMPTY: dict[Any, Callable[[], Any]] = {tuple: tuple, dict: dict, frozenset: frozenset}


_AS_THEY_ARE = frozenset({str, int, bool, Decimal})


def to_value(value: Any) -> Any:
    """A field's value as it is stored; None and empty collections are left out by `to_row`."""
    if type(value) in _AS_THEY_ARE:  # most of them: a row is written with every step
        return value
    match value:
        case StrEnum():
            return value.value
        case Inline(text=text):
            return {"text": text}
        case datetime():
            return stamp(value)
        case frozenset():
            return value
        case dict():
            return {key: to_value(item) for key, item in cast("dict[str, Any]", value).items()}
        case tuple() | list():
            return [to_value(item) for item in cast("tuple[Any, ...]", value)]
        case _ if is_dataclass(value):
            return to_row(value)
        case _:
            return value


def to_row(thing: Any) -> Row:
    """The fields of a dataclass; those at None or empty are left out."""
    row: Row = {}
    for name in _names(type(thing)):
        value = getattr(thing, name)
        if value is None or (isinstance(value, (frozenset, tuple, dict)) and not value):
            continue
        row[name] = to_value(value)
    return row


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(spec.name for spec in fields(cls))


@cache
def _decoders(cls: type) -> dict[str, tuple[Callable[[Any], Any], bool, Callable[[], Any] | None]]:
    """For each field: how it is read, whether it must be there, and what an empty one, which no row holds, is."""
    hints = get_type_hints(cls)
    return {
        spec.name: (
            _decoder(hints[spec.name]),
            spec.default is MISSING and spec.default_factory is MISSING,
            _EMPTY.get(get_origin(hints[spec.name])),
        )
        for spec in fields(cls)
    }


def from_row(cls: type[T], row: Row) -> T:
    """The object that `to_row` wrote; unknown fields are ignored. Raises `CorruptRow`."""
    values: dict[str, Any] = {}
    try:
        for name, (decode, required, empty) in _decoders(cls).items():
            if name in row and row[name] is not None:
                values[name] = decode(row[name])
            elif required and empty is not None:
                values[name] = empty()
            elif required:
                raise CorruptRow(f"row {row.get('pk')}/{row.get('sk')}: {cls.__name__} needs {name!r}")
        return cls(**values)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise CorruptRow(f"row {row.get('pk')}/{row.get('sk')} is no {cls.__name__}: {error}") from error


def _text(value: Any) -> Text:
    if "text" in value:
        return Inline(value["text"])
    return Stored(value["sha256"], int(value["size"]), value["head"])


def _decoder(hint: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint == Text or hint == Text | None:
        return _text
    if origin in (Union, types.UnionType):
        return _decoder(next(item for item in arguments if item is not type(None)))
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda value: tuple(item(part) for part in value)
    if origin is dict:
        item = _decoder(arguments[1])
        return lambda value: {key: item(part) for key, part in value.items()}
    if origin is frozenset:
        return frozenset
    return _plain(hint)


def _plain(hint: Any) -> Callable[[Any], Any]:
    if hint is datetime:
        return moment
    if hint in (int, Decimal):
        return hint
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint
    if is_dataclass(hint):
        return lambda value: from_row(cast("type[Any]", hint), value)
    return lambda value: value
