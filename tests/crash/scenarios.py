"""Runs that crash tests disturb: what each does undisturbed, and what must be the same however it was disturbed."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from nodus_core.conversations.context import ArchiveSource, Context, GitSource, ModelChoice
from nodus_core.conversations.sources import SourceUnavailable
from nodus_core.conversations.worker import MOST_ROUNDS
from nodus_core.inference.errors import ModelUnavailable
from nodus_core.inference.exchange import ModelRequest, Usage
from nodus_core.journal.codec import from_row
from nodus_core.journal.objects import versioned
from nodus_core.journal.ports import CrashPoints, TaskRequest
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.money import ZERO, Account
from nodus_core.kernel.objects import Object, ObjectKey, Run
from nodus_core.kernel.projection import awaits_message
from nodus_core.kernel.states import Statement
from nodus_core.kernel.text import Inline
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.scripted_model import Step, plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited
from nodus_core.testing.world import NAMES, World

PLAIN = Context("agent", 1, "You are careful.", ModelChoice("Nodus"))
SETUP = replace(PLAIN, setup="printf ready > ready.txt")
LOOK = says("look", ("run_command", {"command": "python3 --version"}))
LONG = says("look", ("run_command", {"command": "sleep 3000", "timeout": 3600}))
PAIR = says("two", ("run_command", {"command": "a"}), ("write_file", {"path": "b", "content": "c"}))
TRIPLE = says("three", *(("run_command", {"command": word}) for word in ("a", "b", "c")))
WORDS = {"r1t0": Statement.DID_NOT_HAPPEN, "r1t1": Statement.HAPPENED, "r1t2": Statement.DID_NOT_HAPPEN}
ANSWER = says("It is Python 3.11.7.")

Command = Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """`make` gives a world in which the run is admitted and not begun; `name` is what a test shows."""

    name: str
    make: Callable[[CrashPoints | None], World]

    def play(self, crash: CrashPoints | None = None) -> World:
        """Runs it to its end."""
        world = self.make(crash)
        world.settle()
        return world

    def undisturbed(self) -> dict[str, Any]:
        """What comes of it when nothing happens to its workers."""
        return _undisturbed(self)

    def passings(self) -> list[tuple[str, int]]:
        """Every crash point that the undisturbed run passes, each time it passes it."""
        points = CrashOnce()
        self.play(points)
        return points.passings()


def linear(crash: CrashPoints | None) -> World:
    """Setup, routing, a command, two parallel calls, an answer."""
    world = World(plays([LOOK, PAIR, ANSWER]), lambda kind, request: exited("out\n"), crash=crash)
    world.admit("Print the Python version.", context=SETUP)
    return world


def cancelled(crash: CrashPoints | None) -> World:
    """A command that would run for ever; a person cancels once it runs."""
    world = World(plays([LOOK]), lambda kind, request: RUNNING, crash=crash)
    whenever(world, lambda: bool(world.sandboxes.effects), world.stop)
    world.admit()
    return world


def cancelled_before_work(crash: CrashPoints | None) -> World:
    """Cancelled before anything has begun."""
    world = World(plays([]), crash=crash)
    world.admit()
    world.stop()
    return world


def long_command(crash: CrashPoints | None) -> World:
    """A command that outlasts the worker's patience: the line rests until it is over."""
    world = World(plays([LOOK, ANSWER]), lambda kind, request: RUNNING, crash=crash)
    world.admit()
    started = world.clock.now()

    def finish() -> None:
        for daemon in world.sandboxes.daemons.values():
            daemon.known = {name: exited("done\n") for name in daemon.known}

    whenever(world, lambda: (world.clock.now() - started).total_seconds() > 45, finish)
    return world


def handed_over(crash: CrashPoints | None) -> World:
    """An execution that has gone round as often as one may: the line goes on in its next one."""
    world = World(plays([LOOK, ANSWER]), lambda kind, request: exited("out\n"), crash=crash)
    world.admit()
    world.has_gone_round(MOST_ROUNDS)
    return world


def lost_start(crash: CrashPoints | None) -> World:
    """The first sandbox never comes up; a second one does."""
    world = World(plays([ANSWER]), crash=crash)
    started = world.sandboxes.run

    def run(request: TaskRequest) -> str:
        task = started(request)
        if request.sandbox == "conv-s1":
            world.sandboxes.daemons[task].alive = False
        return task

    world.sandboxes.run = run  # type: ignore[method-assign]
    world.admit()
    return world


def lost_between(crash: CrashPoints | None) -> World:
    """The sandbox dies while no command runs, and so does the next one: calls that come then meet none of them."""
    steps = [LOOK, PAIR, LOOK, PAIR, ANSWER]

    def script(request: ModelRequest, number: int) -> Step:
        doomed = {1: "conv-s1", 2: "conv-s2"}.get(number)
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = daemon.alive and daemon.sandbox != doomed
        return steps[number]

    world = World(script, lambda kind, request: exited("out\n"), crash=crash)
    world.admit(context=SETUP)
    return world


def known_to_be_lost(crash: CrashPoints | None) -> World:
    """The sandbox's end is in the journal before the model has answered."""
    world = World(loses_its_sandbox(lambda: world), lambda kind, request: exited("out\n"), crash=crash)
    world.admit(context=SETUP)
    return world


def lost_before_its_setup(crash: CrashPoints | None) -> World:
    """The first sandbox comes up and is gone before a command is placed in it."""
    world = World(plays([LOOK, ANSWER]), lambda kind, request: exited("out\n"), crash=crash)

    def die() -> None:
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = daemon.alive and not (daemon.up and daemon.sandbox == "conv-s1")

    whenever(world, lambda: True, die)
    world.admit(context=SETUP)
    return world


def loses_its_sandbox(world: Callable[[], World]) -> Callable[[ModelRequest, int], Step]:
    """A model in whose second call the end of the first sandbox is recorded."""
    steps = [LOOK, PAIR, LOOK, ANSWER]

    def script(request: ModelRequest, number: int) -> Step:
        if number == 1:
            end(world(), "conv-s1")
        return steps[number]

    return script


def end(world: World, sandbox: str) -> None:
    """The sandbox dies, and its end is recorded, as on the event of its task's end."""
    for daemon in world.sandboxes.daemons.values():
        if daemon.sandbox == sandbox and daemon.alive:
            daemon.alive = False
            world.outside.sandboxes.gone(sandbox, "killed by the test", world.clock.now())


def busy_provider(crash: CrashPoints | None) -> World:
    """The provider asks for 40 s of patience once, of everybody who has its key."""
    asked: list[ModelRequest] = []

    def script(request: ModelRequest, number: int) -> Step:
        asked.append(request)
        return ModelUnavailable("busy", 40.0, busy=True) if len(asked) == 1 else ANSWER

    world = World(script, crash=crash)
    world.admit()
    return world


def sourced(crash: CrashPoints | None) -> World:
    """A source that is fetched at the second try, whose first unpacking fails, and that a second sandbox gets too."""
    unpacked: list[Command] = []

    def behaviour(kind: str, request: Command) -> dict[str, Any]:
        if kind != "restore":
            return exited("out\n")
        unpacked.append(request)
        return {"state": "failed", "reason": "transfer"} if len(unpacked) == 1 else {"state": "exited"}

    world = World(loses_its_sandbox(lambda: world), behaviour, crash=crash)
    connect(world)
    world.repositories.commits = [SourceUnavailable("busy", 15.0), "a" * 40]
    world.admit(context=replace(SETUP, source=GitSource("acme/site", None, "code")))
    return world


def sourced_from_an_archive(crash: CrashPoints | None) -> World:
    """Its host has another archive later on: the run has the first one, in both of its sandboxes."""
    unpacked = set[str]()

    def behaviour(kind: str, request: Command) -> dict[str, Any]:
        if kind != "restore":
            return exited("out\n")
        unpacked.add(request["sha256"])
        assert len(unpacked) == 1, "a run has one archive"
        return {"state": "exited"}

    world = World(loses_its_sandbox(lambda: world), behaviour, crash=crash)
    # A crash before it is pinned asks twice.
    world.downloads.archives = [b"an archive", b"an archive", b"another"]
    source = ArchiveSource("https://downloads.example.com/a.tgz", None, 1)
    world.admit(context=replace(SETUP, source=source))
    return world


def cancelled_at_its_source(crash: CrashPoints | None) -> World:
    """A person cancels while the source's host does not answer."""
    world = World(plays([]), crash=crash)
    connect(world)
    world.repositories.commits = [SourceUnavailable("busy", 60.0)]
    whenever(world, lambda: bool(world.repositories.asked), world.stop)
    world.admit(context=replace(SETUP, source=GitSource("acme/site", None, "code")))
    return world


def connect(world: World) -> None:
    """The run's project gets a Connection."""
    now = world.clock.now()
    key = ObjectKey(NAMES.org, NAMES.project, "Connection", "code")
    spec = Inline('{"type": "Local", "local": {"repositories": ["acme/site"]}}')
    world.outside.objects.create(versioned(Object(key, "uid-code", 0, 1, spec, now), now), now)


def followed_up(crash: CrashPoints | None) -> World:
    """A message that comes while the first turn works: the run reads it, then finishes."""
    world = World(plays([LOOK, ANSWER]), lambda kind, request: exited("out\n"), crash=crash)
    whenever(world, lambda: bool(world.sandboxes.effects), lambda: say(world, "And now?"))
    world.admit()
    return world


def kept_alive(crash: CrashPoints | None) -> World:
    """A run that waits after its answer, gets a message, waits again, and is cancelled."""
    world = World(plays([LOOK, ANSWER]), lambda kind, request: exited("out\n"), crash=crash)
    whenever(world, lambda: waits(world, turns=1), lambda: say(world, "And now?"))
    whenever(world, lambda: waits(world, turns=2), world.stop)
    world.admit(keep_alive=True, context=SETUP)
    return world


def cancelled_unread(crash: CrashPoints | None) -> World:
    """Cancelled while a command runs and two messages wait."""
    world = World(plays([LOOK]), lambda kind, request: RUNNING, crash=crash)

    def cancel() -> None:
        say(world, "one")
        say(world, "two")
        world.stop()

    whenever(world, lambda: bool(world.sandboxes.effects), cancel)
    world.admit(keep_alive=True)
    return world


def overdue_at_work(crash: CrashPoints | None) -> World:
    """Its deadline comes while a command runs and a message waits."""
    world = World(plays([LOOK]), lambda kind, request: RUNNING, crash=crash)
    whenever(world, lambda: bool(world.sandboxes.effects), lambda: say(world, "one"))
    world.admit(keep_alive=True, lifetime=50)
    return world


def overdue_at_rest(crash: CrashPoints | None) -> World:
    """Its deadline comes while it waits for a message."""
    world = World(plays([ANSWER]), crash=crash)
    world.admit(keep_alive=True, lifetime=200)
    return world


def deleted(crash: CrashPoints | None) -> World:
    """Deleted while a command runs; its texts are in the payload store."""
    world = World(plays([LOOK]), lambda kind, request: RUNNING, crash=crash)

    def delete() -> None:
        world.stop()
        obj = world.outside.object(NAMES)
        if obj is not None and obj.deleted_at is None:
            world.outside.objects.mark_deleted(obj, world.clock.now())

    whenever(world, lambda: bool(world.sandboxes.effects), delete)
    world.admit("x" * 10_000, context=replace(PLAIN, system="y" * 10_000))
    return world


def held(crash: CrashPoints | None) -> World:
    """Three commands whose outcome is not known the first time; nobody says what became of them."""
    lost: list[str] = []

    def behaviour(kind: str, request: Command) -> dict[str, Any]:
        command = str(request.get("command"))
        if command in lost:
            return exited(f"{command}\n")
        lost.append(command)
        return {"state": "lost", "reason": "internal"}

    world = World(plays([TRIPLE, ANSWER]), behaviour, crash=crash)
    world.admit()
    return world


def paid(crash: CrashPoints | None) -> World:
    """Two Budgets pay for the calls, and get back what they do not cost."""
    world = World(plays([LOOK, PAIR, ANSWER]), lambda kind, request: exited("out\n"), crash=crash)
    world.budget("5.00", "wide")
    world.budget("0.05", "narrow")
    world.admit()
    return world


def resolved(crash: CrashPoints | None) -> World:
    """A person says of two such commands that they did not happen, and of one that it did."""
    world = held(crash)
    whenever(world, world.is_parked, lambda: speak(world))
    return world


def speak(world: World) -> None:
    """What the person says in `resolved`."""
    for key, word in WORDS.items():
        world.resolve(key, word, "did b")


def resolved_without_its_sandbox(crash: CrashPoints | None) -> World:
    """The sandbox dies under a command; a person says that it did not happen: the model hears of it."""
    world = World(plays([LOOK, ANSWER]), crash=crash)

    def dies(kind: str, request: Command) -> dict[str, Any]:
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = False
        return exited()

    world.sandboxes._behaviour = dies
    whenever(world, world.is_parked, lambda: world.resolve("r1t0", Statement.DID_NOT_HAPPEN))
    world.admit()
    return world


def setup_resolved(crash: CrashPoints | None) -> World:
    """A setup of unknown outcome; a person says that it did not happen."""
    asked: list[str] = []

    def behaviour(kind: str, request: Command) -> dict[str, Any]:
        asked.append(kind)
        return {"state": "lost", "reason": "internal"} if len(asked) == 1 else exited()

    world = World(plays([ANSWER]), behaviour, crash=crash)
    whenever(world, world.is_parked, lambda: world.resolve("setup", Statement.DID_NOT_HAPPEN))
    world.admit(context=SETUP)
    return world


def cancelled_after_a_word(crash: CrashPoints | None) -> World:
    """A person says what became of a lost command, and cancels before the line has looked."""
    world = World(plays([LOOK]), lambda kind, request: {"state": "lost"}, crash=crash)

    def speak_and_stop() -> None:
        world.resolve("r1t0", Statement.HAPPENED, "3.11.7")
        world.stop()

    whenever(world, world.is_parked, speak_and_stop)
    world.admit()
    return world


def out_of_funds(crash: CrashPoints | None) -> World:
    """A Budget covers the first calls only; it is raised once the run waits for it."""
    dear = replace(LOOK, usage=Usage(1000, 4000))
    world = World(plays([dear, ANSWER]), lambda kind, request: exited("out\n"), crash=crash)
    world.budget("0.0160")
    world.admit()

    whenever(world, lambda: is_blocked(world), lambda: world.budget("5.00"))
    return world


def cancelled_without_funds(crash: CrashPoints | None) -> World:
    """No Budget covers a call; a person cancels the run that waits."""
    world = World(plays([]), crash=crash)
    world.budget("0.000001")
    world.admit()

    whenever(world, lambda: is_blocked(world), world.stop)
    return world


def kept_open(crash: CrashPoints | None) -> World:
    """A run waits with its sandbox open until the Budget does not pay it any more; then it gets a message and money."""
    world = World(plays([ANSWER]), crash=crash)
    world.budget("0.1000")
    whenever(world, lambda: waits(world, turns=1) and alive(world), lambda: world.budget("0.0120"))
    whenever(world, lambda: waits(world, turns=1) and not alive(world), lambda: say(world, "And now?"))
    whenever(world, lambda: is_blocked(world) and not alive(world), lambda: world.budget("5.00"))
    whenever(world, lambda: waits(world, turns=2), world.stop)
    world.admit(keep_alive=True, context=SETUP)
    return world


def stopped_at_work(crash: CrashPoints | None) -> World:
    """The Budget does not pay for its sandbox any more while a command runs in it; then there is money."""
    world = World(plays([LONG, ANSWER]), lambda kind, request: RUNNING, crash=crash)
    world.budget("0.1000")
    whenever(world, lambda: bool(world.sandboxes.effects) and alive(world), lambda: world.budget("0.0001"))
    whenever(world, lambda: is_blocked(world), lambda: world.budget("5.00"))
    world.admit()
    return world


def is_blocked(world: World) -> bool:
    """Whether the run waits for money."""
    obj = world.outside.object(NAMES)
    return obj is not None and obj.status.get("reason") == "BudgetBlocked"


def alive(world: World) -> bool:
    """Whether a sandbox runs."""
    return any(daemon.alive for daemon in world.sandboxes.daemons.values())


SCENARIOS = [
    Scenario(make.__name__, make)
    for make in (
        linear,
        cancelled,
        cancelled_before_work,
        long_command,
        handed_over,
        lost_start,
        lost_between,
        known_to_be_lost,
        lost_before_its_setup,
        busy_provider,
        sourced,
        sourced_from_an_archive,
        cancelled_at_its_source,
        followed_up,
        kept_alive,
        cancelled_unread,
        overdue_at_work,
        overdue_at_rest,
        deleted,
        resolved,
        resolved_without_its_sandbox,
        setup_resolved,
        cancelled_after_a_word,
        paid,
        out_of_funds,
        cancelled_without_funds,
        kept_open,
        stopped_at_work,
    )
]


def waits(world: World, *, turns: int) -> bool:
    """Whether the run has answered so many turns and waits for a message."""
    obj = world.outside.object(NAMES)
    return obj is not None and awaits_message(obj.status) and len(obj.status["turns"]) == turns


def say(world: World, text: str) -> None:
    """Sends a message once, as a person does who may be told that the run has ended."""
    with suppress(Refusal):
        world.say(text, text)


def whenever(world: World, due: Callable[[], bool], act: Callable[[], None]) -> None:
    """Acts from outside each time that somebody waits while `due` holds."""
    wait = world.clock.sleep

    def sleep(seconds: float) -> None:
        wait(seconds)
        if due():
            act()

    world.clock.sleep = sleep  # type: ignore[method-assign]


def outcome(world: World) -> dict[str, Any]:
    """What must be the same, however often workers died, slept or were doubled."""
    obj, runs = world.outside.object(NAMES), runs_of(world)
    log = [entry for run in runs for entry in world.outside.observations(run.uid)]
    tasks = [world.outside.tasks(entry.run, [entry.task])[entry.task] for entry in log]
    status = obj.status if obj else {}
    return {
        "exists": obj is not None,
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "answer": status.get("answer"),
        "undelivered": status.get("undelivered"),
        "turns": [(turn["prompt"], turn["phase"]) for turn in status.get("turns", [])],
        "inputs": [(entry.text, entry.state) for entry in world.outside.inputs_of("conv", after=0, limit=9)],
        "log": [(entry.run, entry.seq, entry.task, entry.state) for entry in log],
        "results": {(task.run, task.key): task.result for task in tasks},
        "open": [run.open for run in runs],
        "effects": sorted((place, _untried(command)) for place, command in world.sandboxes.effects),
        "alive": [daemon.sandbox for daemon in world.sandboxes.daemons.values() if daemon.alive],
        "texts": len(world.payloads.objects) if obj is None else None,
        "left": left(world) if obj is None else None,
    }


def _untried(command: str) -> str:
    """A command's name; that of a copied source without its try, which counts how often it was fetched, too."""
    return command.rpartition(".")[0] if ".source." in command else command


@cache
def _undisturbed(scenario: Scenario) -> dict[str, Any]:
    return outcome(scenario.play())


def left(world: World) -> list[str]:
    """What a deleted run has left behind, but for the change log, which forgets by itself."""
    rows = world.store.rows()  # type: ignore[attr-defined] - the in-memory double shows them
    return sorted(f"{key.pk}/{key.sk}" for key in rows if not key.pk.startswith("chg#"))


def money_adds_up(world: World) -> bool:
    """What a run may still spend and what it has spent are its cap, to the last digit.

    Nothing of any account is held any more, nobody waits for it, and what the run and its sandboxes have cost is
    booked there.
    """
    head, runs = world.outside.conversation("conv"), runs_of(world)
    if head is None or not runs:
        return True
    spent = sum((run.spent for run in runs), ZERO)
    rows = world.store.rows()  # type: ignore[attr-defined] - the in-memory double shows them
    accounts = [
        from_row(Account, row) for key, row in rows.items() if key.pk.startswith("acct#") and key.sk == "head"
    ]
    return runs[-1].available + spent == head.cap and all(
        (account.held, account.models, account.compute) == (0, spent, head.compute)
        and account.available == account.limit - spent - head.compute
        for account in accounts
    )


def runs_of(world: World) -> list[Run]:
    """The runs of the turns so far."""
    found = (world.outside.run(f"conv-{number}") for number in range(1, 10))
    return [run for run in found if run is not None]
