"""The words of the command line for kinds and objects (NOD-499)."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from nodus._kinds import KINDS, Kind, find
from nodus.cli.failures import usage


class Target(NamedTuple):
    """One object that a command is about."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.word}/{self.name}"


def kind_of(word: str) -> Kind:
    """The kind that a word means.

    Raises:
        Failure: none; the message names the known ones and the nearest.
    """
    known = find(word)
    if known is not None:
        return known
    every = [w for kind in KINDS for w in kind.words]
    near = difflib.get_close_matches(word.lower(), every, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(f"{kind.word} ({kind.short})" if kind.short else kind.word for kind in KINDS)
    raise usage(f"no kind {word!r}{hint} Kinds: {listed}", "UnknownKind")


def kinds_of(words: str) -> list[Kind]:
    """The kinds that a list such as ``agents,ar`` means, each once.

    Raises:
        Failure: one of them is not known.
    """
    return list(dict.fromkeys(kind_of(word) for word in words.split(",")))


def kind_named(name: object) -> Kind | None:
    """The kind of a manifest's ``kind`` field, or ``None``."""
    return next((kind for kind in KINDS if kind.name == name), None)


def targets_of(words: tuple[str, ...]) -> list[Target]:
    """The objects that ``KIND/NAME …`` or ``KIND NAME …`` mean, in their order, each once.

    Raises:
        Failure: the words name no object, or mix the two forms.
    """
    if not words:
        raise usage("which object? Give KIND/NAME")
    if "/" in words[0]:
        return list(dict.fromkeys(_slashed(word) for word in words))
    kind = kind_of(words[0])
    if len(words) == 1:
        raise usage(f"which {kind.word}? Give {kind.word}/NAME")
    for word in words[1:]:
        if "/" in word:
            raise usage(f"write every object as KIND/NAME, or all as `{kind.word} NAME NAME`; not {word!r}")
    return list(dict.fromkeys(Target(kind, name) for name in words[1:]))


def _slashed(word: str) -> Target:
    before, slash, name = word.partition("/")
    kind = kind_of(before)
    if not slash or not name:
        raise usage(f"which {kind.word}? Give {kind.word}/NAME")
    return Target(kind, name)
