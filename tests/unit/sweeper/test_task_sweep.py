"""Tasks and sandboxes are held against each other: no task without a sandbox stays, no sandbox without a task rests."""

import logging
from collections.abc import Iterator, Sequence

import pytest
from nodus_core.conversations.task_sweep import Reconciled, TaskSweep
from nodus_core.conversations.worker import Worker
from nodus_core.journal.keys import LIVE_SHARDS, sandbox_key
from nodus_core.journal.ports import FoundTask, TaskRequest
from nodus_core.journal.store import Present, Transaction, Update
from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import Daemon, ScriptedSandboxes, exited
from nodus_core.testing.world import World

pytestmark = pytest.mark.req("FLD-10")

SANDBOX, TASK = "conv-s1", "task/conv-s1"


def resting() -> World:
    """A conversation that waits for a message, in its sandbox."""
    world = World(
        plays([says("look", ("run_command", {"command": "ls"})), says("done"), says("again")]),
        lambda kind, request: exited("a\n"),
    )
    world.admit(keep_alive=True)
    world.settle()
    assert live(world) == [SANDBOX]
    return world


def asking() -> World:
    """A worker has asked for a run's sandbox, whose daemon does not come up, and lets the line rest."""
    world = World(plays([says("done")]))
    world.sandboxes._turn = lambda daemon: None  # type: ignore[method-assign]
    world.admit()
    Worker(world.ports).advance("conv", 1, lambda: 900.0)
    world.executions.waiting.clear()
    return world


def live(world: World) -> list[str]:
    """Sandboxes that the index holds for alive."""
    return [name for shard in LIVE_SHARDS for name in world.outside.live_sandboxes(shard)]


def stray(world: World, arn: str, sandbox: str) -> None:
    """A task that runs, started by hand or by a worker that nobody waits for."""
    world.sandboxes.daemons[arn] = Daemon(sandbox, "no code", f"token of {arn}", "boot")


def change(world: World, **values: object) -> None:
    update = Update(sandbox_key(SANDBOX), Present(), assign=values)
    world.store.commit(Transaction("prepare", (update,)), f"prepare {values}")


def sandbox_of(world: World) -> Sandbox:
    sandbox = world.outside.sandbox(SANDBOX)
    assert sandbox is not None
    return sandbox


def look(world: World, seconds: float = 8.0) -> Reconciled:
    return world.task_sweep.reconcile(lambda: seconds)


def running(world: World) -> list[str]:
    return [arn for arn, daemon in world.sandboxes.daemons.items() if daemon.alive]


# --- tasks without a sandbox ---


@pytest.mark.parametrize("name", ["made-up-s1", "conv-s2", "conv-s99"])
def test_the_task_of_a_sandbox_that_nobody_knows_is_stopped(name: str) -> None:
    world = resting()
    stray(world, "task/stray", name)
    assert look(world) == Reconciled(stopped=1)
    assert running(world) == [TASK]
    assert look(world) == Reconciled()


@pytest.mark.parametrize("state", [SandboxState.GONE, SandboxState.RELEASING])
def test_the_task_of_a_sandbox_that_has_ended_is_stopped(state: SandboxState) -> None:
    world = resting()
    change(world, state=state.value)
    assert look(world) == Reconciled(stopped=1)
    assert running(world) == []


def test_of_two_tasks_of_a_sandbox_the_one_on_record_stays() -> None:
    world = resting()
    stray(world, "task/second", SANDBOX)
    assert look(world) == Reconciled(stopped=1)
    assert running(world) == [TASK]


def test_tasks_of_others_are_left_alone_and_named(caplog: pytest.LogCaptureFixture) -> None:
    world = resting()
    stray(world, "task/theirs", "")
    with caplog.at_level(logging.INFO):
        assert look(world) == Reconciled(foreign=1)
    assert running(world) == [TASK, "task/theirs"]
    assert "left alone: task/theirs (scripted)" in caplog.text


def test_a_task_that_is_only_just_asked_for_is_left_alone() -> None:
    """Its row says that there will be one, and the worker that was answered may have died before it noted which."""
    world = asking()
    change(world, task=None)
    stray(world, "task/second", SANDBOX)
    assert look(world) == Reconciled()
    assert running(world) == [TASK, "task/second"]
    change(world, task=TASK)
    assert look(world) == Reconciled(stopped=1)
    assert running(world) == [TASK]


def test_a_sandbox_that_the_index_does_not_know_keeps_its_task() -> None:
    """The index lags behind, and rows of earlier releases are not in it."""
    world = resting()
    gone = Update(sandbox_key(SANDBOX), Present(), remove=("dueShard", "dueAt"))
    world.store.commit(Transaction("prepare", (gone,)), "prepare")
    assert live(world) == []
    assert look(world) == Reconciled()
    assert running(world) == [TASK]


def test_a_row_that_nobody_can_read_keeps_its_task_and_no_other() -> None:
    world = resting()
    broken = Update(sandbox_key(SANDBOX), Present(), remove=("state",))
    world.store.commit(Transaction("prepare", (broken,)), "prepare")
    stray(world, "task/stray", "made-up-s1")
    assert look(world) == Reconciled(stopped=1, failed=1)
    assert running(world) == [TASK]


def test_one_that_cannot_be_stopped_keeps_no_other_from_it() -> None:
    world = resting()
    for number in range(3):
        stray(world, f"task/stray-{number}", f"made-up-s{number + 1}")
    stop = world.sandboxes.stop

    def refuses(task: str, reason: str) -> None:
        if task == "task/stray-1":
            raise TerminalError("no")
        stop(task, reason)

    world.sandboxes.stop = refuses  # type: ignore[method-assign]
    assert look(world) == Reconciled(stopped=2, failed=1)
    assert running(world) == [TASK, "task/stray-1"]


# --- sandboxes without a task ---


def test_a_resting_line_whose_task_is_gone_is_kicked_and_sees_it() -> None:
    world = resting()
    world.clock.advance(60)
    world.sandboxes.daemons[TASK].alive = False
    assert look(world) == Reconciled(missed=1)
    world.settle()
    sandbox = sandbox_of(world)
    assert (sandbox.state, sandbox.reason) == (SandboxState.GONE, "killed by the test")
    assert (live(world), look(world)) == ([], Reconciled())


def test_a_task_that_the_provider_may_not_know_yet_is_not_missed() -> None:
    world = asking()
    task = world.sandboxes.daemons.pop(TASK)
    assert look(world) == Reconciled()
    world.clock.advance(61)
    world.sandboxes.daemons[TASK] = task
    assert look(world) == Reconciled()


def test_a_task_whose_end_is_under_way_is_waited_for() -> None:
    """It is meant to run no more, and still does: a line that looks now would see nothing."""
    world = resting()
    world.clock.advance(60)
    world.sandboxes.pages = lambda: iter([[]])  # type: ignore[method-assign]
    assert look(world) == Reconciled()


def test_a_daemon_whose_task_was_never_noted_is_missed_when_no_task_has_its_sandbox() -> None:
    world = resting()
    world.clock.advance(60)
    change(world, task=None)
    assert look(world) == Reconciled()
    del world.sandboxes.daemons[TASK]
    assert look(world) == Reconciled(missed=1)
    world.settle()
    assert sandbox_of(world).state is SandboxState.GONE


# --- how it looks ---


class Counting(ScriptedSandboxes):
    """The world's tasks, and what was asked of them."""

    def __init__(self, world: World, *, sick_after: int | None = None) -> None:
        super().__init__(lambda kind, request: exited())
        self.daemons, self.sick_after = world.sandboxes.daemons, sick_after
        self.asked_of: list[str] = []

    def pages(self) -> Iterator[Sequence[str]]:
        for number, page in enumerate(super().pages()):
            if number == self.sick_after:
                raise RetryableError("throttled")
            yield page

    def whose(self, tasks: Sequence[str]) -> list[FoundTask]:
        self.asked_of += tasks
        return super().whose(tasks)


def test_only_tasks_that_no_living_sandbox_names_are_asked_about() -> None:
    world = resting()
    fleet = Counting(world)
    stray(world, "task/stray", "made-up-s1")
    TaskSweep(fleet, world.kicks).reconcile(lambda: 8.0)
    assert fleet.asked_of == ["task/stray"]


@pytest.mark.parametrize("sick_after", [0, 1])
def test_a_list_that_breaks_off_says_nothing_of_who_is_missing(sick_after: int) -> None:
    world = resting()
    world.clock.advance(60)
    for number in range(3):
        stray(world, f"task/stray-{number}", f"made-up-s{number + 1}")
    world.sandboxes.daemons[TASK].alive = False
    swept = TaskSweep(Counting(world, sick_after=sick_after), world.kicks).reconcile(lambda: 8.0)
    assert swept == Reconciled(stopped=2 * sick_after, finished=False)
    assert world.executions.waiting == []


def test_without_time_nothing_is_asked_and_it_is_said() -> None:
    world = resting()
    stray(world, "task/stray", "made-up-s1")
    assert look(world, 0.0) == Reconciled(finished=False)
    assert running(world) == [TASK, "task/stray"]
    assert look(world) == Reconciled(stopped=1)


def test_a_sandbox_is_among_the_living_from_before_its_task_until_it_is_gone() -> None:
    world = World(plays([says("done")]))
    seen: list[list[str]] = []
    run = world.sandboxes.run

    def runs(request: TaskRequest) -> str:
        seen.append(live(world))
        return run(request)

    world.sandboxes.run = runs  # type: ignore[method-assign]
    world.admit()
    world.settle()
    assert (seen, live(world)) == ([[SANDBOX]], [])
