"""What people see of a run at each of its changes, from the journal alone (docs/protocols.md §1)."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from nodus_core.kernel import projection
from nodus_core.kernel.objects import Attention, Turn
from nodus_core.kernel.states import TaskState, TurnState
from nodus_core.kernel.tasks import Usage
from nodus_core.kernel.text import Inline, Stored

from tests.unit.kernel.views import NOW, SANDBOX, STOP, head, task

LATER = NOW + timedelta(seconds=5)
OPEN = Turn("conv", 1, 1, "conv-1", TurnState.OPEN, "Do it.", NOW)
DONE = replace(
    OPEN,
    state=TurnState.COMPLETED,
    finished_at=LATER,
    model="claude-haiku",
    chosen_by="jev",
    cost=Decimal("0.0120"),
    usage=Usage(100, 10),
    answer=Inline("42"),
)
QUEUED = projection.queued(3, Decimal("1.00"))
WORKING = projection.working(QUEUED, OPEN)


@pytest.mark.req("NOD-005")
@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0"),
        ("0.00", "0"),
        ("1.50", "1.5"),
        ("100", "100"),
        ("1E+3", "1000"),
        ("1E-7", "0.0000001"),
        ("-0.50", "-0.5"),
    ],
)
def test_money_is_shown_exactly_and_plainly(amount: str, text: str) -> None:
    assert projection.dollars(Decimal(amount)) == text


def test_a_queued_run_shows_what_it_pinned() -> None:
    assert QUEUED == {
        "phase": "Queued",
        "agentGeneration": 3,
        "attempts": 0,
        "turns": [],
        "cost": {"totalUSD": "0", "limitUSD": "1", "computeUSD": "0"},
    }


def test_a_working_run_shows_its_turn_and_keeps_its_first_start() -> None:
    assert (WORKING["phase"], WORKING["startedAt"]) == ("Running", "2030-01-01T00:00:00.000Z")
    assert [(item["turn"], item["phase"]) for item in WORKING["turns"]] == [(1, "Running")]
    second = projection.working(WORKING, replace(OPEN, number=2, started_at=LATER))
    assert second["startedAt"] == WORKING["startedAt"]
    assert [item["turn"] for item in second["turns"]] == [1, 2]


@pytest.mark.req("NODQ-24", "NOD-065")
def test_a_final_turn_shows_its_model_cost_and_answer() -> None:
    after = projection.answered(WORKING, replace(head(ended=True), spent=Decimal("0.0120")), DONE, LATER)
    assert (after["phase"], after["finishedAt"]) == ("Succeeded", "2030-01-01T00:00:05.000Z")
    assert after["answer"] == {"preview": "42", "turn": 1}
    assert after["cost"] == {"totalUSD": "0.012", "limitUSD": "1", "computeUSD": "0"}
    (turn,) = after["turns"]
    assert turn == {
        "turn": 1,
        "prompt": "Do it.",
        "phase": "Succeeded",
        "startedAt": "2030-01-01T00:00:00.000Z",
        "finishedAt": "2030-01-01T00:00:05.000Z",
        "model": "claude-haiku",
        "chosenBy": "jev",
        "costUSD": "0.012",
        "usage": {"inputTokens": 100, "outputTokens": 10},
    }


def test_a_failed_turn_says_why_and_shows_no_answer() -> None:
    failed = replace(DONE, state=TurnState.FAILED, reason="SetupFailed")
    after = projection.answered(WORKING, head(ended=True), failed, LATER, "exit code 3")
    assert (after["phase"], after["reason"], after["message"]) == ("Failed", "SetupFailed", "exit code 3")
    assert "answer" not in after


def test_a_conversation_that_goes_on_waits_for_a_message() -> None:
    after = projection.answered(WORKING, head(keep_alive=True), DONE, LATER)
    assert (after["phase"], after["reason"], after["answer"]["turn"]) == ("Waiting", "MessageWait", 1)
    assert "finishedAt" not in after


@pytest.mark.req("NODQ-02", "NOD-045")
def test_a_canceled_run_keeps_its_phase_until_everything_has_joined() -> None:
    canceled = replace(DONE, state=TurnState.CANCELED)
    joining = projection.answered(
        projection.stopping(WORKING, "Cancelled"), head(ended=True, stop=STOP), canceled, LATER
    )
    assert (joining["phase"], joining["reason"]) == ("Running", "Cancelling")
    over = projection.stopped(joining, STOP, LATER)
    assert (over["phase"], over["reason"], over["finishedAt"]) == (
        "Cancelled",
        "Cancelled",
        "2030-01-01T00:00:05.000Z",
    )


@pytest.mark.req("NOD-090")
def test_a_wait_says_its_reason_and_leaves_no_trace_once_it_is_over() -> None:
    step = task("r1t0", TaskState.UNCERTAIN, input=Inline('{"command":"rm"}'))
    lost = Attention("r1t0", "SandboxLost", LATER)
    entry = projection.unresolved_entry("turn-1.tool.run_command.1", step, lost)
    assert entry == {
        "step": "turn-1.tool.run_command.1",
        "what": "SandboxLost",
        "guarantee": "AtMostOnce",
        "input": '{"command":"rm"}',
        "since": "2030-01-01T00:00:05.000Z",
    }
    held = projection.waiting(WORKING, "NeedsResolution", "Look.", [entry])
    assert (held["phase"], held["reason"], held["unresolved"]) == ("Waiting", "NeedsResolution", [entry])
    for after in (
        projection.working(held, OPEN),
        projection.resumed(held),
        projection.answered(held, head(ended=True), DONE, LATER),
    ):
        assert not {"reason", "message", "unresolved"} & set(after)


def test_long_inputs_of_unresolved_steps_are_previews() -> None:
    step = task("setup", TaskState.UNCERTAIN, input=Stored("0" * 64, 9_000, "é" * 2048))
    assert (
        len(projection.unresolved_entry("setup", step, Attention("setup", "x", LATER))["input"].encode())
        == 1024
    )


def test_the_sandbox_is_shown_with_what_holds_of_it() -> None:
    up = replace(SANDBOX, isolated=True, guard="network")
    status = projection.with_sandbox(WORKING, head(attempts=2), up, "Running")
    assert status["sandbox"] == {
        "name": "conv-s1",
        "image": "nodus/agent-tools",
        "egress": "Deny",
        "phase": "Running",
    }
    assert status["attempts"] == 2
    shown = {item["type"]: item["status"] for item in status["conditions"]}
    assert shown == {"Isolated": "True", "EgressEnforced": "True", "ImagePinned": "False"}
    assert projection.conditions(SANDBOX) == []
    reasons = {
        guard: [item.get("reason") for item in projection.conditions(replace(up, guard=guard))]
        for guard in ("network", "seccomp")
    }
    assert reasons == {
        "network": [None, "Network", "MachineTools"],
        "seccomp": [None, "Guard", "MachineTools"],
    }
    bare = projection.conditions(replace(SANDBOX, isolated=False, guard=None))
    assert [item["status"] for item in bare] == ["False", "False", "False"]


@pytest.mark.req("NODQ-24")
def test_the_last_hundred_turns_stand_in_the_status() -> None:
    status = QUEUED
    for number in range(1, projection.MOST_TURNS + 3):
        status = projection.working(status, replace(OPEN, number=number))
    assert [status["turns"][0]["turn"], len(status["turns"])] == [3, projection.MOST_TURNS]


def test_no_projection_changes_what_it_was_given() -> None:
    before = projection.queued(1, Decimal(1))
    projection.answered(projection.working(before, OPEN), head(ended=True), DONE, LATER)
    projection.waiting(before, "MaxCostReached", "…")
    assert before == projection.queued(1, Decimal(1))
