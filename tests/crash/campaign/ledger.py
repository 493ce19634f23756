"""What a campaign writes down: what was done to the cloud, what runs were asked to do, and what was seen of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Shown = dict[str, Any]

FINAL = ("Succeeded", "Failed", "Cancelled")
FINAL_STEPS = ("Completed", "Failed", "Cancelled")


TOLD_LOST = "told lost"
"""State of a command whose daemon, asked to stop, has said that it does not know what became of it."""


@dataclass(frozen=True)
class Fault:
    """One thing that was done to the cloud. `sandboxes` went away by it."""

    number: int
    kind: str
    at: float
    about: str
    sandboxes: frozenset[str] = frozenset()


@dataclass
class Prompt:
    """A turn that a run was asked for: its input, or a message under a key.

    Args:
        waves: the tokens of its commands in order; those of one wave may come in any order.
        turn: the number that it was accepted with; None: it was refused, or nobody has answered yet.
        refused: it certainly was.
        posts: how often its message was sent and answered.
    """

    text: str
    waves: tuple[tuple[str, ...], ...]
    key: str | None = None
    turn: int | None = None
    refused: bool = False
    posts: int = 0

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(token for wave in self.waves for token in wave)


@dataclass
class Uncertain:
    """A command that a run asks about: what the journal says of it, and what was said to the run (`outcome`)."""

    step: str
    since: str
    sandbox: str
    command_state: str
    sandbox_state: str
    token: str
    outcome: str | None = None


@dataclass
class RunRecord:
    """One run from outside.

    Args:
        deadline: the moment after which it may have ended by it.
        uncertain: all that it has asked about, each once.
        seen: steps in the final state in which they were shown first; `turns`: likewise.
        answers: what was shown of each turn while the run waited for a message, or in the end.
        trouble: what it was told that it must never be told.
    """

    kind: str
    name: str
    mark: str
    prompts: list[Prompt]
    started_at: float
    keep_alive: bool = False
    deadline: float | None = None
    uid: str = ""
    ended_at: float | None = None
    status: Shown = field(default_factory=dict[str, Any])
    cancel_asked: bool = False
    cancel_accepted: bool = False
    parked: bool = False
    uncertain: list[Uncertain] = field(default_factory=list[Uncertain])
    seen: dict[str, Shown] = field(default_factory=dict[str, Shown])
    turns: dict[int, Shown] = field(default_factory=dict[int, Shown])
    steps: list[Shown] = field(default_factory=list[Shown])
    answers: dict[int, str | None] = field(default_factory=dict[int, str | None])
    trouble: list[str] = field(default_factory=list[str])

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(token for prompt in self.prompts for token in prompt.tokens)

    @property
    def phase(self) -> str:
        return str(self.status.get("phase"))

    @property
    def reason(self) -> str | None:
        return self.status.get("reason")

    @property
    def at_rest(self) -> bool:
        """Whether it has read everything that it accepted, and waits for a message."""
        return (self.phase, self.reason) == ("Waiting", "MessageWait")

    def see(self, status: Shown, steps: list[Shown] | None) -> None:
        """What is shown now; of that, what must never change is kept."""
        self.status = status
        for turn in status.get("turns", []):
            if turn["phase"] in FINAL:
                self.turns.setdefault(turn["turn"], turn)
        if steps is not None:
            self.steps = steps
            for step in steps:
                if step["state"] in FINAL_STEPS:
                    self.seen.setdefault(step["name"], step)


@dataclass
class Ledger:
    """Everything that a campaign knows."""

    faults: list[Fault] = field(default_factory=list[Fault])
    runs: list[RunRecord] = field(default_factory=list[RunRecord])
    resumed: list[float] = field(default_factory=list[float])
    """Seconds until a line whose worker was taken away was worked on again."""

    def steps_done(self) -> int:
        """Steps that were shown in a final state."""
        return sum(len(run.seen) for run in list(self.runs))

    def taken(self) -> frozenset[str]:
        """Sandboxes that were taken away by a fault."""
        return frozenset(name for fault in self.faults for name in fault.sandboxes)
