"""A world in which everything that can go wrong does, at the moments that Hypothesis picks.

A worker is interrupted at its commit points: it dies there, or it sleeps there while something else happens and
then goes on. Executions are dropped, doubled and late; kicks are lost; the store throttles and loses answers.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.messages import Accepted
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.sweeper import Sweeper
from nodus_core.conversations.worker import Worker
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import conversation_key
from nodus_core.journal.objects import next_version, projection
from nodus_core.kernel import metering
from nodus_core.kernel.errors import ConditionFailed, Refusal, RetryableError
from nodus_core.kernel.objects import StopMarker
from nodus_core.kernel.projection import stopping
from nodus_core.kernel.states import Statement
from nodus_core.kernel.times import stamp
from nodus_core.sandboxes.link import Link
from nodus_core.testing.crash import Crash
from nodus_core.testing.faults import Faults, FaultyStore
from nodus_core.testing.world import NAMES, TickingClock, World

from tests.property.daemons import Daemons
from tests.property.scenario import Models, Player, Scenario
from tests.property.watch import WatchedStore

LINE = "conv"
MOST_SWEEPS = 120
"""Sweeps, each of one minute, after which a run that is left alone must have come to rest."""


class Interruptions:
    """Crash points at which what the test planned happens, once each; nothing interrupts an interruption."""

    def __init__(self) -> None:
        self._plan: list[tuple[int, Callable[[], None]]] = []
        self._busy = False

    def plan(self, after: int, what: Callable[[], None]) -> None:
        """`what` happens when `after` further commit points have been passed."""
        self._plan.append((after, what))

    def forget(self) -> None:
        self._plan.clear()

    def reach(self, point: str) -> None:
        if self._busy or not self._plan or point.startswith("renew"):
            return
        after, what = self._plan[0]
        if after > 0:
            self._plan[0] = after - 1, what
            return
        self._plan.pop(0)
        self._busy = True
        try:
            what()
        finally:
            self._busy = False


class Weather(Faults):
    """Faults that end."""

    def forget(self) -> None:
        """No further request goes wrong."""
        self._script.clear()


class Turmoil(World):
    """One run of a scenario, and everything that may befall it."""

    def __init__(self, scenario: Scenario) -> None:
        self.watched = WatchedStore()
        self.faults = Weather()
        self.points = Interruptions()
        super().__init__(Player(scenario), crash=self.points, store=FaultyStore(self.watched, self.faults))
        self.scenario = scenario
        self.sandboxes = Daemons()
        self.clock = TickingClock(self.sandboxes.turn)
        self.models = Models(Player(scenario))
        outside = Journal(self.store, self.ids)
        self.sandboxes.link = Link(outside, self.payloads, self.clock, self.vault)
        self.kicks = Kicks(outside, self.executions, self.clock)
        self.known = [(LINE, 1)]
        self.kinds: set[str] = {"sandbox"} if scenario.is_deadly else set()
        if scenario.lifetime is not None:
            self.kinds.add("deadline")
        if scenario.budget is not None and Decimal(scenario.budget) < 1:
            self.kinds.add("little money")  # the sandbox's time costs some, however it passes
        """What happened that the outcome may depend on."""
        self.told: dict[str, Accepted] = {}
        """What senders of messages were told, by key."""
        self.refused: set[str] = set()
        if scenario.budget is not None:
            self.budget(scenario.budget)
        self.admit(
            cap=scenario.cap,
            context=scenario.context,
            keep_alive=scenario.keep_alive,
            lifetime=scenario.lifetime,
        )

    def twin(self) -> "Turmoil":
        """Another world in which everything is as it is in this one now."""
        made = Turmoil(self.scenario)
        made.watched.take_over(self.watched)
        made.sandboxes.daemons = copy.deepcopy(self.sandboxes.daemons)
        made.sandboxes.running = dict(self.sandboxes.running)
        made.sandboxes.effects = list(self.sandboxes.effects)
        made.payloads.objects = dict(self.payloads.objects)
        made.executions.waiting = list(self.executions.waiting)
        made.executions.names = set(self.executions.names)
        made.clock.advance((self.clock.now() - made.clock.now()).total_seconds())
        return made

    # --- executions ---

    def execute(self, line: str, generation: int, *, seconds: float = 900.0, tries: int = 4) -> None:
        """One execution; Step Functions calls the function again when it died, at most `tries` times in all."""
        self.known.append((line, generation))
        left = tries
        for _ in range(300):
            try:
                directive = self._advance(line, generation, seconds)
            except (Crash, RetryableError):
                left -= 1
                if left == 0:
                    return
                self.clock.sleep(1)
                continue
            if directive.next not in ("again", "soon"):
                return
            if directive.at is not None:
                self.clock.sleep(max((directive.at - self.clock.now()).total_seconds(), 0))
            left = tries
        raise AssertionError(f"execution {line}-{generation} does not end")

    def _advance(self, line: str, generation: int, seconds: float) -> Directive:
        started = self.clock.now()
        return Worker(self.ports).advance(
            line, generation, lambda: seconds - (self.clock.now() - started).total_seconds()
        )

    def execute_waiting(self) -> None:
        """Every execution that was asked for, in order."""
        while self.executions.waiting:
            self.execute(*self.executions.waiting.pop(0))

    def take_over(self) -> None:
        """Enough time passes for a lease to end, and the sweeper gives the line to another worker."""
        self.clock.advance(61)
        self.sweep()
        self.execute_waiting()

    # --- what happens to it from outside ---

    def crash(self) -> None:
        raise Crash("here")

    def sweep(self) -> None:
        """One pass of the sweeper now."""
        values = Reclaim(self.kicks.journal, self.vault, self.clock)
        expiry = Expiry(self.kicks.journal, self.payloads, self.clock)
        sweeper = Sweeper(self.kicks, self.task_sweep, self.pool, values, expiry, self.batches, self.builds)
        sweeper.sweep(lambda: 20.0)  # seconds too few for a second pass half a minute later

    def kick(self, *, dead: bool = False) -> None:
        head = Journal(self.watched, self.ids).conversation(LINE)
        assert head is not None
        try:
            self.kicks.kick(LINE, dead_generation=head.line.generation if dead else None)
        except RetryableError:
            return  # a lost kick

    def kill_sandboxes(self) -> None:
        self.kinds.add("sandbox")
        for daemon in self.sandboxes.daemons.values():
            daemon.alive = False

    def stop(self, through: Journal | None = None) -> None:
        """Cancels, as the API does; a lost race or a throttled store is a refused call."""
        journal, now = through or Journal(self.watched, self.ids), self.clock.now()
        head, obj = journal.conversation(LINE), journal.object(NAMES)
        assert head is not None
        assert obj is not None
        if head.stop is not None or head.ended:
            return
        self.kinds.add("stop")
        shown = replace(obj, status=stopping(obj.status, "Cancelled"), version=next_version(obj.version, now))
        shows = projection(shown, now, over=obj.version)
        journal.turns.stop(head, StopMarker(now, "alice", "Cancelled"), shows)

    def speak(self, word: Statement) -> None:
        """A person says what became of the first step that is held."""
        journal = Journal(self.watched, self.ids)
        head = journal.conversation(LINE)
        run = journal.run(head.run) if head is not None and head.run else None
        if run is not None and run.attention:
            self.kinds.add("word")
            self.resolve(run.attention[0].task, word, "so it is")

    def send(self) -> None:
        """A person sends a message; one that gets no answer sends it again, and one that is refused gives up.

        At most two messages are sent, so that a run comes to rest.
        """
        if len(self.told) == 2:
            return
        self.kinds.add("message")
        key = f"key-{len(self.told) + 1}"
        try:
            accepted = self.say("And?", key)
            assert self.say("And?", key).turn == accepted.turn, "the same key was accepted twice"
        except Refusal as refused:
            if refused.reason != "AgentRunFinished":
                raise
            self.refused.add(key)
        else:
            self.told[key] = accepted

    # --- quiescence ---

    def calm(self) -> None:
        """Nothing disturbs it any more, no kick comes, and the sweeper brings it to rest in bounded time."""
        self.points.forget()
        self.faults.forget()
        self.executions.waiting.clear()
        for _ in range(MOST_SWEEPS):
            self.clock.sleep(60)
            self.sweep()
            self.execute_waiting()
            if self._at_rest():
                return
        raise AssertionError("the run does not come to rest")

    def _at_rest(self) -> bool:
        """Whether nothing is due but the next period of a sandbox that is kept open."""
        row = self.watched.rows()[conversation_key(LINE)]
        room = Journal(self.watched, self.ids).sandbox(str(row.get("sandbox")))
        look = metering.look_at(room)
        paid = look is not None and "claimant" not in row["line"] and row.get("dueAt") == stamp(look)
        return paid or "dueAt" not in row


def lost_race(action: Callable[[], None]) -> None:
    """Does what may lose a race or meet a throttled store; whoever did it would be told so."""
    try:
        action()
    except (ConditionFailed, RetryableError, Refusal):
        return
