"""Which objects of a kind are meant: selectors on fields and on labels, as Kubernetes has them (NOD-470).

`fieldSelector=spec.group=NAME,status.phase!=Failed`; `labelSelector=tier=web,env in (a,b),!old`. All parts hold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodus_core.kernel.errors import Refusal
from nodus_core.resources.labels import is_label_key, is_label_value

FIELDS = (
    *("metadata.name", "metadata.namespace", "spec.agent", "spec.group"),
    *("status.phase", "status.reason"),
)
LONGEST_SELECTOR = 1024
"""Characters of a field selector; the longest name for each of the fields fits."""

LONGEST_LABELS = 4096
"""Characters of a label selector."""

MOST_REQUIREMENTS = 32
MOST_VALUES = 128
"""Parts of a label selector, and values of one part."""

_TOKEN = re.compile(r"\s*([(),]|!=|==|=|!|[^\s(),!=]+)\s*")

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Selector:
    """Terms on fields that all hold: field, wanted value, and whether it must be equal or must differ."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object, as it is shown, has these values; a field that is not there is empty."""
        return all((_value(obj, field) == wanted) is equal for field, wanted, equal in self.terms)

    def may_match(self, known: Mapping[str, str]) -> bool:
        """Whether an object of which only these fields are known may have had the values."""
        return all((known[field] == wanted) is equal for field, wanted, equal in self.terms if field in known)

    def name(self) -> str | None:
        """The one name that it asks for, if it does."""
        names = [wanted for field, wanted, equal in self.terms if field == "metadata.name" and equal]
        return names[0] if names else None


@dataclass(frozen=True)
class Requirement:
    """One part of a label selector: the label `key` must (`wanted`) or must not have one of `values`.

    Without values: must or must not exist. What must not have a value may also not exist.
    """

    key: str
    wanted: bool
    values: frozenset[str] | None = None

    def holds(self, labels: Labels) -> bool:
        has = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return has is self.wanted


@dataclass(frozen=True)
class Selection:
    """What a list, a watch or a deletion of many is about. `text` is the same for the same parameters."""

    fields: Selector = field(default_factory=Selector)
    labels: tuple[Requirement, ...] = ()
    text: str = ""

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object, as it is shown, is meant."""
        return self.has_labels(obj["metadata"].get("labels", {})) and self.fields.matches(obj)

    def has_labels(self, labels: Labels) -> bool:
        return all(requirement.holds(labels) for requirement in self.labels)


EVERYTHING = Selection()


def read_selection(field_selector: str | None, label_selector: str | None) -> Selection:
    """The selection of a call's two parameters. Raises `Refusal` `BadRequest` naming what it cannot do."""
    return Selection(
        read_selector(field_selector),
        read_labels(label_selector),
        f"{field_selector or ''}\n{label_selector or ''}",
    )


def selectable(spec: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a spec that a selector may name."""
    named = [name for name in FIELDS if name.startswith("spec.")]
    values = {name: spec.get(name.removeprefix("spec.")) for name in named}
    return {name: value for name, value in values.items() if isinstance(value, str)}


# --- fields -----------------------------------------------------------------------------------------------


def read_selector(text: str | None) -> Selector:
    """The selector of a `fieldSelector` parameter. Raises `Refusal` `BadRequest` naming what it cannot do."""
    if not text:
        return Selector()
    _check_length("fieldSelector", text, LONGEST_SELECTOR)
    return Selector(tuple(map(_term, text.split(","))))


def _term(text: str) -> tuple[str, str, bool]:
    """One comparison: `FIELD=VALUE`, `FIELD==VALUE` or `FIELD!=VALUE`, with white space around either."""
    left, sign, right = text.partition("=")
    equal = not left.endswith("!")
    field = left.removesuffix("!").strip()
    wanted = (right.removeprefix("=") if equal else right).strip()
    if not sign or field not in FIELDS or "=" in wanted or "!" in wanted:
        message = f"fieldSelector takes FIELD=VALUE or FIELD!=VALUE with FIELD one of {', '.join(FIELDS)}"
        raise Refusal("BadRequest", message)
    return field, wanted, equal


def _value(obj: Mapping[str, Any], field: str) -> str:
    here: Any = obj
    for part in field.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here if isinstance(here, str) else ""


def _check_length(name: str, text: str, most: int) -> None:
    if len(text) > most:
        raise Refusal("BadRequest", f"{name} has {len(text)} characters, at most {most} are taken")


# --- labels -----------------------------------------------------------------------------------------------


def read_labels(text: str | None) -> tuple[Requirement, ...]:
    """The parts of a `labelSelector` parameter: `k`, `!k`, `k=v`, `k==v`, `k!=v`, `k in (a,b)`, `k notin (a,b)`.

    Raises `Refusal` `BadRequest` naming the part that it cannot read.
    """
    if text is None or not text.strip():
        return ()
    _check_length("labelSelector", text, LONGEST_LABELS)
    words = _words(text)
    found = [_requirement(words)]
    while words:
        if words.pop(0) != ",":
            raise _unreadable("parts are joined by commas")
        found.append(_requirement(words))
    if len(found) > MOST_REQUIREMENTS:
        raise _unreadable(f"it has {len(found)} parts, at most {MOST_REQUIREMENTS} are taken")
    return tuple(found)


def _words(text: str) -> list[str]:
    words: list[str] = []
    end = 0
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None:
            raise _unreadable(f"{text[end : end + 20]!a} is no part of it")
        words.append(match[1])
        end = match.end()
    return words


def _requirement(words: list[str]) -> Requirement:
    """Takes one part off the front."""
    first = _next(words)
    if first == "!":
        return Requirement(_key(_next(words)), wanted=False)
    key = _key(first)
    match words[:1]:
        case ["=" | "=="]:
            words.pop(0)
            return Requirement(key, True, frozenset({_single(words)}))
        case ["!="]:
            words.pop(0)
            return Requirement(key, False, frozenset({_single(words)}))
        case ["in" | "notin" as word]:
            words.pop(0)
            return Requirement(key, word == "in", _set(key, words))
        case _:
            return Requirement(key, wanted=True)


def _single(words: list[str]) -> str:
    """A value, which may be empty: `k=` means the empty one."""
    return "" if words[:1] in ([], [","]) else _label_value(words.pop(0))


def _set(key: str, words: list[str]) -> frozenset[str]:
    """A list of values in brackets."""
    if _next(words) != "(":
        raise _unreadable(f"the values of {key} stand in brackets: {key} in (a,b)")
    values: set[str] = set()
    while True:
        values.add("" if words[:1] in ([","], [")"]) else _label_value(_next(words)))
        if len(values) > MOST_VALUES:
            raise _unreadable(f"{key} has more than {MOST_VALUES} values")
        match _next(words):
            case ",":
                continue
            case ")":
                return frozenset(values)
            case word:
                raise _unreadable(f"{word[:20]!a} is neither a comma nor the end of the values of {key}")


def _next(words: list[str]) -> str:
    if not words:
        raise _unreadable("it ends too early")
    return words.pop(0)


def _key(word: str) -> str:
    if not is_label_key(word):
        raise _unreadable(f"{word[:40]!a} is no label key")
    return word


def _label_value(word: str) -> str:
    if not is_label_value(word):
        raise _unreadable(f"{word[:40]!a} is no label value")
    return word


def _unreadable(why: str) -> Refusal:
    forms = "KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B)"
    return Refusal("BadRequest", f"labelSelector cannot be read: {why}; it takes {forms}, joined by commas")
