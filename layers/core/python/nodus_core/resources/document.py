"""Request bodies: one meaning for every text, or a refusal (FLD-17).

A number with a fraction or an exponent is kept as it was written (`Written`), so that money given as a number
loses nothing (NODQ-92); whole numbers become `int`.
"""

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, cast

from nodus_core.kernel.errors import Cause, Refusal

MAX_BODY = 5 * 1024 * 1024
"""Bytes of one request body (NODQ-78)."""

MAX_DEPTH = 32
MAX_VALUES = 20_000
_LONGEST_NUMBER = 40
_LONGEST_KEY_SHOWN = 80


class Written(str):
    """A JSON number with a fraction or exponent, exactly as it stood in the text."""

    __slots__ = ()


class _NotJson(ValueError):
    """The text is no JSON; the message says why."""


def read_json(body: bytes) -> dict[str, Any]:
    """The JSON object in a request body.

    Raises `Refusal`: `PayloadTooLarge` over 5 MiB; `BadRequest` when the text is not one JSON object in UTF-8,
    names a key twice, or is nested deeper than 32; `Invalid` where a text holds NUL or half a character.
    """
    check_size(body)
    try:
        value = json.loads(
            decoded(body),
            object_pairs_hook=unique,
            parse_int=_whole,
            parse_float=_written,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        raise bad(f"the body is not JSON: {error.msg} (line {error.lineno} column {error.colno})") from None
    except _NotJson as error:
        raise bad(f"the body is not valid: {error}") from None
    except RecursionError:
        raise bad(f"the body is nested more than {MAX_DEPTH} levels deep") from None
    return checked(value)


def check_size(body: bytes) -> None:
    """Raises `Refusal` `PayloadTooLarge` when a body is over 5 MiB."""
    if len(body) > MAX_BODY:
        message = f"the body has {len(body)} bytes, at most {MAX_BODY} are taken; split it"
        raise Refusal("PayloadTooLarge", message)


def decoded(body: bytes) -> str:
    """The body's text. Raises `Refusal` `BadRequest` when it is not UTF-8."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad(f"the body is not UTF-8 at byte {error.start}") from None


def checked(value: Any) -> dict[str, Any]:
    """The value, if it is an object within the bounds whose texts can be stored. Raises `Refusal`."""
    if not isinstance(value, dict):
        raise bad("the body must be a JSON object")
    causes: list[Cause] = []
    for count, (path, text, depth) in enumerate(_walk(value)):
        if count > MAX_VALUES:
            raise bad(f"the body has more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise bad(f"the body is nested more than {MAX_DEPTH} levels deep")
        problem = _unfit(text) if text is not None else None
        if problem:
            causes.append(Cause(path, problem))
    if causes:
        raise Refusal("Invalid", f"{causes[0].field}: {causes[0].message}", causes=tuple(causes))
    return cast("dict[str, Any]", value)


def bad(message: str) -> Refusal:
    """A request that cannot be read at all."""
    return Refusal("BadRequest", message)


def below(path: str, key: str) -> str:
    """The path of a field, safe to show whatever the key is."""
    shown = (
        key if key.isprintable() and len(key) <= _LONGEST_KEY_SHOWN else ascii(key)[1:-1][:_LONGEST_KEY_SHOWN]
    )
    return f"{path}.{shown}" if path else shown


def canonical(value: Any) -> str:
    """A text that is the same for values that mean the same: key order, spacing and `1.0` do not matter."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    match value:
        case bool() | None:
            return value
        case Written():
            return {"number": format(Decimal(value).normalize(), "f")}
        case int():
            return {"number": str(value)}
        case dict():
            return {"fields": {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}}
        case list():
            return [_plain(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _walk(root: Any) -> Iterator[tuple[str, str | None, int]]:
    """Every value: its path, its text (None for other values), its depth. Keys come as texts of their own."""
    waiting: list[tuple[str, Any, int]] = [("", root, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        yield path, value if isinstance(value, str) else None, depth
        if isinstance(value, dict):
            for key, item in cast("dict[str, Any]", value).items():
                yield (path or "(top level)", key, depth)
                waiting.append((below(path, key), item, depth + 1))
        elif isinstance(value, list):
            for index, item in enumerate(cast("list[Any]", value)):
                waiting.append((f"{path}[{index}]", item, depth + 1))


def _unfit(text: str) -> str | None:
    if "\x00" in text:
        return "holds a NUL character, which cannot be handed on; leave it out"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "holds half a character (a lone surrogate), which UTF-8 cannot carry; leave it out"
    return None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs. Raises ValueError naming the first key that is given twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _NotJson(f"the key {below('', _first_repeated(pairs))!r} is given twice")
    return made


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    raise ValueError("no key is given twice")


def _whole(digits: str) -> int:
    _check_number(digits)
    return int(digits)


def _written(digits: str) -> Written:
    _check_number(digits)
    try:
        exponent = Decimal(digits).as_tuple().exponent
    except InvalidOperation:  # its exponent is beyond every `Decimal`
        exponent = None
    if not isinstance(exponent, int) or abs(exponent) > _LONGEST_NUMBER:
        raise _NotJson("a number is too large or too small")
    return Written(digits)


def _check_number(digits: str) -> None:
    if len(digits) > _LONGEST_NUMBER:
        raise _NotJson(f"a number has more than {_LONGEST_NUMBER} digits")


def _no_constant(word: str) -> NoReturn:
    raise _NotJson(f"{word} is no JSON value")
