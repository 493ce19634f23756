"""What a campaign of kills calls wrong: each kind of wrong is seen, and what is right is not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.crash.campaign.effects import Outside
from tests.crash.campaign.judging import DUPLICATED, ENDS, LOST, MESSAGES, PARKED, judge, made_again
from tests.crash.campaign.ledger import Fault, Ledger, Prompt, RunRecord, Uncertain
from tests.crash.campaign.report import story, table

UID = "run-1"
DONE = ["m.1.1", "m.1.2"]
TALKED = [*DONE, "m.2.1", "m.2.2"]
NOBODY: frozenset[str] = frozenset()
TAKEN = frozenset({f"{UID}-s1"})
CANCELED = {"phase": "Cancelled"}


def prompt(number: int, **more: Any) -> Prompt:
    waves = ((f"m.{number}.1",), (f"m.{number}.2",))
    made = Prompt(f"[m] prompt {number}", waves, f"message-{number}" if number > 1 else None, number)
    return replace(made, **more)


def turn(number: int, **more: Any) -> dict[str, Any]:
    times = {"startedAt": f"10:0{number}:00", "finishedAt": f"10:0{number}:30"}
    return {"turn": number, "prompt": f"[m] prompt {number}", "phase": "Succeeded", **times, **more}


def step(number: int, turn: int = 1, **more: Any) -> dict[str, Any]:
    base = {"name": f"turn-{turn}.tool.run_command.{number}", "kind": "tool", "state": "Completed"}
    return {**base, "attempt": 1, "preview": f"m.{turn}.{number}\n[exit code 0]", "exitCode": 0, **more}


def run(**more: Any) -> RunRecord:
    """One turn of two commands, undisturbed."""
    made = RunRecord("in turn", "campaign-m", "m", [prompt(1)], 100.0, uid=UID, ended_at=130.0)
    made.see({"phase": "Succeeded", "turns": [turn(1)]}, [step(1), step(2)])
    made.answers[1] = "m.1.2\n[exit code 0]"
    return replace(made, **more)


def ends(phase: str, reason: str | None = None, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Fields of a run that ended so, of whose steps only the first was shown."""
    status = {"phase": phase, "reason": reason, "turns": list(turns), **more}
    return {"status": status, "turns": {}, "steps": [step(1)], "seen": {}, "answers": {}}


def canceled(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**ends("Cancelled", None, *turns, **more), "cancel_asked": True, "cancel_accepted": True}


def parked(command: str = "lost", sandbox: str = "gone", name: str = f"{UID}-s1", **more: Any) -> RunRecord:
    """It asked about its second command, and was canceled."""
    asked = Uncertain("turn-1.tool.run_command.2", "10:01:10", name, command, sandbox, "m.1.2")
    return run(**{**canceled(), "parked": True, "uncertain": [asked], **more})


def resolved(outcome: str, **shown: Any) -> RunRecord:
    """It asked about its second command, was told, and went on to its end."""
    second = step(2, resolution={"outcome": outcome}, **shown)
    made = parked(**ends("Succeeded", None, turn(1)), cancel_asked=False, cancel_accepted=False)
    asked = [replace(each, outcome=outcome) for each in made.uncertain]
    return replace(made, uncertain=asked, steps=[step(1), second])


def talked(*prompts: Prompt, keep_alive: bool = True, **more: Any) -> RunRecord:
    """Two turns and a cancel at rest."""
    status = {"phase": "Cancelled", "turns": [turn(1), turn(2)]}
    made = run(prompts=[prompt(1), *(prompts or (prompt(2),))], keep_alive=keep_alive)
    made.see(status, [step(1), step(2), step(1, 2), step(2, 2)])
    made.answers[2] = "m.2.2\n[exit code 0]"
    return replace(made, **{"cancel_asked": True, "cancel_accepted": True, **more})


NEVER = {"state": "Failed", "error": "SandboxGone", "preview": "gone"}


@pytest.mark.parametrize(
    ("record", "happened", "taken"),
    [
        (run(), DONE, NOBODY),
        (run(**canceled()), DONE[:1], NOBODY),
        (run(**ends("Cancelled"), cancel_asked=True), DONE[:1], NOBODY),
        (parked(), DONE[:1], TAKEN),
        (resolved("Happened"), DONE, TAKEN),
        (resolved("DidNotHappen", **NEVER), DONE[:1], TAKEN),
        (run(**ends("Failed", "SandboxLost")), DONE[:1], TAKEN),
        (run(**ends("Failed", "DeadlineExceeded"), deadline=120.0), DONE[:1], NOBODY),
        (run(steps=[step(1), step(2, **NEVER)], seen={}, answers={1: "gone"}), DONE[:1], TAKEN),
        (run(prompts=[prompt(1, waves=(("m.1.1", "m.1.2"),))]), DONE[::-1], NOBODY),
        (talked(), TALKED, NOBODY),
        (talked(prompt(2, turn=None, refused=True), **canceled(turn(1))), DONE, NOBODY),
        (
            talked(**canceled(turn(1), undelivered=[{"messageKey": "message-2", "reason": "Cancelled"}])),
            DONE,
            NOBODY,
        ),
    ],
)
def test_what_is_right_is_not_called_wrong(
    record: RunRecord, happened: list[str], taken: frozenset[str]
) -> None:
    assert judge(record, Outside([happened]), taken) == []


@pytest.mark.parametrize(
    ("kind", "record", "happened", "taken"),
    [
        (DUPLICATED, run(), [*DONE, "m.1.2"], NOBODY),
        (DUPLICATED, run(), DONE[::-1], NOBODY),
        (DUPLICATED, run(), [*DONE, "n.1.1"], NOBODY),
        (DUPLICATED, parked(), ["m.1.2", "m.1.2"], TAKEN),
        (LOST, run(), DONE[:1], NOBODY),
        (LOST, run(seen={"gone": step(3, name="gone")}), DONE, NOBODY),
        (LOST, run(seen={step(1)["name"]: step(1, preview="other")}), DONE, NOBODY),
        (LOST, run(seen={step(1)["name"]: step(1, attempt=2)}), DONE, NOBODY),
        (LOST, run(turns={1: turn(1, costUSD="1")}), DONE, NOBODY),
        (LOST, run(answers={1: "m.1.1\n[exit code 0]"}), DONE, NOBODY),
        (LOST, talked(), [*DONE, "m.2.1"], NOBODY),
        (MESSAGES, talked(status={**CANCELED, "turns": [turn(1)]}), TALKED, NOBODY),
        (MESSAGES, talked(status={**CANCELED, "turns": [turn(1), turn(2), turn(2, turn=3)]}), TALKED, NOBODY),
        (MESSAGES, talked(prompt(2, turn=3)), TALKED, NOBODY),
        (MESSAGES, talked(prompt(2, turn=None, refused=True)), TALKED, NOBODY),
        (
            MESSAGES,
            talked(status={**CANCELED, "turns": [turn(1), turn(2, startedAt="10:01:29")]}),
            TALKED,
            NOBODY,
        ),
        (
            MESSAGES,
            talked(
                status={
                    "phase": "Succeeded",
                    "turns": [turn(1)],
                    "undelivered": [{"messageKey": "message-2"}],
                }
            ),
            TALKED,
            NOBODY,
        ),
        (PARKED, parked(command="claimed"), DONE[:1], TAKEN),
        (PARKED, parked(sandbox="running"), DONE[:1], TAKEN),
        (PARKED, parked(), DONE[:1], NOBODY),
        (PARKED, replace(parked(), uncertain=[]), DONE[:1], TAKEN),
        (PARKED, resolved("DidNotHappen", **NEVER), DONE, TAKEN),
        (PARKED, resolved("Happened"), DONE[:1], TAKEN),
        (PARKED, resolved("Happened", state="Uncertain"), DONE, TAKEN),
        (PARKED, replace(resolved("Happened"), steps=[step(1), step(2)]), DONE, TAKEN),
        (ENDS, run(ended_at=None, status={"phase": "Running"}), DONE, NOBODY),
        (ENDS, run(cancel_asked=True, cancel_accepted=True), DONE, NOBODY),
        (ENDS, run(**ends("Cancelled")), DONE[:1], NOBODY),
        (ENDS, run(**ends("Failed", "SandboxLost")), DONE[:1], NOBODY),
        (ENDS, run(**ends("Failed", "ModelUnavailable")), DONE[:1], TAKEN),
        (ENDS, run(**ends("Failed", "DeadlineExceeded")), DONE[:1], TAKEN),
        (ENDS, run(**ends("Failed", "DeadlineExceeded"), deadline=131.0), DONE[:1], TAKEN),
        (ENDS, run(keep_alive=True), DONE, NOBODY),
        (ENDS, run(steps=[step(1), step(2), step(2)]), DONE, NOBODY),
        (ENDS, run(trouble=["it was not created: 409"]), DONE, NOBODY),
    ],
)
def test_each_kind_of_wrong_is_seen(
    kind: str, record: RunRecord, happened: list[str], taken: frozenset[str]
) -> None:
    assert kind in {found for found, _ in judge(record, Outside([happened]), taken)}


def test_a_model_call_that_was_made_again_is_counted_by_its_bytes() -> None:
    assert made_again(["a", "b", "a", "a"]) == 2
    assert made_again([]) == 0


def test_a_wrong_run_is_told_with_its_steps_and_what_was_done_around_it() -> None:
    faults = [
        Fault(1, "worker killed", 50.0, "early"),
        Fault(2, "agent restarted", 110.0, "4 sandboxes", TAKEN),
    ]
    ledger = Ledger(faults, [run()], [2.0, 4.0])
    text = story(ledger.runs[0], ["m.1.1 happened 2 times"], ledger)
    assert "m.1.1 happened 2 times" in text
    assert "agent restarted: 4 sandboxes" in text
    assert "early" not in text
    assert text.count("turn-1.tool.run_command") == 2
    shown = table(ledger, [(ledger.runs[0], "duplicated effects", "x")], 3, {"stream.lost": 5}).splitlines()
    rows = {line.rsplit(None, 1)[0].strip(): line.rsplit(None, 1)[1] for line in shown}
    assert rows["kills"] == "2"
    assert rows["duplicated effects"] == "1"
    assert rows["managed model calls made again"] == "3"
    assert rows["seconds to resume, most"] == "4.0"
    assert rows["stream.lost"] == "5"
