"""Every interleaving of a few actors: each stops before every commit, and a schedule says who goes on.

Between two of its commits an actor reads; it stops when it has read and before it writes, so what it builds on is as
old as it can be. Whoever waits is looked at again when something was committed, or when only time can move on.

Where everything is as it was at some moment of an earlier schedule (the store, the sandboxes, the time, and all that
each actor has heard), nothing new can follow, and the schedule branches no further.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from nodus_core.conversations.ports import Models, Ports
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import SandboxTasks
from nodus_core.journal.store import Store
from nodus_core.testing.clock import CountingIds
from nodus_core.testing.crash import Crash

from tests.property.turmoil import Turmoil

MOST_STEPS = 400
MOST_SCHEDULES = 20_000
WAIT_S = 30


class Heard:
    """Something that an actor asks: what it answers is all that the actor can know of the others."""

    def __init__(self, actor: "Actor", thing: object) -> None:
        self._actor = actor
        self._thing = thing

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._thing, name)

        def asked(*values: Any, **named: Any) -> Any:
            try:
                answer = method(*values, **named)
            except Exception as error:
                self._actor.hear(name, repr(error))
                raise
            self._actor.hear(name, repr(answer))
            return answer

        return asked


class OwnIds(CountingIds):
    """Ids of one actor: they do not depend on when its turn came."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def fresh(self, prefix: str) -> str:
        return f"{super().fresh(prefix)}-{self._name}"


class Actor:
    """One of those who act at the same time: a thread that runs only when the schedule says so.

    It dies before its commit behind the first `commits`, and when it has waited `waits` times without one.
    """

    def __init__(
        self, world: Turmoil, name: str, action: Callable[["Actor"], None], *, commits: int, waits: int
    ) -> None:
        self.name = name
        self._commits_left = commits
        self._waits = self._waits_left = waits
        self._world = world
        self._action = action
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._free = False
        self.done = False
        self.error: BaseException | None = None
        self.at = "start"
        self.asleep_s: float | None = None
        self.slept_at = 0
        self.ids = OwnIds(name)
        self._heard = hashlib.sha256()

    # --- what it is given in the place of the real things ---

    @property
    def journal(self) -> Journal:
        return Journal(cast("Store", Heard(self, self._world.store)), self.ids, self)

    @property
    def ports(self) -> Ports:
        ports = self._world.ports
        models, tasks = Heard(self, ports.models), Heard(self, ports.tasks)
        return replace(
            ports,
            journal=self.journal,
            models=cast("Models", models),
            tasks=cast("SandboxTasks", tasks),
            clock=self,
            ids=self.ids,
        )

    def hear(self, *words: str) -> None:
        self._heard.update("\0".join(words).encode())

    @property
    def knows(self) -> str:
        """A digest of where it is and of all that it has heard."""
        return f"{self.at} {self.asleep_s} {self.done} {self._heard.hexdigest()}"

    def reach(self, point: str) -> None:
        """A crash point: the actor stops before each commit, but for renewals, which change nothing that is read."""
        self.hear(point)
        if point.endswith(".before") and not point.startswith("renew"):
            if self._commits_left == 0 and not self._free:
                raise Crash(point)
            self._commits_left -= 1
            self._waits_left = self._waits
            self._stop(point.removesuffix(".before"))

    def now(self) -> datetime:
        now = self._world.clock.now()
        self.hear(now.isoformat())
        return now

    def sleep(self, seconds: float) -> None:
        if self._waits_left == 0 and not self._free:
            raise Crash("asleep")
        self._waits_left -= 1
        self.asleep_s, self.slept_at = seconds, len(self._world.watched.commits)
        self._stop("sleep")
        self.asleep_s = None

    # --- for the schedule ---

    def begin(self) -> None:
        self._thread.start()

    def step(self) -> None:
        """Goes on to its next stop, or to its end."""
        self._go.release()
        assert self._stopped.acquire(timeout=WAIT_S), f"{self.name} hangs after {self.at}"

    def let_go(self) -> None:
        """Stops no more: what it left behind (the link of daemons) is used by others now."""
        self._free = True

    def _stop(self, at: str) -> None:
        if self._free:
            return
        self.at = at
        self._stopped.release()
        assert self._go.acquire(timeout=WAIT_S), "the schedule has ended without this actor"

    def _run(self) -> None:
        assert self._go.acquire(timeout=WAIT_S)
        try:
            self._action(self)
        except Crash:
            self.at = "dead"
        except BaseException as error:  # noqa: BLE001 - told by the schedule, which fails the test
            self.error = error
        self.done, self._free = True, True
        self._stopped.release()


class Schedule:
    """Plays actors in the order of `choices`, then always the first.

    `taken` is the order with its breadth, as far as it leads to something new: not to one of the `known` moments.
    """

    def __init__(self, world: Turmoil, actors: list[Actor], choices: list[int], known: set[str]) -> None:
        self._world = world
        self._actors = actors
        self._choices = choices
        self._known = known
        self._is_new = True
        self.taken: list[tuple[int, int]] = []
        self.story: list[str] = []

    def play(self) -> None:
        for actor in self._actors:
            actor.begin()
        for _ in range(MOST_STEPS):
            ready = self._ready()
            if not ready:
                return
            actor = ready[self._choose(len(ready))]
            self.story.append(f"{actor.name}: {actor.at}")
            actor.step()
            if actor.error is not None:
                raise AssertionError(f"{actor.name} failed in {self.story}") from actor.error
        raise AssertionError(f"no end after {MOST_STEPS} steps: {self.story[-20:]}")

    def _choose(self, breadth: int) -> int:
        number = len(self.taken)
        if number < len(self._choices):
            choice = self._choices[number]
        else:
            choice, moment = 0, self._moment()
            self._is_new = self._is_new and moment not in self._known
            self._known.add(moment)
        if self._is_new:
            self.taken.append((choice, breadth))
        return choice

    def _moment(self) -> str:
        rows = sorted(self._world.watched.rows().items(), key=repr)
        sandboxes = self._world.sandboxes
        outside = (sandboxes.daemons, sandboxes.running, sandboxes.effects, self._world.executions)
        text = repr((rows, outside, self._world.clock.now(), [actor.knows for actor in self._actors]))
        return hashlib.sha256(text.encode()).hexdigest()

    def _ready(self) -> list[Actor]:
        going = [actor for actor in self._actors if not actor.done]
        commits = len(self._world.watched.commits)
        ready = [actor for actor in going if actor.asleep_s is None or actor.slept_at < commits]
        if ready or not going:
            return ready
        shortest = min(actor.asleep_s or 0.0 for actor in going)
        self._world.clock.advance(shortest)
        for actor in going:
            actor.asleep_s = max(0.0, (actor.asleep_s or 0.0) - shortest)
        return [actor for actor in going if actor.asleep_s == 0.0]


def every_schedule(make: Callable[[], tuple[Turmoil, list[Actor]]]) -> Iterator[tuple[Turmoil, list[str]]]:
    """Plays every interleaving of what `make` sets up anew each time; the world after it, and the order as words."""
    choices: list[int] = []
    known: set[str] = set()
    for _ in range(MOST_SCHEDULES):
        world, actors = make()
        schedule = Schedule(world, actors, choices, known)
        schedule.play()
        for actor in actors:
            actor.let_go()
        yield world, schedule.story
        taken = schedule.taken
        while taken and taken[-1][0] + 1 >= taken[-1][1]:
            taken.pop()
        if not taken:
            return
        choices = [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]
    raise AssertionError(f"more than {MOST_SCHEDULES} interleavings: make the scenario smaller")
