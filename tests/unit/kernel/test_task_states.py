"""The table of moves is that of the catalogue, and nothing leaves a final state but an explicit retry."""

import pytest
from nodus_core.kernel.states import FINAL_TASKS, TASK_MOVES, TaskState, may_move

MOVES = """
pending    ready skipped canceled
ready      running parked canceled
running    completed failed uncertain timed_out canceled
parked     completed failed timed_out canceled
failed     ready
uncertain  completed failed running canceled
"""


@pytest.mark.req("INV-42")
def test_the_table_is_the_catalogues() -> None:
    """With one row of our own: a person's word moves an uncertain task on (NODQ-55)."""
    allowed = {
        (TaskState(old), TaskState(new))
        for old, *following in (line.split() for line in MOVES.strip().splitlines())
        for new in following
    }
    assert {(old, new) for old in TaskState for new in TaskState if may_move(old, new)} == allowed


def test_final_states_stay_but_for_a_retry_and_a_persons_word() -> None:
    assert {state for state in FINAL_TASKS if TASK_MOVES.get(state)} == {
        TaskState.FAILED,
        TaskState.UNCERTAIN,
    }
    assert not any(may_move(state, state) for state in TaskState)


def test_every_state_can_be_left_for_a_final_one_or_is_final() -> None:
    reached = set(FINAL_TASKS)
    while more := {old for old, new in TASK_MOVES.items() if new & reached} - reached:
        reached |= more
    assert reached == set(TaskState)
