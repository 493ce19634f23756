"""A worker that falls asleep at a crash point and wakes when another has finished its work: it writes nothing."""

import threading

import pytest
from nodus_core.conversations.worker import Worker
from scenarios import SCENARIOS, outcome

LINEAR = SCENARIOS[0]


class Sleeper:
    """Crash points at which one thread falls asleep once, until it is woken."""

    def __init__(self, point: str, passing: int) -> None:
        self._point = point
        self._left = passing
        self.asleep = threading.Event()
        self.wake = threading.Event()

    def reach(self, point: str) -> None:
        if point != self._point or self.asleep.is_set():
            return
        self._left -= 1
        if self._left == 0:
            self.asleep.set()
            assert self.wake.wait(30), "nobody woke the sleeper"


@pytest.mark.req("NOD-073", "INV-08", "INV-10")
@pytest.mark.parametrize(("point", "passing"), LINEAR.passings())
def test_a_worker_that_wakes_late_is_fenced_off(point: str, passing: int) -> None:
    sleeper = Sleeper(point, passing)
    world = LINEAR.make(sleeper)
    line, generation = world.executions.waiting.pop(0)
    late = threading.Thread(target=lambda: Worker(world.ports).advance(line, generation, lambda: 900.0))
    late.start()
    assert sleeper.asleep.wait(30)
    world.settle()
    before = outcome(world)
    commits = len(world.store.commits)  # type: ignore[attr-defined] - the in-memory double counts them
    sleeper.wake.set()
    late.join(30)
    assert not late.is_alive()
    assert outcome(world) == before == LINEAR.undisturbed()
    assert len(world.store.commits) == commits  # type: ignore[attr-defined]
