"""A run comes to the same end whatever befalls its workers, and no invariant breaks on the way.

`tests/property/watch.py` looks at every commit; docs/invariants.md says which test proves which invariant.
"""

import os
from collections.abc import Callable

import pytest
from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from nodus_core.kernel.states import Statement
from nodus_core.kernel.tasks import Task
from nodus_core.testing.faults import Fault

from tests.property.ending import check_rest, outcome, read
from tests.property.scenario import Scenario, scenarios
from tests.property.turmoil import LINE, Turmoil, lost_race
from tests.property.watch import INVARIANTS

MOST_ATTEMPTS = 8

MOST_WORDS = 60
"""Steps of unknown outcome that one run has at most, each with a few attempts."""

SEARCHING = "NODUS_PROPERTY_EXAMPLES" in os.environ
EFFORT = (
    settings(stateful_step_count=40)
    if SEARCHING
    else settings(max_examples=120, stateful_step_count=16, phases=[Phase.explicit, Phase.generate])
)
"""What is tried; without shrinking where it is the same each time, which takes minutes and shows no more."""

HARMLESS = ("crash", "taken over", "daemons look", "time", "doubled")
"""What may happen while a worker sleeps, or to it, without changing what the run comes to."""

WORDS = tuple(Statement)
"""What a person may say of a step whose outcome is not known."""

HARMS = ("stopped", "sandboxes die", "message")


class RunInTurmoil(RuleBasedStateMachine):
    """Rules are what may happen next; the end of each example is peace, and a look at what is left."""

    @initialize(scenario=scenarios, harms=st.sets(st.sampled_from(HARMS), max_size=2))
    def admitted(self, scenario: Scenario, harms: set[str]) -> None:
        note(repr(scenario))
        self.world = Turmoil(scenario)
        self.harms = sorted(harms)

    # --- executions: late, doubled, dropped ---

    @precondition(lambda self: self.world.executions.waiting)
    @rule(which=st.integers(0, 3), seconds=st.sampled_from([900.0, 900.0, 345.0, 80.0]))
    def execution_starts(self, which: int, seconds: float) -> None:
        waiting = self.world.executions.waiting
        self.world.execute(*waiting.pop(which % len(waiting)), seconds=seconds)

    @rule(which=st.integers(0, 5))
    def execution_runs_again(self, which: int) -> None:
        known = self.world.known
        self.world.execute(*known[which % len(known)])

    @precondition(lambda self: self.world.executions.waiting)
    @rule()
    def execution_is_dropped(self) -> None:
        self.world.executions.waiting.pop(0)

    # --- at a worker's next commits ---

    @rule(after=st.integers(0, 25), what=st.sampled_from(HARMLESS))
    def worker_will_be_interrupted(self, after: int, what: str) -> None:
        self.world.points.plan(after, self._meanwhile(what))

    @precondition(lambda self: self.harms)
    @rule(after=st.integers(0, 25), which=st.integers(0, 1))
    def worker_will_see_harm(self, after: int, which: int) -> None:
        self.world.points.plan(after, self._meanwhile(self.harms[which % len(self.harms)]))

    @rule(
        after=st.integers(0, 15),
        fault=st.sampled_from([Fault.LOST, Fault.THROTTLE, Fault.CONFLICT, Fault.BROKEN]),
    )
    def store_will_fail(self, after: int, fault: Fault) -> None:
        self.world.faults.plan(*[None] * after, fault)

    # --- from outside ---

    @rule(seconds=st.sampled_from([1, 20, 31, 61, 700]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.sleep(seconds)

    @rule()
    def sweeper_passes(self) -> None:
        lost_race(self.world.sweep)

    @rule(dead=st.booleans())
    def line_is_kicked(self, dead: bool) -> None:
        self.world.kick(dead=dead)

    @rule()
    def daemons_look(self) -> None:
        self.world.sandboxes.turn()

    @rule(minutes=st.integers(1, 4))
    def it_goes_on(self, minutes: int) -> None:
        for _ in range(minutes):
            self.world.clock.sleep(61)
            lost_race(self.world.sweep)
            self.world.execute_waiting()

    @rule(word=st.sampled_from(WORDS))
    def person_resolves(self, word: Statement) -> None:
        lost_race(lambda: self.world.speak(word))

    @rule(after=st.integers(0, 25), word=st.sampled_from(WORDS))
    def person_will_resolve(self, after: int, word: Statement) -> None:
        self.world.points.plan(after, lambda: lost_race(lambda: self.world.speak(word)))

    @precondition(lambda self: self.harms)
    @rule(which=st.integers(0, 1))
    def harm_is_done(self, which: int) -> None:
        self._meanwhile(self.harms[which % len(self.harms)])()

    def _meanwhile(self, what: str) -> Callable[[], None]:
        world = self.world
        return {
            "crash": world.crash,
            "taken over": lambda: lost_race(world.take_over),
            "stopped": lambda: lost_race(world.stop),
            "sandboxes die": world.kill_sandboxes,
            "message": lambda: lost_race(world.send),
            "daemons look": world.sandboxes.turn,
            "time": lambda: world.clock.sleep(40),
            "doubled": lambda: world.execute(*world.known[-1]),
        }[what]

    # --- peace ---

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.calm()
        check_rest(self.world)
        self._compare()
        self._resolved()
        head, _ = read(self.world)
        if not head.ended:
            self.world.stop()
            self.world.calm()
            check_rest(self.world)

    def _resolved(self) -> None:
        """People speak of everything that is held, until nothing is: by turns that it happened and that it did not."""
        for number in range(MOST_WORDS):
            head, obj = read(self.world)
            if head.ended or obj.status.get("reason") != "NeedsResolution":
                return
            self.world.speak(WORDS[number % len(WORDS)])
            self.world.calm()
            check_rest(self.world)
        raise AssertionError("there is no end to what is not known")

    def _compare(self) -> None:
        """Where nothing happened that may change the outcome, it is that of a run that was left alone (INV-49)."""
        tasks = [task for pages in self._tasks() for task in pages]
        if self.world.kinds or any(task.attempt >= MOST_ATTEMPTS for task in tasks):
            return
        alone = Turmoil(self.world.scenario)
        alone.calm()
        assert outcome(self.world) == outcome(alone)

    def _tasks(self) -> list[list[Task]]:
        head, _ = read(self.world)
        journal = self.world.journal
        return [list(journal.all_tasks(f"{LINE}-{number}")) for number in range(1, head.opened + 1)]


RunInTurmoil.TestCase.settings = EFFORT
TestRunInTurmoil = pytest.mark.req(
    *("NOD-045", "NOD-073", "NOD-074", "NOD-085", "NOD-092", "NOD-127", "NOD-128", "NODQ-55"),
    *INVARIANTS,
    *("FLD-12", "NOD-180", "NOD-181", "NOD-189", "NOD-177", "NOD-178"),
)(RunInTurmoil.TestCase)
TestRunInTurmoil = pytest.mark.timeout(300)(TestRunInTurmoil)
