"""Every interleaving of the commits of workers, people, daemons and kicks in small scenarios.

No invariant breaks at any commit (`tests/property/watch.py`), and whoever came first, the sweeper brings the run to an
end that is right (`tests/property/ending.py`).
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.messages import Messages
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.worker import Worker
from nodus_core.journal.journal import Journal
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.resources.message import Message
from nodus_core.sandboxes.link import Link
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.world import NAMES

from tests.property.ending import check_rest, read
from tests.property.interleaving import Actor, every_schedule
from tests.property.scenario import Call, Round, Scenario
from tests.property.turmoil import LINE, Turmoil, lost_race
from tests.property.watch import INVARIANTS

ANSWER = Scenario(managed=False)
COMMAND = Scenario(rounds=(Round(calls=(Call(),)),), managed=False)
LASTING = Scenario(rounds=(Round(calls=(Call(ticks=2),)),), managed=False)
KEPT = Scenario(managed=False, keep_alive=True)

EFFORT = {2: (6, 3), 3: (4, 2)} if "NODUS_PROPERTY_EXAMPLES" in os.environ else {2: (2, 1), 3: (1, 1)}
"""By their number, what each of them does at most before it dies: commits, and waits without one in between. All
interleavings of so many are played."""

Act = Callable[[Turmoil], Callable[[Actor], None]]


# --- where it begins ---


def begun(scenario: Scenario, point: str, passing: int) -> Turmoil:
    """A worker has come so far and died; the sandbox's daemon has looked as long as the worker waited."""
    world = Turmoil(scenario)
    with pytest.raises(Crash):
        _play(world, CrashOnce(point, passing))
    return world


def passings(scenario: Scenario) -> list[tuple[str, int]]:
    """Every commit of a run that is left alone, as the crash point in front of it."""
    points = CrashOnce()
    _play(Turmoil(scenario), points)
    return [(point, passing) for point, passing in points.passings() if point.endswith(".before")]


def _play(world: Turmoil, points: CrashOnce) -> None:
    journal = Journal(world.store, world.ids, points)
    Worker(replace(world.ports, journal=journal)).advance(LINE, 1, lambda: 900.0)


# --- who acts ---


def worker(world: Turmoil) -> Callable[[Actor], None]:
    """An invocation of the line's first generation."""
    return lambda actor: _advance(actor, 1)


def kick(world: Turmoil) -> Callable[[Actor], None]:
    """Somebody who saw the execution die starts the next one, which works."""

    def act(actor: Actor) -> None:
        if Kicks(actor.journal, world.executions, actor).kick(LINE, dead_generation=1):
            _advance(actor, 2)

    return act


def ring(world: Turmoil) -> Callable[[Actor], None]:
    """A kick that finds the line held, or starts the next execution."""

    def act(actor: Actor) -> None:
        if Kicks(actor.journal, world.executions, actor).kick(LINE):
            _advance(actor, 2)

    return act


def cancel(world: Turmoil) -> Callable[[Actor], None]:
    return lambda actor: lost_race(lambda: world.stop(actor.journal))


def say(world: Turmoil) -> Callable[[Actor], None]:
    """A person sends a message of their own."""
    return lambda actor: _send(world, actor, actor.name)


def say_again(world: Turmoil) -> Callable[[Actor], None]:
    """A person whose answer was lost sends the same message again, while the first one is still under way."""
    return lambda actor: _send(world, actor, "same")


def _send(world: Turmoil, actor: Actor, key: str) -> None:
    shelf, kicks = Shelf(actor.journal, world.payloads, actor), Kicks(actor.journal, world.executions, actor)
    message = Message.model_validate({"payload": "And?", "messageKey": key})
    try:
        accepted = Messages(shelf, kicks).send(Place(NAMES.org, NAMES.project, "alice"), NAMES.name, message)
    except Refusal as refused:
        if refused.reason != "AgentRunFinished":
            raise
        assert key not in world.told, "a message that was accepted is refused when it is sent again"
        world.refused.add(key)
    else:
        assert world.told.setdefault(key, accepted).turn == accepted.turn, "the same key was accepted twice"


def daemon(world: Turmoil) -> Callable[[Actor], None]:
    """The sandbox's daemon looks three times."""

    def act(actor: Actor) -> None:
        world.sandboxes.link = Link(actor.journal, world.payloads, actor, world.vault)
        for _ in range(3):
            world.sandboxes.turn()
            actor.sleep(1)

    return act


def _advance(actor: Actor, generation: int) -> None:
    try:
        Worker(actor.ports).advance(LINE, generation, lambda: 900.0)
    except ConditionFailed as lost:
        raise AssertionError("a worker gave up over a lost race") from lost


PAIRS: dict[str, tuple[Scenario, tuple[Act, ...]]] = {
    "two workers": (COMMAND, (worker, worker)),
    "worker, next generation": (COMMAND, (worker, kick)),
    "worker, cancel": (LASTING, (worker, cancel)),
    "worker, daemon": (LASTING, (worker, daemon)),
    "worker, message": (ANSWER, (worker, say)),
    "daemon, cancel": (LASTING, (daemon, cancel)),
}
"""Played from every commit of the run on."""

THREES: dict[str, tuple[Scenario, tuple[Act, ...], tuple[str, ...]]] = {
    "worker, daemon, cancel": (COMMAND, (worker, daemon, cancel), ("record",)),
    "worker, daemon, kick": (LASTING, (worker, daemon, ring), ("record",)),
    "two workers, cancel": (ANSWER, (worker, worker, cancel), ("finish-turn",)),
    "worker, message, cancel": (ANSWER, (worker, say, cancel), ("finish-turn",)),
    "worker, message, kick": (KEPT, (worker, say, ring), ("rest",)),
    "worker, two messages": (ANSWER, (worker, say, say), ("finish-turn",)),
    "worker, a message twice": (ANSWER, (worker, say_again, say_again), ("finish-turn",)),
    "two cancels, message": (KEPT, (cancel, cancel, say), ("rest",)),
}
"""Played from the commits on at which they meet."""


@pytest.mark.req(
    *INVARIANTS,
    *("NOD-045", "NOD-073", "FLD-12"),
)
@pytest.mark.parametrize("name", [*PAIRS, *THREES])
@pytest.mark.timeout(240)
def test_every_order_of_commits_comes_to_a_right_end(name: str) -> None:
    scenario, acts, *points = PAIRS.get(name) or THREES[name]
    played, ends = 0, Counter[str]()
    for point, passing in passings(scenario):
        if not points or point.removesuffix(".before") in points[0]:
            played += _explore(scenario, acts, (point, passing), ends)
    print(f"{name}: {played} interleavings, ends {dict(ends)}")
    assert played > len(acts)


def _explore(scenario: Scenario, acts: Sequence[Act], died: tuple[str, int], ends: Counter[str]) -> int:
    """Every interleaving from one moment on; how many there are."""

    origin = begun(scenario, *died)

    def make() -> tuple[Turmoil, list[Actor]]:
        world = origin.twin()
        commits, waits = EFFORT[len(acts)]
        return world, [
            Actor(world, f"{act.__name__} {number}", act(world), commits=commits, waits=waits)
            for number, act in enumerate(acts)
        ]

    played, seen = 0, set[str]()
    for world, story in every_schedule(make):
        played += 1
        state = repr(sorted(world.watched.rows().items(), key=repr))
        if state not in seen:  # what follows depends on nothing else
            seen.add(state)
            ends[_end(world, f"died at {died}, then {story}")] += 1
    return played


def _end(world: Turmoil, story: str) -> str:
    """What the run comes to when it is left alone from here on."""
    try:
        world.calm()
        check_rest(world)
    except AssertionError as error:
        raise AssertionError(story) from error
    return str(read(world)[1].status["phase"])
