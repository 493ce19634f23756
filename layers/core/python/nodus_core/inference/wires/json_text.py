"""JSON as text: parts of a document are cut out and put together as they stand, never parsed and dumped again.

A dump of a parsed value loses what providers check: the spelling of numbers and escapes, key order, blanks.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

_BLANKS = " \t\n\r"
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
# A half without its other half, or an escaped backslash that could make one look whole.
_SUSPECT = re.compile(
    r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]|\\\\u[dD][89a-fA-F]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NESTING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{]|[\]}]', re.DOTALL)
_LONE_LENGTH = len(r"\ud83c")


MOST_NESTED = 128
"""Levels of arrays and objects within each other. The parser's own bound is what is left of the stack, so that a
reply might be read when it comes and not be readable when it is to go back."""


class BadJson(ValueError):
    """The text is not the JSON that was expected there."""


def _refuse_constant(word: str) -> NoReturn:
    raise BadJson(f"{word} is not JSON")


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_STRICT = json.JSONDecoder(parse_constant=_refuse_constant)
_LENIENT = json.JSONDecoder(parse_int=str)


def parse(text: str) -> Any:
    """The value of a JSON text. Raises: BadJson, also for NaN, absurd nesting and absurd numbers."""
    check_nesting(text)
    value, end = _scan(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise BadJson(f"something follows the JSON value at character {end}")
    return value


def members(text: str, *, lenient: bool = False) -> dict[str, str]:
    """The members of an object, each value as the text that stands there. Raises: BadJson.

    `lenient`: values may hold NaN, Infinity and numbers of any length, for whoever parses only those it needs.
    """
    return {parse(key): value for key, value in _parts(text, "{", "}", _LENIENT if lenient else _STRICT)}


def elements(text: str, *, lenient: bool = False) -> list[str]:
    """The elements of an array, each as the text that stands there. Raises: BadJson. `lenient` as in `members`."""
    return [value for _, value in _parts(text, "[", "]", _LENIENT if lenient else _STRICT)]


def check_nesting(text: str) -> None:
    """Raises BadJson for a text whose arrays and objects are nested too deeply, whatever else is wrong with it."""
    if text.count("[") + text.count("{") <= MOST_NESTED:
        return
    depth = 0
    for found in _NESTING.finditer(text):
        sign = found.group()
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        if depth > MOST_NESTED:
            raise BadJson(f"nested more than {MOST_NESTED} levels deep")


def object_text(parts: Iterable[tuple[str, str]]) -> str:
    """An object of members whose values are JSON texts already."""
    return "{" + ",".join(f"{dump(name)}:{value}" for name, value in parts) + "}"


def array_text(parts: Iterable[str]) -> str:
    """An array of elements that are JSON texts already."""
    return "[" + ",".join(parts) + "]"


def dump(value: object) -> str:
    """A value of ours as compact JSON. Characters that UTF-8 cannot hold become U+FFFD (FLD-08)."""
    return _SURROGATE.sub("\ufffd", _COMPACT.encode(value))


def mend_surrogates(text: str) -> str:
    r"""A JSON text in which escaped halves of surrogate pairs without the other half became `\ufffd`.

    Such a half is no character, no UTF-8 can hold it and providers refuse it; whole pairs stay as they are.
    """
    return _ESCAPE.sub(_mended, text) if _SUSPECT.search(text) else text


def _mended(found: re.Match[str]) -> str:
    escape = found.group()
    return "\\ufffd" if len(escape) == _LONE_LENGTH else escape


def _parts(text: str, opening: str, closing: str, decoder: json.JSONDecoder) -> Iterator[tuple[str, str]]:
    """Pairs of texts: key and value of an object's members; an empty key and the value of an array's."""
    at = _expect(text, _skip(text, 0), opening)
    if text[at : at + 1] == closing:
        _expect_end(text, at + 1)
        return
    while True:
        key = ""
        if opening == "{":
            _, end = _scan(text, at)
            key = text[at:end]
            if not key.startswith('"'):
                raise BadJson(f"expected a name at character {at}")
            at = _expect(text, _skip(text, end), ":")
        _, end = _scan(text, at, decoder)
        yield key, text[at:end]
        at = _skip(text, end)
        if text[at : at + 1] == closing:
            _expect_end(text, at + 1)
            return
        at = _expect(text, at, ",")


def _scan(text: str, at: int, decoder: json.JSONDecoder = _STRICT) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error) or type(error).__name__) from error


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise BadJson(f"expected {sign!r} at character {at}")
    return _skip(text, at + 1)


def _expect_end(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise BadJson(f"something follows the JSON value at character {at}")
