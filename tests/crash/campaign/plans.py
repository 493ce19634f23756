"""What a run of a campaign shall do, by dice: its prompts, what is done to it, and how it comes to its end."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.crash.campaign.effects import effect
from tests.crash.campaign.ledger import Prompt
from tests.integration.runs.person import SONNET

AGENTS = {"campaign-fixed": {"model": SONNET}, "campaign-managed": {"model": {"access": "Nodus"}}}

PAUSES_S = (0.0, 0.2, 1.0, 3.0, 8.0)

IN_TURN = ((1,), (2,), (3,), (4,))
AT_ONCE = ((1, 2, 3), (4,))
SHORT = ((1,), (2,))
WORDS = {IN_TURN: "In turn, slowly:", AT_ONCE: "At once, slowly:", SHORT: "Further, slowly:"}
"""What a prompt says so that the model makes its calls in these waves (`scripts/campaign.yaml`)."""

CONVERSATIONS = {
    "conversation canceled at rest": 4,
    "conversation canceled at work": 2,
    "conversation to its end": 3,
    "conversation to its deadline": 1,
}
KINDS = {"in turn": 8, "at once": 5, "canceled": 4, "deadline": 2, **CONVERSATIONS}
"""How often each kind comes among the others."""


@dataclass(frozen=True)
class Message:
    """A message to a run.

    Args:
        after_s: seconds since the one before it was accepted; `at_rest`: and not before the run waits for it.
        sent: `once`; `again`, as by somebody who did not get the answer; `twice` at the same time.
    """

    waves: tuple[tuple[int, ...], ...]
    pauses: tuple[float, ...]
    after_s: float
    at_rest: bool
    sent: str


@dataclass(frozen=True)
class Plan:
    """What a run shall do.

    Args:
        cancel_after_s: somebody cancels it then; `cancel_at`: `rest`, when all messages are read, or `last`, at the
            same time as its last message.
        resolves: when it asks what became of a command it is told; else it is canceled.
    """

    kind: str
    agent: str
    waves: tuple[tuple[int, ...], ...]
    pauses: tuple[float, ...]
    messages: tuple[Message, ...] = ()
    keep_alive: bool = False
    deadline_s: int | None = None
    cancel_after_s: float | None = None
    cancel_at: str | None = None
    resolves: bool = True


def plan(dice: random.Random, kind: str | None = None) -> Plan:
    """A plan of this kind; None: of one of the kinds."""
    chosen = kind or dice.choices(list(KINDS), list(KINDS.values()))[0]
    agent = dice.choice(sorted(AGENTS))
    resolves = dice.random() < 0.5
    if chosen in CONVERSATIONS:
        return _conversation(dice, chosen, agent, resolves)
    waves = AT_ONCE if chosen == "at once" or dice.random() < 0.3 else IN_TURN
    return Plan(
        chosen,
        agent,
        waves,
        _pauses(dice, waves),
        deadline_s=dice.randrange(8, 45) if chosen == "deadline" else None,
        cancel_after_s=dice.uniform(0.0, 15.0) if chosen == "canceled" else None,
        resolves=resolves,
    )


def _conversation(dice: random.Random, kind: str, agent: str, resolves: bool) -> Plan:
    to_its_end, at_work = kind.endswith("its end"), kind.endswith("at work")
    messages = tuple(_message(dice, may_rest=not to_its_end) for _ in range(dice.randrange(1, 4)))
    return Plan(
        kind,
        agent,
        SHORT,
        _pauses(dice, SHORT),
        messages,
        keep_alive=not to_its_end,
        deadline_s=dice.randrange(30, 90) if kind.endswith("deadline") else None,
        cancel_at="last" if at_work else "rest" if kind.endswith("rest") else None,
        resolves=resolves,
    )


def _message(dice: random.Random, *, may_rest: bool) -> Message:
    sent = dice.choices(("once", "again", "twice"), (4, 3, 3))[0]
    at_rest = may_rest and dice.random() < 0.5
    return Message(SHORT, _pauses(dice, SHORT), dice.uniform(0.0, 8.0), at_rest, sent)


def _pauses(dice: random.Random, waves: tuple[tuple[int, ...], ...]) -> tuple[float, ...]:
    return tuple(dice.choice(PAUSES_S) for wave in waves for _ in wave)


def prompt(
    mark: str,
    name: str,
    waves: tuple[tuple[int, ...], ...],
    pauses: tuple[float, ...],
    key: str | None = None,
) -> Prompt:
    """The prompt of a run, and its tokens: `MARK.NAME.NUMBER`."""
    tokens = tuple(tuple(f"{mark}.{name}.{number}" for number in wave) for wave in waves)
    flat = [token for wave in tokens for token in wave]
    lines = [f"$ {effect(token, pause)}" for token, pause in zip(flat, pauses, strict=True)]
    return Prompt("\n".join((f"[{mark}] {WORDS[waves]}", *lines)), tokens, key)
