"""What can be waited for, in the words of `nodus wait --for`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

from nodus._jsonpath import parse_path, shown
from nodus._kinds import Kind
from nodus._record import Record
from nodus.errors import NodusError

FORMS = "phase=PHASE, condition=TYPE, condition=TYPE=STATUS, jsonpath=PATH=VALUE"


class Condition(NamedTuple):
    """Something that may be true of an object. ``phase``: it is the phase that is waited for."""

    text: str
    met: Callable[[Record], bool]
    phase: bool = False

    def missed(self, kind: Kind, thing: Record) -> bool:
        """Whether the object has ended in another phase than the one that is waited for (NODQ-73)."""
        return self.phase and not self.met(thing) and phase_of(thing) in kind.finished


def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        NodusError: it is none.
    """
    form, _, rest = text.partition("=")
    if form == "phase" and rest:
        return Condition(text, partial(_in_phase, rest), phase=True)
    if form == "condition" and rest:
        word, _, wanted = rest.partition("=")
        return Condition(text, partial(_has, word, wanted or "True"))
    if form == "jsonpath" and rest:
        return _by_path(text, rest)
    raise NodusError(f"{text!r} is no condition; there are {FORMS}", reason="InvalidCondition")


def _by_path(text: str, rest: str) -> Condition:
    if rest.startswith("{"):
        before, brace, after = rest.partition("}")
        before += brace
        sign, wanted = after[:1], after[1:]
    else:
        before, sign, wanted = rest.partition("=")
    if sign != "=":
        raise NodusError(
            f"{text!r}: which value? It is written jsonpath=PATH=VALUE", reason="InvalidCondition"
        )
    path = parse_path(before)

    def met(thing: Record) -> bool:
        return any(shown(value) == wanted for value in path.values(thing.to_dict()))

    return Condition(text, met, phase=path.steps == ("status", "phase"))


def conditions_of(thing: Record) -> list[dict[str, Any]]:
    """The entries of ``status.conditions``, whatever else the server has put there."""
    status = thing.to_dict().get("status")
    entries = cast("dict[str, Any]", status).get("conditions") if isinstance(status, dict) else None
    if not isinstance(entries, list):
        return []
    return [cast("dict[str, Any]", entry) for entry in cast("list[Any]", entries) if isinstance(entry, dict)]


def _in_phase(phase: str, thing: Record) -> bool:
    return phase_of(thing) == phase


def _has(word: str, wanted: str, thing: Record) -> bool:
    return any(
        str(entry.get("type")).lower() == word.lower() and str(entry.get("status")).lower() == wanted.lower()
        for entry in conditions_of(thing)
    )


def phase_of(thing: Record) -> str | None:
    """``status.phase``, or ``None``."""
    status = thing.get("status")
    phase = status.get("phase") if isinstance(status, Record) else None
    return phase if isinstance(phase, str) else None
