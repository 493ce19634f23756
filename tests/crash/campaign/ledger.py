"""What happened to runs and what was done to them, and what of it must never be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Step = dict[str, Any]

FINAL = ("Succeeded", "Failed", "Cancelled")
FINAL_STEPS = ("Completed", "Failed", "Cancelled")
TAKEN_AWAY = ("SandboxLost", "SandboxStartFailed")
"""Reasons of failed runs that are right where a sandbox was taken from them."""

PROBLEMS = ("duplicated effects", "lost results", "wrongly parked", "wrong ends")


@dataclass(frozen=True)
class Fault:
    """One thing that was done to the cloud. `sandboxes` went away by it."""

    number: int
    kind: str
    at: float
    about: str
    sandboxes: frozenset[str] = frozenset()


@dataclass
class Uncertain:
    """What the journal says of a command that the run asks about."""

    step: str
    sandbox: str
    command_state: str
    sandbox_state: str


@dataclass
class RunRecord:
    """One run from outside. `seen`: steps in the final state in which they were shown first."""

    kind: str
    name: str
    mark: str
    tokens: tuple[str, ...]
    started_at: float
    uid: str = ""
    ended_at: float | None = None
    status: dict[str, Any] = field(default_factory=dict[str, Any])
    cancel_accepted: bool = False
    parked: bool = False
    uncertain: list[Uncertain] = field(default_factory=list[Uncertain])
    seen: dict[str, Step] = field(default_factory=dict[str, Step])
    steps: list[Step] = field(default_factory=list[Step])
    answer: str | None = None
    trouble: list[str] = field(default_factory=list[str])

    @property
    def phase(self) -> str:
        return str(self.status.get("phase"))

    @property
    def reason(self) -> str | None:
        return self.status.get("reason")


@dataclass
class Ledger:
    """Everything that a campaign knows."""

    faults: list[Fault] = field(default_factory=list[Fault])
    runs: list[RunRecord] = field(default_factory=list[RunRecord])
    resumed: list[float] = field(default_factory=list[float])
    """Seconds until a line whose worker was taken away was worked on again."""

    def taken(self) -> frozenset[str]:
        """Sandboxes that were taken away by a fault."""
        return frozenset(name for fault in self.faults for name in fault.sandboxes)


def judge(run: RunRecord, effects: Mapping[str, int], taken: frozenset[str]) -> list[tuple[str, str]]:
    """What is wrong with a run: pairs of one of `PROBLEMS` and a text."""
    found = [
        ("duplicated effects", f"{token} happened {effects[token]} times")
        for token in run.tokens
        if effects.get(token, 0) > 1
    ]
    found += [("wrong ends", text) for text in run.trouble]
    found += [("lost results", text) for text in _lost(run, effects)]
    found += [("wrongly parked", text) for text in _wrongly_parked(run, taken)]
    found += [("wrong ends", text) for text in _wrong_end(run, taken)]
    return found


def _lost(run: RunRecord, effects: Mapping[str, int]) -> list[str]:
    """Results that were shown once and are gone or changed, or stand for what never happened."""
    now = {step["name"]: step for step in run.steps}
    found = [
        f"step {name} was shown {old['state']} and is {now.get(name, {}).get('state', 'gone')}"
        for name, old in run.seen.items()
        if _shown(now.get(name)) != _shown(old)
    ]
    if run.phase == "Succeeded":
        # A command that a lost sandbox took along, or ended, is told to the model as such: it may not have happened.
        failed = sum(step["kind"] == "tool" and step["state"] == "Failed" for step in run.steps)
        missing = [token for token in run.tokens if effects.get(token, 0) == 0]
        found += [f"{token} is missing" for token in missing] if len(missing) > failed else []
    for step in run.steps:
        # The token is the first word that the command prints.
        word = str(step.get("preview", "")).partition("\n")[0]
        if step["state"] == "Completed" and word in run.tokens and effects.get(word, 0) == 0:
            found.append(f"step {step['name']} shows {word}, which never happened")
    return found


def _shown(step: Step | None) -> Any:
    kept = ("name", "kind", "state", "attempt", "preview", "exitCode", "error", "finishedAt", "costUSD")
    return None if step is None else {name: step.get(name) for name in kept}


def _wrongly_parked(run: RunRecord, taken: frozenset[str]) -> list[str]:
    """A park is right where its command was in flight in a sandbox that is gone, and that we took away."""
    if not run.parked:
        return []
    if not run.uncertain:
        return ["it waits for a resolution of nothing"]
    return [
        f"{each.step}: its command is {each.command_state}, its sandbox {each.sandbox} is {each.sandbox_state}"
        + ("" if each.sandbox in taken else " and nobody took it away")
        for each in run.uncertain
        if (each.command_state, each.sandbox_state) != ("lost", "gone") or each.sandbox not in taken
    ]


def _wrong_end(run: RunRecord, taken: frozenset[str]) -> list[str]:
    lost_a_sandbox = any(name.startswith(f"{run.uid}-s") for name in taken) if run.uid else False
    if run.ended_at is None:
        return [f"it has not ended: {run.phase}, {run.reason}"]
    if run.cancel_accepted:
        return [] if run.phase == "Cancelled" else [f"it was canceled and is {run.phase}"]
    if run.phase == "Failed" and run.reason in TAKEN_AWAY and lost_a_sandbox:
        return []
    if run.phase != "Succeeded":
        return [f"it is {run.phase}, {run.reason}: {run.status.get('message')}"]
    wanted = f"{run.tokens[-1]}\n[exit code 0]"
    found = (
        [] if run.answer == wanted or lost_a_sandbox else [f"its answer is {run.answer!r}, not {wanted!r}"]
    )
    counted = Counter(step["name"] for step in run.steps)
    return found + [f"step {name} is there {count} times" for name, count in counted.items() if count > 1]


def problems(ledger: Ledger, effects: Mapping[str, int]) -> list[tuple[RunRecord, str, str]]:
    """Everything that is wrong: run, one of `PROBLEMS`, text."""
    taken = ledger.taken()
    return [(run, kind, text) for run in ledger.runs for kind, text in judge(run, effects, taken)]


def made_again(bodies: Sequence[str]) -> int:
    """Model calls that were made again: requests beyond the first of each body."""
    return len(bodies) - len(set(bodies))
