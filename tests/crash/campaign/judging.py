"""What must never be of a run, whatever was done to the cloud meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.crash.campaign.effects import Outside
from tests.crash.campaign.ledger import TOLD_LOST, Ledger, Prompt, RunRecord, Shown, Uncertain

DUPLICATED, LOST, MESSAGES = "duplicated effects", "lost results", "messages lost or doubled"
PARKED, ENDS = "wrongly parked", "wrong ends"
PROBLEMS = (DUPLICATED, LOST, MESSAGES, PARKED, ENDS)

TAKEN_AWAY = ("SandboxLost", "SandboxStartFailed")
"""Reasons of failed runs that are right where a sandbox was taken from them."""

PROMPT_SHOWN = 1024
"""Of a turn's prompt so much is shown."""

Problem = tuple[str, str]
"""One of `PROBLEMS`, and a text."""


def problems(ledger: Ledger, outside: Outside) -> list[tuple[RunRecord, str, str]]:
    """Everything that is wrong: run, one of `PROBLEMS`, text."""
    taken = ledger.taken()
    return [(run, kind, text) for run in ledger.runs for kind, text in judge(run, outside, taken)]


def judge(run: RunRecord, outside: Outside, taken: frozenset[str]) -> list[Problem]:
    """What is wrong with a run. `taken`: sandboxes that were taken away."""
    return [
        *((DUPLICATED, text) for text in _duplicated(run, outside)),
        *((LOST, text) for text in _lost(run, outside, taken)),
        *((MESSAGES, text) for text in _messages(run)),
        *((PARKED, text) for text in _wrongly_parked(run, taken)),
        *((PARKED, text) for each in run.uncertain for text in _wrongly_resolved(run, each, outside)),
        *((ENDS, text) for text in run.trouble),
        *((ENDS, text) for text in _wrong_end(run, taken)),
    ]


def made_again(bodies: Sequence[str]) -> int:
    """Model calls that were made again: requests beyond the first of each body."""
    return len(bodies) - len(set(bodies))


def _duplicated(run: RunRecord, outside: Outside) -> Iterator[str]:
    """Effects that happened twice, or before one that comes first."""
    for token in run.tokens:
        if outside.count(token) > 1:
            yield f"{token} happened {outside.count(token)} times"
    waves = [wave for prompt in run.prompts for wave in prompt.waves]
    place = {token: number for number, wave in enumerate(waves) for token in wave}
    for happened in outside.of(run.mark):
        yield from (f"{token} happened in its sandbox" for token in happened if token not in place)
        for before, after in pairwise(token for token in happened if token in place):
            if place[before] > place[after]:
                yield f"{before} happened before {after}"


def _lost(run: RunRecord, outside: Outside, taken: frozenset[str]) -> Iterator[str]:
    """Results that were shown once and are gone or changed, or stand for what never happened."""
    now = {step["name"]: step for step in run.steps}
    for name, old in run.seen.items():
        if _step(now.get(name)) != _step(old):
            yield f"step {name} was shown {old['state']} and is {now.get(name, {}).get('state', 'gone')}"
    turns = _turns(run)
    for number, old in run.turns.items():
        if turns.get(number) != old:
            yield f"turn {number} was shown as {old} and is {turns.get(number, 'gone')}"
    for step in run.steps:
        # The token is the first word that the command prints.
        word = str(step.get("preview", "")).partition("\n")[0]
        if step["state"] == "Completed" and word in run.tokens and outside.count(word) == 0:
            yield f"step {step['name']} shows {word}, which never happened"
    for prompt in run.prompts:
        if turns.get(prompt.turn or 0, {}).get("phase") == "Succeeded":
            yield from _missing(run, prompt, outside)
            yield from _wrong_answer(run, prompt, taken)


def _missing(run: RunRecord, prompt: Prompt, outside: Outside) -> list[str]:
    """A command that a lost sandbox took along, or ended, is told to the model as such: it may not have happened."""
    own = [step for step in run.steps if step["name"].startswith(f"turn-{prompt.turn}.tool.")]
    failed = sum(step["state"] == "Failed" for step in own)
    missing = [token for token in prompt.tokens if outside.count(token) == 0]
    return [f"{token} is missing" for token in missing] if len(missing) > failed else []


def _wrong_answer(run: RunRecord, prompt: Prompt, taken: frozenset[str]) -> Iterator[str]:
    wanted = f"{prompt.tokens[-1]}\n[exit code 0]"
    number = prompt.turn or 0
    if number in run.answers and run.answers[number] != wanted and not _lost_a_sandbox(run, taken):
        yield f"the answer of turn {number} is {run.answers[number]!r}, not {wanted!r}"


def _step(step: Shown | None) -> Any:
    kept = ("name", "kind", "state", "attempt", "preview", "exitCode", "error", "finishedAt", "costUSD")
    return None if step is None else {name: step.get(name) for name in kept}


def _turns(run: RunRecord) -> dict[int, Shown]:
    return {turn["turn"]: turn for turn in run.status.get("turns", [])}


def _messages(run: RunRecord) -> Iterator[str]:
    """Each accepted prompt has one turn, its own, in the order of acceptance, or is listed as undelivered."""
    left = Counter(entry["messageKey"] for entry in run.status.get("undelivered", []))
    for prompt in run.prompts:
        shown = prompt.text[:PROMPT_SHOWN]
        read = [number for number, turn in _turns(run).items() if turn["prompt"] == shown]
        name = f"message {prompt.key}" if prompt.key else "the input"
        if prompt.refused and (read or left[prompt.key]):
            yield f"{name} was refused and has turns {read}, undelivered {left[prompt.key]} times"
        elif prompt.turn is not None and read not in ([], [prompt.turn]):
            yield f"{name} was accepted as turn {prompt.turn} and has turns {read}"
        elif run.ended_at and prompt.turn and prompt.key and len(read) + left[prompt.key] != 1:
            yield f"{name} was accepted; turns {read}, undelivered {left[prompt.key]} times"
    accepted = [prompt.turn for prompt in run.prompts if prompt.turn is not None]
    if accepted != list(range(1, len(accepted) + 1)):
        yield f"messages were accepted in the order of these turns: {accepted}"
    for before, after in pairwise(turn for _, turn in sorted(_turns(run).items())):
        if after["startedAt"] < before.get("finishedAt", "~"):
            yield f"turn {after['turn']} began before the one before it had ended"
    if run.phase == "Succeeded" and left:
        yield f"it succeeded without reading {sorted(left)}"


def _wrongly_parked(run: RunRecord, taken: frozenset[str]) -> list[str]:
    """A park is right where its command was in flight in a sandbox that we took away, and that is gone.

    One whose daemon was asked to stop, and said so, may be looked at before it is gone.
    """
    if not run.parked:
        return []
    if not run.uncertain:
        return ["it waits for a resolution of nothing"]
    return [
        f"{each.step}: its command is {each.command_state}, its sandbox {each.sandbox} is {each.sandbox_state}"
        + ("" if each.sandbox in taken else " and nobody took it away")
        for each in run.uncertain
        if each.sandbox not in taken
        or (each.command_state != TOLD_LOST and (each.command_state, each.sandbox_state) != ("lost", "gone"))
    ]


def _wrongly_resolved(run: RunRecord, asked: Uncertain, outside: Outside) -> Iterator[str]:
    """What was said stays said, the step is what was said of it, and nothing happens afterwards."""
    if asked.outcome is None:
        return
    happened = asked.outcome == "Happened"
    if outside.count(asked.token) != int(happened):
        yield f"{asked.step}: {asked.token} happened {outside.count(asked.token)} times, and {asked.outcome} was said"
    step = next((step for step in run.steps if step["name"] == asked.step), {})
    if step.get("resolution", {}).get("outcome") != asked.outcome:
        yield f"{asked.step}: {asked.outcome} was said, and it shows {step.get('resolution')}"
    # What had not happened when the run was stopped is not done any more.
    allowed = ("Completed",) if happened else ("Failed", "Cancelled")
    if step.get("state") not in allowed:
        yield f"{asked.step}: {asked.outcome} was said, and it is {step.get('state')}"


def _wrong_end(run: RunRecord, taken: frozenset[str]) -> list[str]:
    if run.ended_at is None:
        return [f"it has not ended: {run.phase}, {run.reason}"]
    found = [] if _ended_right(run, taken) else [_told(run)]
    counted = Counter(step["name"] for step in run.steps)
    return found + [f"step {name} is there {count} times" for name, count in counted.items() if count > 1]


def _ended_right(run: RunRecord, taken: frozenset[str]) -> bool:
    if run.phase == "Failed" and run.reason == "DeadlineExceeded":
        # One that was cancelled at its deadline is stopped by either.
        return run.deadline is not None and run.ended_at is not None and run.ended_at >= run.deadline
    if run.phase == "Cancelled":
        return run.cancel_asked
    if run.cancel_accepted:
        return False
    if run.phase == "Failed":
        return run.reason in TAKEN_AWAY and _lost_a_sandbox(run, taken)
    # One that is kept alive never finishes by itself.
    return run.phase == "Succeeded" and not run.keep_alive


def _told(run: RunRecord) -> str:
    asked = "it was canceled and " if run.cancel_accepted else "it "
    return f"{asked}is {run.phase}, {run.reason}: {run.status.get('message')}"


def _lost_a_sandbox(run: RunRecord, taken: frozenset[str]) -> bool:
    return bool(run.uid) and any(name.startswith(f"{run.uid}-s") for name in taken)
