"""Machines that are started before anybody needs them: each becomes one sandbox at most, and none is left over."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from nodus_core.conversations.launching import told
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.reactions import Reactions
from nodus_core.conversations.task_sweep import Reconciled
from nodus_core.conversations.warm_pool import OLDEST, Kept, WarmPool
from nodus_core.conversations.warm_tasks import WarmTasks
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import bound_key, sandbox_key
from nodus_core.journal.ports import TaskRequest
from nodus_core.journal.store import Put, Transaction
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import ConditionFailed, Refusal, RetryableError
from nodus_core.kernel.ids import digest, is_warm_machine
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.sandboxes.warm_machines import WarmMachines
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

from tests.unit.functions.deployed import Bus

SANDBOX = "conv-s1"


def world_with(size: int = 2, *, up: bool = True) -> World:
    """A pool of so many machines; `up`: their daemons ask whose they are."""
    world = World(
        plays([says("look", ("run_command", {"command": "ls"})), says("done")]),
        lambda kind, request: exited("a\n"),
    )
    world.warm = size
    assert keep(world) == Kept(started=size)
    if up:
        world.sandboxes.turn()
        assert all(machine.is_up for machine in world.outside.warm_machines())
    return world


def keep(world: World) -> Kept:
    return world.pool.keep(lambda: 8.0)


def machines(world: World) -> list[str]:
    return sorted(machine.id for machine in world.outside.warm_machines())


def running(world: World) -> list[str]:
    return sorted(arn for arn, daemon in world.sandboxes.daemons.items() if daemon.alive)


def sandbox_of(world: World, name: str = SANDBOX) -> Sandbox:
    sandbox = world.outside.sandbox(name)
    assert sandbox is not None
    return sandbox


def phase(world: World) -> str:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status["phase"]


# --- a sandbox gets one ---


def test_a_run_gets_a_machine_that_waits_and_works_in_it() -> None:
    world = world_with()
    waiting = machines(world)
    world.admit()
    world.settle()
    assert phase(world) == "Succeeded"
    (taken,) = set(waiting) - set(machines(world))
    assert is_warm_machine(taken)
    sandbox = sandbox_of(world)
    assert (sandbox.task, sandbox.state) == (f"task/{taken}", SandboxState.GONE)
    assert [name for name, _ in world.sandboxes.effects] == [SANDBOX]
    assert world.sandboxes.tags[f"task/{taken}"] == {
        "nodus:warm": taken,
        "nodus:run": "conv",
        "nodus:egress": "Deny",
    }
    assert running(world) == [f"task/{name}" for name in machines(world)]


def test_its_time_counts_from_when_it_was_given() -> None:
    world = world_with()
    world.clock.advance(3600)
    asked = world.clock.now()
    world.admit()
    world.settle()
    sandbox = sandbox_of(world)
    assert sandbox.started_at is not None
    assert asked <= sandbox.started_at < asked + timedelta(seconds=5)


@pytest.mark.parametrize(
    "other",
    [
        {"cpu": 2048},
        {"memory": 4096},
        {"egress": "Open"},
        {"egress": "AllowList", "allow": ("example.com",)},
        {"working_dir": "/srv/app"},
        {"pull": f"example.com/python@sha256:{'a' * 64}"},
    ],
)
def test_one_that_is_not_what_was_asked_for_is_left_and_a_fresh_one_started(other: dict[str, Any]) -> None:
    world, machine = world_with(), replace(Machine(), **other)
    requested(world)
    task = take(world, machine)
    assert task == f"task/{SANDBOX}"
    assert len(machines(world)) == 2


def test_without_a_free_one_a_fresh_one_is_started() -> None:
    world = world_with(up=False)
    requested(world)
    assert take(world) == f"task/{SANDBOX}"


def test_a_pool_that_cannot_be_read_stops_nobody() -> None:
    world = world_with()
    broken = Put({"pk": "warm", "sk": "warm-0", "v": 1})
    world.store.commit(Transaction("prepare", (broken,)), "prepare")
    requested(world)
    assert take(world) == f"task/{SANDBOX}"
    assert keep(world) == Kept(failed=1)


def requested(world: World, name: str = SANDBOX, code: str = "code") -> None:
    """A worker has asked for a sandbox, issued this code, and is about to have its task started."""
    now = world.clock.now()
    row = Sandbox(name, "conv", SandboxState.REQUESTED, digest(code), now, "nodus/agent-tools")
    world.store.commit(
        Transaction("request", (Put(stored(sandbox_key(name), row)),)), f"request {name} {code}"
    )


def take(world: World, machine: Machine | None = None, name: str = SANDBOX, code: str = "code") -> str:
    """What the worker that has issued `code` gets for the sandbox."""
    tasks, wanted = WarmTasks(world.sandboxes, world.journal, world.clock), machine or Machine()
    return tasks.run(asked(wanted, name, code))


def asked(machine: Machine, name: str, code: str = "code") -> TaskRequest:
    variables = {**told(machine, {}), "NODUS_SANDBOX_ID": name, "NODUS_ENROL_CODE": code}
    return TaskRequest(name, variables, cpu=machine.cpu, memory=machine.memory, image=machine.pull)


# --- two want the same, and late workers ---


def test_two_sandboxes_never_get_the_same_machine() -> None:
    world = world_with()
    names = ["conv-s1", "conv-s2", "conv-s3"]
    for name in names:
        requested(world, name)
    tasks = [take(world, name=name) for name in names]
    assert len(set(tasks)) == 3
    assert tasks[2] == "task/conv-s3"
    assert [sandbox_of(world, name).task for name in names] == [*tasks[:2], None]


class Behind(WarmTasks):
    """A worker that saw the pool before somebody else took the first machine."""

    def run(self, request: TaskRequest) -> str:
        seen = self.journal.warm_machines()
        self.journal.warm_machines = lambda: seen  # type: ignore[method-assign]
        self.meanwhile()
        return super().run(request)

    def meanwhile(self) -> None: ...


def test_of_two_workers_that_want_the_same_machine_one_gets_the_next() -> None:
    world = world_with()
    requested(world, "conv-s1")
    requested(world, "conv-s2")
    late = Behind(world.sandboxes, Journal(world.store, world.ids), world.clock)
    first: list[str] = []
    object.__setattr__(late, "meanwhile", lambda: first.append(take(world, name="conv-s1")))
    second = late.run(asked(Machine(), "conv-s2"))
    assert first != [second]
    assert machines(world) == []
    assert (sandbox_of(world, "conv-s1").task, sandbox_of(world, "conv-s2").task) == (first[0], second)


def test_a_worker_whose_code_was_replaced_gets_none() -> None:
    """Another worker has the line: the code that it has issued since is the one that counts."""
    world = world_with()
    requested(world, code="newer")
    with pytest.raises(ConditionFailed):
        take(world, code="older")
    assert len(machines(world)) == 2
    assert sandbox_of(world).task is None


def test_a_sandbox_that_has_a_task_gets_no_machine() -> None:
    world = world_with()
    requested(world)
    first = take(world)
    with pytest.raises(ConditionFailed):
        take(world)
    assert sandbox_of(world).task == first
    assert len(machines(world)) == 1


def test_tags_that_cannot_be_set_stop_nothing() -> None:
    world = world_with()
    requested(world)

    def refuses(task: str, tags: Mapping[str, str]) -> None:
        raise RetryableError("throttled")

    world.sandboxes.tag = refuses  # type: ignore[method-assign]
    assert take(world) == sandbox_of(world).task


# --- a machine that dies ---


def test_one_that_dies_between_binding_and_hello_is_replaced() -> None:
    world = world_with(1)
    (name,) = machines(world)
    requested_once: list[str] = []
    turn = world.sandboxes.turn

    def dies() -> None:
        """Whoever waits for it lets the sandboxes work: this one is dead by then."""
        if not requested_once and world.outside.bound_machine(name) is not None:
            requested_once.append(name)
            world.sandboxes.daemons[f"task/{name}"].alive = False
        turn()

    world.sandboxes.turn = dies  # type: ignore[method-assign]
    world.clock._whenever = dies
    world.admit()
    world.settle()
    assert requested_once == [name]
    assert phase(world) == "Succeeded"
    assert sandbox_of(world).reason == "killed by the test"
    assert sandbox_of(world, "conv-s2").state is SandboxState.GONE
    assert [sandbox for sandbox, _ in world.sandboxes.effects] == ["conv-s2"]


def test_the_event_of_its_end_ends_the_sandbox_that_it_has_become() -> None:
    world = world_with(1)
    (name,) = machines(world)
    requested(world)
    task = take(world)
    Reactions(world.kicks, Bus()).task_stopped(name, task, "OutOfMemory")
    assert (sandbox_of(world).state, sandbox_of(world).reason) == (SandboxState.GONE, "OutOfMemory")


def test_nobody_gets_one_whose_end_was_told_of() -> None:
    world = world_with(1)
    (name,) = machines(world)
    Reactions(world.kicks, Bus()).task_stopped(name, f"task/{name}", "OutOfMemory")
    assert machines(world) == []
    Reactions(world.kicks, Bus()).task_stopped(name, f"task/{name}", "OutOfMemory")


# --- the pool is kept ---


def test_it_is_filled_up_and_kept_as_it_is() -> None:
    world = world_with(3)
    assert keep(world) == Kept()
    requested(world)
    take(world)
    assert keep(world) == Kept(started=1)
    assert len(machines(world)) == 3


def test_dead_ones_are_replaced() -> None:
    world = world_with()
    first, second = machines(world)
    world.sandboxes.daemons[f"task/{first}"].alive = False
    assert keep(world) == Kept(started=1, ended=1)
    assert second in machines(world)
    assert first not in machines(world)


@pytest.mark.parametrize("size", [0, 1])
def test_surplus_ones_are_stopped_when_fewer_are_wanted(size: int) -> None:
    world = world_with(3)
    world.warm = size
    assert keep(world) == Kept(ended=3 - size)
    assert running(world) == [f"task/{name}" for name in machines(world)]
    assert len(machines(world)) == size
    assert keep(world) == Kept()


def test_old_ones_and_those_that_are_made_otherwise_are_replaced() -> None:
    world = world_with(1)
    (first,) = machines(world)
    other = WarmPool(
        world.journal,
        world.sandboxes,
        world.sandboxes,
        world.clock,
        world.ids,
        1,
        lambda: Machine(pull="x@y"),
    )
    assert other.keep(lambda: 8.0) == Kept(started=1, ended=1)
    (second,) = machines(world)
    world.clock.advance(OLDEST.total_seconds())
    assert other.keep(lambda: 8.0) == Kept(started=1, ended=1)
    (third,) = machines(world)
    assert len({first, second, third}) == 3
    assert running(world) == [f"task/{third}"]


def test_one_whose_daemon_does_not_come_up_is_replaced_in_the_end() -> None:
    world = world_with(1, up=False)
    (first,) = machines(world)
    world.clock.advance(299)
    assert keep(world) == Kept()
    world.clock.advance(1)
    assert keep(world) == Kept(started=1, ended=1)
    assert first not in machines(world)


def test_without_room_the_next_look_tries_no_sooner_than_a_minute_later() -> None:
    world, run = world_with(0), None
    world.warm, run = 1, world.sandboxes.run

    def refuses(request: TaskRequest) -> str:
        raise RetryableError("RESOURCE:CPU")

    world.sandboxes.run = refuses  # type: ignore[method-assign]
    assert keep(world) == Kept(failed=1)
    assert keep(world) == Kept()
    world.clock.advance(60)
    world.sandboxes.run = run  # type: ignore[method-assign]
    assert keep(world) == Kept(started=1, ended=1)


def test_one_that_becomes_somebodys_just_now_is_not_stopped() -> None:
    world = world_with(1)
    (machine,) = world.outside.warm_machines()
    requested(world)
    task = take(world)
    assert world.pool._end(machine, "there are more than are wanted")
    assert running(world) == [task]


# --- they are no orphans ---


@pytest.mark.req("FLD-10")
def test_a_machine_that_waits_is_no_orphan_and_one_without_a_row_is() -> None:
    world = world_with(1)
    (name,) = machines(world)
    assert world.task_sweep.reconcile(lambda: 8.0) == Reconciled()
    world.journal.warm.drop(name)
    assert world.task_sweep.reconcile(lambda: 8.0) == Reconciled(stopped=1)
    assert running(world) == []


@pytest.mark.req("FLD-10")
def test_one_that_was_given_away_follows_its_sandbox() -> None:
    world = world_with(1)
    requested(world)
    take(world)
    assert world.task_sweep.reconcile(lambda: 8.0) == Reconciled()
    world.outside.sandboxes.gone(SANDBOX, "over", world.clock.now())
    assert world.task_sweep.reconcile(lambda: 8.0) == Reconciled(stopped=1)


# --- what its daemon asks ---


def test_only_its_own_daemon_is_told_whose_it_is() -> None:
    world = world_with(1)
    (name,) = machines(world)
    daemon, asked = world.sandboxes.daemons[f"task/{name}"], WarmMachines(world.outside)
    own = digest(f"own-{daemon.code}")
    for token, code in (("another", daemon.code), ("another", "wrong")):
        with pytest.raises(Refusal) as refused:
            asked.whose(name, digest(token), code, own)
        assert refused.value.reason == "Unauthorized"
    requested(world)
    take(world)
    with pytest.raises(Refusal) as refused:
        asked.whose(name, digest("another"), daemon.code, own)
    assert refused.value.reason == "Unauthorized"
    assert asked.whose(name, digest(daemon.token), daemon.code, own) == SANDBOX
    assert asked.whose(name, digest(daemon.token), daemon.code, own) == SANDBOX


def test_a_stranger_with_the_wrong_code_never_comes_up() -> None:
    world = world_with(1, up=False)
    (name,) = machines(world)
    with pytest.raises(Refusal) as refused:
        WarmMachines(world.outside).whose(name, digest("token"), "guessed", digest("own"))
    assert refused.value.reason == "Unauthorized"
    assert not any(machine.is_up for machine in world.outside.warm_machines())


def test_a_machine_that_nobody_knows_hears_that_it_is_not_wanted() -> None:
    with pytest.raises(Refusal) as refused:
        WarmMachines(world_with(0).outside).whose("warm-9", digest("t"), "c", digest("o"))
    assert refused.value.reason == "Gone"


def test_no_code_stands_in_any_row() -> None:
    world = world_with(1)
    (name,) = machines(world)
    code = world.sandboxes.daemons[f"task/{name}"].code
    world.admit()
    world.settle()
    assert isinstance(world.store, MemoryStore)
    assert bound_key(name) in world.store.rows()
    assert code not in repr([world.store.get([key]) for key in world.store.rows()])
