"""Bodies of an apply in YAML, under the rules of JSON: one meaning for every text, or a refusal (FLD-17).

Plain words are texts exactly as written, but for `null`, `true`, `false` and whole numbers in their usual
spelling. Tags, anchors, aliases, merge keys and further documents are refused: what is read is a tree.
"""

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from nodus_core.kernel.errors import Refusal
from nodus_core.resources.document import (
    MAX_DEPTH,
    MAX_VALUES,
    bad,
    below,
    check_size,
    checked,
    decoded,
    read_json,
)

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_TEXT_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})


def read_yaml(body: bytes) -> dict[str, Any]:
    """The object in a body that is YAML or JSON.

    Raises `Refusal` as `read_json` does; `BadRequest` names the line.
    """
    check_size(body)
    text = decoded(body)
    if text.lstrip()[:1] == "{":
        try:
            return read_json(body)
        except Refusal as refusal:
            if refusal.reason != "BadRequest" or "not JSON" not in refusal.message:
                raise
    return checked(_Reader(text).document())


class _Reader:
    """Builds a value from the parser's events, so that every bound holds before memory is used."""

    def __init__(self, text: str) -> None:
        # YAML takes 60 ms to import: only who reads it pays for it.
        import yaml  # noqa: PLC0415

        self._yaml: Any = yaml
        self._events: Iterator[Any] = iter(
            yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        )
        self._count = 0

    def document(self) -> Any:
        self._next()  # the stream's start
        start = self._next()
        if isinstance(start, self._yaml.StreamEndEvent):
            raise bad("the body is empty")
        value = self._value(self._next(), "", 0)
        self._next()  # the document's end
        after = self._next()
        if not isinstance(after, self._yaml.StreamEndEvent):
            self._refuse("only one document can be applied", after)
        return value

    def _next(self) -> Any:
        try:
            return next(self._events)
        except self._yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise bad(f"the body is not YAML: {error.problem} ({_line(mark)})") from None
        except self._yaml.YAMLError:
            raise bad("the body is not YAML: it holds characters that YAML does not allow") from None

    def _refuse(self, problem: str, event: Any, path: str = "") -> NoReturn:
        raise bad(f"{_line(event.start_mark)}: {path + ': ' if path else ''}{problem}")

    def _value(self, event: Any, path: str, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise bad(f"the body has more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise bad(f"the body is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, self._yaml.AliasEvent) or event.anchor is not None:
            self._refuse("anchors and aliases are not read here; write the value out", event, path)
        is_scalar = isinstance(event, self._yaml.ScalarEvent)
        if event.tag is not None and not (is_scalar and event.tag in _TEXT_TAGS):
            self._refuse("tags have no meaning here", event, path)
        if is_scalar:
            return event.value if event.tag or event.style else _plain(event.value)
        if isinstance(event, self._yaml.MappingStartEvent):
            return self._mapping(path, depth)
        return self._sequence(path, depth)

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while not isinstance(event := self._next(), self._yaml.MappingEndEvent):
            if not isinstance(event, self._yaml.ScalarEvent):
                self._refuse("a key must be a plain word", event, path)
            key: str = event.value
            if key in made:
                self._refuse("this key is given twice", event, below(path, key))
            if key == "<<" and not event.style:
                self._refuse("merge keys are not read; write the fields out", event, path)
            made[key] = self._value(self._next(), below(path, key), depth + 1)
        return made

    def _sequence(self, path: str, depth: int) -> list[Any]:
        made: list[Any] = []
        while not isinstance(event := self._next(), self._yaml.SequenceEndEvent):
            made.append(self._value(event, f"{path}[{len(made)}]", depth + 1))
        return made


def _line(mark: Any) -> str:
    return "line ?" if mark is None else f"line {mark.line + 1}"


def _plain(word: str) -> Any:
    if word in _NULL:
        return None
    if word in _BOOLEANS:
        return _BOOLEANS[word]
    return int(word) if _WHOLE.fullmatch(word) else word
