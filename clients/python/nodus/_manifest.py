"""Read manifests: one meaning for every text, or a refusal with its line and field (FLD-17).

The scalars are those of YAML 1.2's core schema, cut down to what JSON can carry without a change: ``null``,
``true``, ``false`` and whole numbers in their one usual spelling. Every other plain word (``on``, ``no``,
``1e3``, ``0100``, ``1.10``, ``2026-12-01``) is a string, exactly as written; so money that is given as a number
reaches the server as written, too (NODQ-92). Duplicate keys, tags, merge keys and recursive aliases are refused;
depth, size and what aliases stand for are bounded while reading, before anything is built from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

from nodus.errors import ManifestError

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 5 * 1024 * 1024  # the server takes no larger body (NODQ-78)
MAX_DEPTH = 64
MAX_NODES = 100_000

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Document:
    """One document of a manifest file.

    ``value`` holds plain JSON values, ``source`` the name of the file, ``lines`` the line (from 1) of each field
    by its dotted path (``spec.model.name``, ``items[0].kind``).
    """

    value: Any
    source: str
    lines: dict[str, int] = field(default_factory=dict[str, int])

    def line_of(self, path: str) -> int | None:
        """The line of a field, or of the nearest field around it; ``None`` when it is not known."""
        while path and path not in self.lines:
            path = re.sub(r"(^|\.)[^.\[\]]+$|\[\d+\]$", "", path)
        return self.lines.get(path)


def parse(text: str | bytes, source: str) -> list[Document]:
    """The documents of a YAML or JSON text, in their order; empty documents are left out.

    Args:
        text: the text; bytes are UTF-8, with or without a byte order mark.
        source: the name to use in messages.

    Raises:
        ManifestError: the text has no meaning, or no single one, or is larger than the bounds.
    """
    if len(text) > MAX_BYTES:
        raise ManifestError(f"larger than {MAX_BYTES} bytes; split it", source=source)
    decoded = _decode(text, source) if isinstance(text, bytes) else text
    decoded = decoded.removeprefix("\ufeff")
    if decoded.lstrip()[:1] == "{":
        document = _json_document(decoded, source)
        if document is not None:
            return [document]
    return list(_Reader(decoded, source).documents())


def parse_json(text: str, source: str) -> dict[str, Any]:
    """A JSON object under the same rules: no duplicate keys, numbers with a fraction kept as written.

    Raises:
        ManifestError: the text is not one JSON object.
    """
    try:
        value = _load_json(text)
    except _DuplicateKeyError as error:
        raise ManifestError("this key is given twice", source=source, field=error.key) from None
    except json.JSONDecodeError as error:
        raise ManifestError(f"not JSON: {error.msg}", source=source, line=error.lineno) from None
    except RecursionError:
        raise ManifestError("nested too deeply", source=source) from None
    if not isinstance(value, dict):
        raise ManifestError('expected a JSON object such as {"spec":{…}}', source=source)
    return cast("dict[str, Any]", value)


class _DuplicateKeyError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _load_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            raise _DuplicateKeyError(next(key for key in keys if keys.count(key) > 1))
        return made

    def no_constant(word: str) -> NoReturn:
        raise json.JSONDecodeError(f"{word} is not a JSON value", text, max(text.find(word), 0))

    return json.loads(
        text, object_pairs_hook=unique, parse_int=_whole, parse_float=str, parse_constant=no_constant
    )


def _json_document(text: str, source: str) -> Document | None:
    """The text as one JSON object; ``None`` leaves it to the YAML reader, which knows lines."""
    try:
        value = _load_json(text)
    except (ValueError, RecursionError):
        return None
    _check_bounds(value, source)
    return Document(value, source)


def _check_bounds(value: Any, source: str) -> None:
    nodes = 0
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise ManifestError(f"more than {MAX_NODES} values", source=source)
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise ManifestError(f"nested more than {MAX_DEPTH} levels deep", source=source)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ManifestError("not UTF-8", source=source, line=line) from None


@dataclass(frozen=True)
class _Anchored:
    """What an anchor stands for, and how much an alias to it adds."""

    value: Any
    nodes: int
    size: int


class _Reader:
    """Builds values from the parser's events, so that every bound holds before memory is used."""

    def __init__(self, text: str, source: str) -> None:
        # YAML takes 60 ms to import: only those who read a manifest pay for it.
        import yaml  # noqa: PLC0415

        self._yaml: Any = yaml
        self._source = source
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
        self._lines: dict[str, int] = {}
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0
        self._size = 0

    def documents(self) -> Iterator[Document]:
        while True:
            event = self._next()
            if isinstance(event, self._yaml.StreamEndEvent):
                return
            if not isinstance(event, self._yaml.DocumentStartEvent):
                continue
            self._lines, self._anchors, self._nodes, self._size = {}, {}, 0, 0
            value = self._value(self._next(), "", 0)
            self._next()  # the document's end
            if value is not None:
                yield Document(value, self._source, self._lines)

    def _next(self) -> Any:
        try:
            return next(self._events)
        except self._yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = " ".join(part for part in (error.context, error.problem) if part)
            raise ManifestError(f"not YAML: {problem}", source=self._source, line=_line(mark)) from None
        except self._yaml.YAMLError as error:
            raise ManifestError(f"not YAML: {error}", source=self._source) from None

    def _refuse(self, problem: str, event: Any, path: str) -> NoReturn:
        raise ManifestError(problem, source=self._source, line=_line(event.start_mark), field=path)

    def _count(self, event: Any, path: str, nodes: int, size: int) -> None:
        self._nodes += nodes
        self._size += size
        if self._nodes > MAX_NODES or self._size > MAX_BYTES:
            self._refuse("stands for too much (aliases are written out); make it smaller", event, path)

    def _value(self, event: Any, path: str, depth: int) -> Any:
        if isinstance(event, self._yaml.AliasEvent):
            return self._alias(event, path)
        if depth > MAX_DEPTH:
            self._refuse(f"nested more than {MAX_DEPTH} levels deep", event, f"{path[:40]}…")
        if event.tag is not None and not (isinstance(event, self._yaml.ScalarEvent) and _is_text(event.tag)):
            self._refuse(f"tags such as {event.tag} have no meaning here", event, path)
        before = (self._nodes, self._size)
        self._lines.setdefault(path, event.start_mark.line + 1)
        if isinstance(event, self._yaml.ScalarEvent):
            self._count(event, path, 1, len(event.value))
            value = event.value if event.tag or event.style else _plain(event.value)
        elif isinstance(event, self._yaml.MappingStartEvent):
            self._count(event, path, 1, 2)
            value = self._mapping(path, depth)
        else:
            self._count(event, path, 1, 2)
            value = self._sequence(path, depth)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, self._nodes - before[0], self._size - before[1])
        return value

    def _alias(self, event: Any, path: str) -> Any:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            self._refuse(f"the alias *{event.anchor} names nothing that is complete before it", event, path)
        self._lines.setdefault(path, event.start_mark.line + 1)
        self._count(event, path, anchored.nodes, anchored.size)
        return anchored.value

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while not isinstance(event := self._next(), self._yaml.MappingEndEvent):
            if not isinstance(event, self._yaml.ScalarEvent):
                self._refuse("a key must be a plain word", event, path)
            key: str = event.value
            below = f"{path}.{key}" if path else key
            if key in made:
                first = self._lines.get(below)
                self._refuse(f"this key is given twice (first in line {first})", event, below)
            if key == "<<" and not event.style:
                self._refuse("merge keys are not read; write the fields out", event, below)
            self._count(event, below, 1, len(key))
            self._lines[below] = event.start_mark.line + 1
            made[key] = self._value(self._next(), below, depth + 1)
        return made

    def _sequence(self, path: str, depth: int) -> list[Any]:
        made: list[Any] = []
        while not isinstance(event := self._next(), self._yaml.SequenceEndEvent):
            made.append(self._value(event, f"{path}[{len(made)}]", depth + 1))
        return made


def _line(mark: yaml.Mark | None) -> int | None:
    return mark.line + 1 if mark is not None else None


def _is_text(tag: str) -> bool:
    return tag in {"!", "tag:yaml.org,2002:str"}


def _plain(word: str) -> Any:
    """The value of a plain scalar; see the module's text for the rule."""
    if word in _NULL:
        return None
    if word in _BOOLEANS:
        return _BOOLEANS[word]
    return _whole(word)


def _whole(word: str) -> int | str:
    """A whole number that every JSON reader keeps exactly; any other word as it is written."""
    return int(word) if _WHOLE.fullmatch(word) else word
