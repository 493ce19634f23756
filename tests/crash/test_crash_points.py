"""A worker killed at every named crash point of a linear run: the outcome is that of an undisturbed run."""

import pytest
from linear import linear, outcome, passings
from nodus_core.testing.crash import CrashOnce

PASSINGS = passings()


def test_the_scenario_passes_every_commit_of_a_linear_run() -> None:
    commits = {point.rpartition(".")[0] for point, _ in PASSINGS}
    assert commits >= {
        "take",
        "open-turn",
        "request-sandbox",
        "issue-code",
        "note-task",
        "claim",
        "record",
        "finish-turn",
        "release-sandbox",
        "sandbox-gone",
        "disown-sandbox",
        "close",
    }


@pytest.mark.req("NOD-073", "NOD-074", "NOD-075", "INV-10", "INV-42", "INV-44")
@pytest.mark.parametrize(("point", "passing"), PASSINGS)
def test_a_crash_here_changes_nothing(point: str, passing: int) -> None:
    crashed = linear(CrashOnce(point, passing))
    assert crashed.crashes == 1
    assert outcome(crashed) == outcome(linear())


@pytest.mark.req("NOD-088", "INV-46")
def test_a_managed_call_in_flight_is_made_again_counted_and_charged_once() -> None:
    # The record of the first round is lost with its worker: the call went out, its reply was not kept.
    crashed = linear(CrashOnce("record.before", 4))
    (task,) = [task for task in crashed.journal.all_tasks("conv-1") if task.resent]
    assert (task.key, task.resent, task.attempt) == ("r1", 1, 2)
    assert len(crashed.models.requests) == 4
    assert outcome(crashed)["cost"] == outcome(linear())["cost"]
