"""The kinds that the command line knows, and the words for them (NOD-499)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import click

from nodus.cli.failures import usage


@dataclass(frozen=True)
class Kind:
    """A kind: ``name`` as in a manifest, ``word`` as in ``word/NAME``, and the other words that mean it."""

    name: str
    word: str
    plural: str
    short: str | None = None
    finished: frozenset[str] = frozenset()
    """Phases that an object of this kind never leaves."""

    @property
    def words(self) -> tuple[str, ...]:
        """Every word for it."""
        return (self.word, self.plural, *([self.short] if self.short else []))


AGENT = Kind("Agent", "agent", "agents")
AGENT_RUN = Kind("AgentRun", "agentrun", "agentruns", "ar", frozenset({"Succeeded", "Failed", "Cancelled"}))
SECRET = Kind("Secret", "secret", "secrets")
BUDGET = Kind("Budget", "budget", "budgets")
KINDS = (AGENT, AGENT_RUN, BUDGET, SECRET)


@dataclass(frozen=True)
class Target:
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
    for kind in KINDS:
        if word.lower() in kind.words:
            return kind
    every = [w for kind in KINDS for w in kind.words]
    near = difflib.get_close_matches(word.lower(), every, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    known = ", ".join(f"{kind.word} ({kind.short})" if kind.short else kind.word for kind in KINDS)
    raise usage(f"no kind {word!r}{hint} Kinds: {known}", "UnknownKind")


def kind_named(name: object) -> Kind | None:
    """The kind of a manifest's ``kind`` field, or ``None``."""
    return next((kind for kind in KINDS if kind.name == name), None)


def target_of(words: tuple[str, ...]) -> Target:
    """The object that ``KIND/NAME`` or ``KIND NAME`` means.

    Raises:
        Failure: the words name no single object.
    """
    word, slash, name = words[0].partition("/")
    kind = kind_of(word)
    if len(words) > (1 if slash else 2):
        raise usage(f"give one {kind.word}: {kind.word}/NAME")
    name = name if slash else (words[1] if len(words) > 1 else "")
    if not name:
        raise usage(f"which {kind.word}? Give {kind.word}/NAME")
    return Target(kind, name)


def _read(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> Target:
    return target_of(words)


target_argument = click.argument("target", nargs=-1, required=True, metavar="KIND/NAME", callback=_read)
"""The argument ``KIND/NAME``, or ``KIND NAME`` as two words."""
