"""No schedule of workers, crashes and parallel calls spends more than a cap, a Budget or credits allow (FLD-11)."""

from random import Random

import pytest

from tests.property.purses import Purses

TRIALS = 100
"""Trials of one test; all tests together are 10,000."""

STEPS = 10


@pytest.mark.req("FLD-11", "NOD-127", "NOD-128", "NOD-146", "NOD-147")
@pytest.mark.parametrize("block", range(100))
def test_nothing_is_ever_spent_above_a_limit_and_nothing_leaks(block: int) -> None:
    refused = 0
    for seed in range(block * TRIALS, (block + 1) * TRIALS):
        trial = Purses(Random(seed))
        try:
            for _ in range(STEPS):
                trial.step()
            trial.end()
        except AssertionError as error:
            raise AssertionError(f"trial {seed} (Purses(Random({seed}))): {error}") from error
        refused += trial.refused
    assert refused > 0, "no late worker was tried"
