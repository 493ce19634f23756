"""A worker killed at every named crash point of several runs: the outcome is that of the undisturbed run."""

import pytest
from nodus_core.testing.crash import CrashOnce
from scenarios import SCENARIOS, Scenario, money_adds_up, outcome

LINEAR = SCENARIOS[0]
PLACES = [(scenario, point, passing) for scenario in SCENARIOS for point, passing in scenario.passings()]


def test_the_scenarios_pass_every_commit_of_a_line() -> None:
    commits = {point.rpartition(".")[0] for _, point, _ in PLACES}
    assert commits >= {
        *(
            "kick",
            "take",
            "rest",
            "hand-over",
            "open-turn",
            "finish-turn",
            "end",
            "close",
            "purge",
            "remove-object",
        ),
        *("again", "request-sandbox", "issue-code", "note-task", "replace-sandbox", "release-sandbox"),
        *("sandbox-gone", "disown-sandbox", "claim", "record", "retake", "cut"),
        *("want-command", "cancel-command", "withdraw-command", "cool", "return-inputs", "stop"),
        "place-source",
        *("fund", "give-back", "calm-account", "extend-sandbox", "book-sandbox"),
    }


@pytest.mark.req(
    "NOD-044",
    "NOD-045",
    "NOD-073",
    "NOD-074",
    "NOD-075",
    "NOD-178",
    "NOD-189",
    "FLD-12",
    "INV-10",
    "INV-42",
    "INV-44",
)
@pytest.mark.parametrize(
    ("scenario", "point", "passing"),
    PLACES,
    ids=[f"{scenario.name}-{point}-{passing}" for scenario, point, passing in PLACES],
)
def test_a_crash_here_changes_nothing(scenario: Scenario, point: str, passing: int) -> None:
    crashed = scenario.play(CrashOnce(point, passing))
    assert crashed.crashes == 1
    assert outcome(crashed) == scenario.undisturbed()
    assert money_adds_up(crashed)


@pytest.mark.req("NOD-088", "INV-46")
def test_a_managed_call_in_flight_is_made_again_counted_and_charged_once() -> None:
    # The record of the first round is lost with its worker: the call went out, its reply was not kept.
    crashed = LINEAR.play(CrashOnce("record.before", 4))
    (task,) = [task for task in crashed.outside.all_tasks("conv-1") if task.resent]
    assert (task.key, task.resent, task.attempt) == ("r1", 1, 2)
    assert len(crashed.models.requests) == 4
    undisturbed = LINEAR.play()
    spent = [world.outside.conversation("conv") for world in (crashed, undisturbed)]
    assert spent[0] is not None
    assert spent[1] is not None
    assert spent[0].spent == spent[1].spent
