"""What a campaign of kills calls wrong: each kind of wrong is seen, and what is right is not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.crash.campaign.ledger import Fault, Ledger, RunRecord, Uncertain, judge, made_again
from tests.crash.campaign.report import story, table

UID = "run-1"
TOKENS = ("m.1", "m.2")
DONE = {"m.1": 1, "m.2": 1}
NOBODY: frozenset[str] = frozenset()
TAKEN = frozenset({f"{UID}-s1"})


def step(number: int, **more: Any) -> dict[str, Any]:
    base = {"name": f"turn-1.tool.run_command.{number}", "kind": "tool", "state": "Completed", "attempt": 1}
    return {**base, "preview": f"m.{number}\n[exit code 0]", "exitCode": 0, **more}


def run(**more: Any) -> RunRecord:
    steps = [step(1), step(2)]
    made = RunRecord("in turn", "campaign-m", "m", TOKENS, 100.0, UID, 130.0, {"phase": "Succeeded"})
    made = replace(
        made, steps=steps, seen={each["name"]: each for each in steps}, answer="m.2\n[exit code 0]"
    )
    return replace(made, **more)


def parked(command: str = "lost", sandbox: str = "gone", name: str = f"{UID}-s1") -> RunRecord:
    uncertain = [Uncertain("turn-1.tool.run_command.2", name, command, sandbox)]
    status = {"phase": "Cancelled"}
    return run(
        parked=True, uncertain=uncertain, cancel_accepted=True, status=status, steps=[step(1)], seen={}
    )


@pytest.mark.parametrize(
    ("record", "effects", "taken"),
    [
        (run(), DONE, NOBODY),
        (
            run(status={"phase": "Cancelled"}, cancel_accepted=True, steps=[step(1)], seen={}),
            {"m.1": 1},
            NOBODY,
        ),
        (parked(), {"m.1": 1}, TAKEN),
        (
            run(status={"phase": "Failed", "reason": "SandboxLost"}, steps=[step(1)], seen={}),
            {"m.1": 1},
            TAKEN,
        ),
        (
            run(steps=[step(1), step(2, state="Failed", preview="gone")], seen={}, answer="gone"),
            {"m.1": 1},
            TAKEN,
        ),
    ],
)
def test_what_is_right_is_not_called_wrong(
    record: RunRecord, effects: dict[str, int], taken: frozenset[str]
) -> None:
    assert judge(record, effects, taken) == []


@pytest.mark.parametrize(
    ("kind", "record", "effects", "taken"),
    [
        ("duplicated effects", run(), {"m.1": 2, "m.2": 1}, NOBODY),
        ("duplicated effects", parked(), {"m.2": 2}, TAKEN),
        ("lost results", run(), {"m.1": 1}, NOBODY),
        ("lost results", run(seen={"gone": step(3, name="gone")}), DONE, NOBODY),
        ("lost results", run(seen={step(1)["name"]: step(1, preview="other")}), DONE, NOBODY),
        ("lost results", run(seen={step(1)["name"]: step(1, attempt=2)}), DONE, NOBODY),
        ("wrongly parked", parked(command="claimed"), {"m.1": 1}, TAKEN),
        ("wrongly parked", parked(sandbox="running"), {"m.1": 1}, TAKEN),
        ("wrongly parked", parked(), {"m.1": 1}, NOBODY),
        ("wrongly parked", replace(parked(), uncertain=[]), {"m.1": 1}, TAKEN),
        ("wrong ends", run(ended_at=None, status={"phase": "Running"}), DONE, NOBODY),
        ("wrong ends", run(cancel_accepted=True), DONE, NOBODY),
        ("wrong ends", run(status={"phase": "Failed", "reason": "SandboxLost"}), DONE, NOBODY),
        ("wrong ends", run(status={"phase": "Failed", "reason": "ModelUnavailable"}), DONE, TAKEN),
        ("wrong ends", run(answer="m.1\n[exit code 0]"), DONE, NOBODY),
        ("wrong ends", run(steps=[step(1), step(2), step(2)]), DONE, NOBODY),
        ("wrong ends", run(trouble=["it was not created: 409"]), DONE, NOBODY),
    ],
)
def test_each_kind_of_wrong_is_seen(
    kind: str, record: RunRecord, effects: dict[str, int], taken: frozenset[str]
) -> None:
    assert kind in {found for found, _ in judge(record, effects, taken)}


def test_a_model_call_that_was_made_again_is_counted_by_its_bytes() -> None:
    assert made_again(["a", "b", "a", "a"]) == 2
    assert made_again([]) == 0


def test_a_wrong_run_is_told_with_its_steps_and_what_was_done_around_it() -> None:
    faults = [
        Fault(1, "worker killed", 50.0, "early"),
        Fault(2, "agent restarted", 110.0, "4 sandboxes", TAKEN),
    ]
    ledger = Ledger(faults, [run()], [2.0, 4.0])
    text = story(ledger.runs[0], ["m.1 happened 2 times"], ledger)
    assert "m.1 happened 2 times" in text
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
