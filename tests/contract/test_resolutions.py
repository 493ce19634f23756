"""A person's word on a lost step, in every store: kept once, carried out once, whoever else speaks meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from nodus_core.journal.store import Store
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.states import Statement, TaskState
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

PAIR = says("both", ("run_command", {"command": "a"}), ("run_command", {"command": "b"}))
HELD = ["r1t0", "r1t1"]


@pytest.fixture(params=["memory", "ministack"])
def backend(request: pytest.FixtureRequest) -> str:
    """Answers that get lost are for the suites of the store itself."""
    return str(request.param)


@pytest.fixture
def parked(store: Store) -> World:
    """A run that waits for a person to say what became of two commands."""
    lost: set[str] = set()

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        command = str(request["command"])
        if command in lost:
            return exited(f"{command}\n")
        lost.add(command)
        return {"state": "lost", "reason": "internal"}

    world = World(plays([PAIR, says("done")]), behaviour, store=store)
    world.admit()
    world.settle()
    assert world.is_parked()
    return world


@pytest.mark.req("NODQ-55", "INV-10", "INV-42", "INV-44")
def test_a_word_is_kept_with_who_and_when_and_carried_out_once(parked: World) -> None:
    assert parked.resolve("r1t0", Statement.DID_NOT_HAPPEN)
    assert parked.is_parked()
    assert parked.resolve("r1t1", Statement.HAPPENED, "did b")
    parked.settle()
    obj, run = parked.outside.object(NAMES), parked.outside.run("conv-1")
    assert obj is not None
    assert run is not None
    assert (obj.status["phase"], "unresolved" in obj.status) == ("Succeeded", False)
    assert (run.open, run.attention) == (frozenset(), ())
    tasks = parked.outside.tasks("conv-1", HELD)
    assert [(tasks[key].state, tasks[key].attempt) for key in HELD] == [
        (TaskState.COMPLETED, 2),
        (TaskState.COMPLETED, 1),
    ]
    assert [said.by for key in HELD for said in tasks[key].resolutions] == ["alice", "alice"]
    assert sorted(command for _, command in parked.sandboxes.effects) == [
        "conv-1.r1t0",
        "conv-1.r1t0.2",
        "conv-1.r1t1",
    ]
    log = parked.outside.observations("conv-1")
    assert [entry.seq for entry in log] == list(range(1, len(log) + 1))
    assert len({entry.task for entry in log}) == len(log)


@pytest.mark.req("NODQ-55", "INV-09")
def test_of_many_who_speak_at_once_one_is_heard(parked: World) -> None:
    words = [Statement.HAPPENED, Statement.DID_NOT_HAPPEN] * 4

    def speak(number: int) -> str:
        """What came of it; who asks too late is asked about nothing any more."""
        try:
            spoken = parked.resolve("r1t0", words[number], "did a", key=f"person-{number}")
        except Refusal as refused:
            return refused.reason
        return "heard" if spoken else "Conflict"

    with ThreadPoolExecutor(len(words)) as people:
        heard = list(people.map(speak, range(len(words))))
    task = parked.outside.tasks("conv-1", ["r1t0"])["r1t0"]
    assert sorted(heard) == ["Conflict"] * (len(words) - 1) + ["heard"]
    assert [said.statement for said in task.resolutions] == [words[heard.index("heard")]]


@pytest.mark.req("NODQ-55", "NOD-045", "INV-09")
def test_a_cancel_and_a_word_at_once_never_both_win(parked: World) -> None:
    parked.stop()
    with pytest.raises(Refusal, match="Cancelled"):
        parked.resolve("r1t0", Statement.DID_NOT_HAPPEN)
    parked.settle()
    tasks = parked.outside.tasks("conv-1", HELD)
    assert [tasks[key].state for key in HELD] == [TaskState.UNCERTAIN] * 2
    assert len(parked.sandboxes.effects) == 2
