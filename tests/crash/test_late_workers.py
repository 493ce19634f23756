"""A worker that falls asleep at a crash point and wakes when another has finished its work: it writes nothing."""

import threading

import pytest
from nodus_core.conversations.worker import Worker
from nodus_core.journal.ports import CrashPoints, NoCrash
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.world import World
from scenarios import SCENARIOS, Scenario, held, outcome, speak

LINEAR = SCENARIOS[0]
RESOLVED = next(scenario for scenario in SCENARIOS if scenario.name == "resolved")


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


KICKS = ("kick", "ring")
"""Commits of whoever tells the line to look."""


class Switch:
    """Crash points that are others' from a moment on."""

    def __init__(self) -> None:
        self.points: CrashPoints = NoCrash()

    def reach(self, point: str) -> None:
        self.points.reach(point)


@pytest.mark.req("NOD-073", "INV-08", "INV-10")
@pytest.mark.parametrize(("point", "passing"), LINEAR.passings())
def test_a_worker_that_wakes_late_is_fenced_off(point: str, passing: int) -> None:
    sleeper = Sleeper(point, passing)
    world = LINEAR.make(sleeper)
    _is_fenced_off(world, sleeper, LINEAR)


def _resumption() -> list[tuple[str, int]]:
    """The crash points that the worker passes which carries out what people have said."""
    points = CrashOnce()
    world = _parked(points)
    points.passed.clear()
    world.kicks.kick("conv")
    world.settle()
    return points.passings()


def _parked(crash: CrashPoints) -> World:
    """A run that was held; a person has spoken, and nobody has looked since."""
    world = held(crash)
    world.settle()
    assert world.is_parked()
    speak(world)
    return world


@pytest.mark.req("NODQ-55", "NOD-073", "INV-08", "INV-10")
@pytest.mark.parametrize(
    ("point", "passing"), [pair for pair in _resumption() if not pair[0].startswith(KICKS)]
)
def test_a_worker_that_carries_out_a_persons_word_too_late_is_fenced_off(point: str, passing: int) -> None:
    switch = Switch()
    world = _parked(switch)
    world.kicks.kick("conv")
    switch.points = sleeper = Sleeper(point, passing)
    _is_fenced_off(world, sleeper, RESOLVED)


def _is_fenced_off(world: World, sleeper: Sleeper, scenario: Scenario) -> None:
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
    assert outcome(world) == before == scenario.undisturbed()
    assert len(world.store.commits) == commits  # type: ignore[attr-defined]
