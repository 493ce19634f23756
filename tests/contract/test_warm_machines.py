"""Machines of the pool on every store: many workers at once, and answers that are lost, give each to one sandbox."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import cast

import pytest
from nodus_core.conversations.launching import told
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.warm_tasks import WarmTasks, kind_of
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import LIVE_SHARDS, sandbox_key
from nodus_core.journal.owning import live
from nodus_core.journal.ports import Ids, TaskRequest
from nodus_core.journal.store import Absent, Put, Store
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.ids import digest
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.warm import WarmMachine
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.scripted_sandbox import ScriptedSandboxes, exited

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MACHINES, SANDBOXES = 3, 6
DEFAULT = Machine()


def asked(sandbox: str, code: str = "code") -> TaskRequest:
    variables = {**told(DEFAULT, {}), "NODUS_SANDBOX_ID": sandbox, "NODUS_ENROL_CODE": code}
    return TaskRequest(sandbox, variables, cpu=DEFAULT.cpu, memory=DEFAULT.memory)


KIND = kind_of(asked("any"))


class SharedIds:
    """Ids for several threads."""

    def __init__(self) -> None:
        self._ids, self._lock = CountingIds(), threading.Lock()

    def fresh(self, prefix: str) -> str:
        with self._lock:
            return self._ids.fresh(prefix)


@pytest.fixture
def journal(store: Store) -> Journal:
    made = Journal(store, cast("Ids", SharedIds()))
    for number in range(MACHINES):
        name = f"warm-{number}"
        made.warm.place(WarmMachine(name, KIND, digest(name), NOW))
        made.warm.note_task(name, f"task/{name}")
        made.warm.come_up(name, digest(name), digest(f"token {name}"), digest(f"own {name}"))
    for number in range(SANDBOXES):
        row = Sandbox(f"c-s{number}", "c", SandboxState.REQUESTED, digest("code"), NOW, "image")
        made.writer.commit("ask", Put(stored(sandbox_key(row.id), row, **live(row)), when=Absent()))
    return made


def take(journal: Journal, sandbox: str) -> str | None:
    """The task that a worker gets for a sandbox; None: another worker was there before."""
    cold = ScriptedSandboxes(lambda kind, request: exited())
    tasks = WarmTasks(cold, journal, FakeClock())
    cold.tags = {f"task/warm-{number}": {} for number in range(MACHINES)}
    try:
        return tasks.run(asked(sandbox))
    except ConditionFailed:
        return None


def test_many_workers_at_once_share_the_machines_and_none_gets_another_ones(journal: Journal) -> None:
    names = [f"c-s{number}" for number in range(SANDBOXES)] * 2  # two workers for each sandbox
    gate = threading.Barrier(len(names))

    def work(name: str) -> str | None:
        gate.wait()
        return take(journal, name)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(work, names))
    sandboxes = journal.sandboxes_at(sorted(set(names)))
    given = {each.task: each for each in sandboxes.values() if each.task}
    assert sorted(given) == [f"task/warm-{number}" for number in range(MACHINES)]
    assert journal.warm_machines() == []
    for task, sandbox in given.items():
        machine = task.removeprefix("task/")
        bound = journal.bound_machine(machine)
        assert bound is not None
        assert (bound.sandbox, bound.token_hash) == (sandbox.id, digest(f"token {machine}"))
        assert sandbox.enrol_hash == digest(f"own {machine}")
    assert {each.enrol_hash for each in sandboxes.values() if not each.task} == {digest("code")}


def test_a_machine_is_dropped_or_becomes_somebodys_and_never_both(journal: Journal) -> None:
    journal.warm.drop("warm-0")
    assert take(journal, "c-s0") == "task/warm-1"
    for machine in ("warm-0", "warm-1"):
        with pytest.raises(ConditionFailed):
            journal.warm.drop(machine)
        with pytest.raises(ConditionFailed):
            journal.warm.note_task(machine, f"task/{machine}")
        with pytest.raises(ConditionFailed):
            journal.warm.come_up(machine, digest(machine), digest("t"), digest("o"))


@pytest.mark.req("FLD-10")
def test_sandboxes_are_among_the_living_until_they_are_gone(journal: Journal) -> None:
    def living() -> list[str]:
        return sorted(name for shard in LIVE_SHARDS for name in journal.live_sandboxes(shard))

    everyone = [f"c-s{number}" for number in range(SANDBOXES)]
    assert living() == everyone
    take(journal, "c-s0")
    journal.sandboxes.gone("c-s1", "over", NOW)
    assert living() == [name for name in everyone if name != "c-s1"]
    assert sorted(journal.sandboxes_at([*everyone, "c-s99"])) == everyone
