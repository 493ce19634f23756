"""Sandboxes that are lost while none of their commands runs: the run goes on in another, and the model is told."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.stepping import Stepping
from nodus_core.conversations.transcript import REPLACED
from nodus_core.inference.exchange import ModelReply, ModelRequest, ToolResults, UserMessage
from nodus_core.journal.keys import conversation_key, input_key
from nodus_core.journal.store import Present, Put, Transaction, Update
from nodus_core.journal.writer import stored
from nodus_core.kernel.decide import MOST_SANDBOXES
from nodus_core.kernel.states import InputState, TaskState
from nodus_core.testing.scripted_model import Step, plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited
from nodus_core.testing.world import NAMES, World

SETUP = Context("agent", 1, "You are careful.", ModelChoice("Nodus"), setup="printf ready > ready.txt")
PLAIN = replace(SETUP, setup=None)
LOOK = says("look", ("run_command", {"command": "ls"}))
PAIR = says("two", ("run_command", {"command": "a"}), ("run_command", {"command": "b"}))


class Frail(World):
    """A world whose sandboxes die while the model thinks about the given rounds (from 0) of the first turn."""

    def __init__(self, steps: Sequence[ModelReply], dying: Sequence[int]) -> None:
        super().__init__(self._play, lambda kind, request: exited("out\n"))
        self._steps = steps
        self._dying = list(dying)

    def _play(self, request: ModelRequest, number: int) -> Step:
        if number in self._dying:
            self._dying.remove(number)
            self.kill()
        return self._steps[number]

    def kill(self) -> None:
        for daemon in self.sandboxes.daemons.values():
            daemon.alive = False


def status(world: World) -> dict[str, Any]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


def steps(world: World) -> list[dict[str, Any]]:
    shelf = Shelf(world.outside, world.payloads, world.clock)
    page = Stepping(shelf).page(Place(NAMES.org, NAMES.project, "alice"), NAMES.name, 100, None)
    return list(page.items)


@pytest.mark.req("NOD-085", "NOD-158", "NOD-162")
def test_the_run_goes_on_in_a_second_sandbox_after_its_own_setup() -> None:
    world = Frail([LOOK, PAIR, LOOK, says("done")], dying=[1])
    world.admit(context=SETUP)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    shown = steps(world)
    assert [(step["name"], step["state"]) for step in shown] == [
        ("sandbox", "Completed"),
        ("setup", "Completed"),
        ("turn-1.route", "Completed"),
        ("turn-1.model.1", "Completed"),
        ("turn-1.tool.run_command.1", "Completed"),
        ("turn-1.model.2", "Completed"),
        ("turn-1.tool.run_command.2", "Failed"),
        ("turn-1.tool.run_command.3", "Failed"),
        ("sandbox.2", "Completed"),
        ("setup.2", "Completed"),
        ("turn-1.model.3", "Completed"),
        ("turn-1.tool.run_command.4", "Completed"),
        ("turn-1.model.4", "Completed"),
    ]
    assert [step["kind"] for step in shown if step["name"].startswith(("sandbox", "setup"))] == [
        *("sandbox", "setup"),
        *("sandbox", "setup"),
    ]
    # What was written for the first sandbox met neither of them.
    assert world.sandboxes.effects == [
        ("conv-s1", "conv-1.setup"),
        ("conv-s1", "conv-1.r1t0"),
        ("conv-s2", "conv-1.setup2"),
        ("conv-s2", "conv-1.r3t0"),
    ]


@pytest.mark.req("NOD-085")
def test_the_model_is_told_which_calls_were_not_run_and_that_files_are_gone() -> None:
    world = Frail([PAIR, says("done")], dying=[0])
    world.admit(context=PLAIN)
    world.settle()
    told = world.models.requests[-1].messages[-1]
    assert isinstance(told, ToolResults)
    assert [result.is_error for result in told.results] == [True, True]
    for result in told.results:
        assert "was not run" in result.text
        assert "A new sandbox takes its place" in result.text
    assert {step.get("error") for step in steps(world) if step["kind"] == "tool"} == {"SandboxGone"}


@pytest.mark.req("NOD-085")
def test_a_sandbox_that_is_lost_before_the_answer_is_not_replaced() -> None:
    world = Frail([LOOK, says("done")], dying=[1])
    world.admit(context=PLAIN)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert [step["name"] for step in steps(world) if step["kind"] == "sandbox"] == ["sandbox"]


@pytest.mark.req("NOD-085", "FLD-10")
def test_a_turn_whose_sandboxes_keep_dying_gives_up() -> None:
    world = Frail([LOOK] * (MOST_SANDBOXES + 1), dying=range(MOST_SANDBOXES + 1))
    world.admit(context=PLAIN)
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Failed", "SandboxLost")
    assert "lost 4 sandboxes" in shown["message"]
    names = [step["name"] for step in steps(world) if step["kind"] == "sandbox"]
    assert names == ["sandbox", *(f"sandbox.{number}" for number in range(2, MOST_SANDBOXES + 1))]
    assert world.sandboxes.effects == []


@pytest.mark.req("NOD-090", "NOD-091", "NOD-044")
def test_a_parked_run_shows_that_its_sandbox_is_gone_and_can_be_cancelled() -> None:
    world = World(plays([LOOK]), lambda kind, request: RUNNING)
    world.admit(context=PLAIN)
    waiting = world.clock.sleep

    def sleep(seconds: float) -> None:
        waiting(seconds)
        if world.sandboxes.effects:
            for daemon in world.sandboxes.daemons.values():
                daemon.alive = False

    world.clock.sleep = sleep  # type: ignore[method-assign]
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Waiting", "NeedsResolution")
    assert shown["sandbox"]["phase"] == "Deleted"
    world.stop()
    world.settle()
    assert (status(world)["phase"], status(world)["sandbox"]["phase"]) == ("Cancelled", "Deleted")
    head = world.outside.conversation("conv")
    assert head is not None
    assert (head.sandbox, head.closed) == (None, True)


@pytest.mark.req("NOD-158", "NOD-165")
def test_a_later_turn_that_finds_no_sandbox_sets_one_up_and_tells_the_model_before_the_prompt() -> None:
    world = World(plays([LOOK, says("done")]), lambda kind, request: exited("out\n"))
    world.admit("First.", context=SETUP)
    keep = Update(conversation_key("conv"), Present(), assign={"keep_alive": True})
    world.store.commit(Transaction("keep", (keep,)), "keep")
    world.settle()
    assert status(world)["reason"] == "MessageWait"
    world.outside.sandboxes.gone("conv-s1", "idle", world.clock.now())
    say(world)
    world.settle()
    assert [step["name"] for step in steps(world) if step["kind"] in ("sandbox", "setup")] == [
        *("sandbox", "setup"),
        *("sandbox.2", "setup.2"),
    ]
    later = world.models.requests[-2].messages
    assert [message.text for message in later if isinstance(message, UserMessage)] == [
        *("First.", REPLACED, "First."),
    ]
    assert world.models.routings[-1].messages[-1] == world.models.routings[0].messages[-1]
    shown = status(world)
    assert (shown["sandbox"]["name"], shown["sandbox"]["phase"]) == ("conv-s2", "Running")


def say(world: World) -> None:
    """The first message comes in once more."""
    first = world.outside.input("conv", 1)
    assert first is not None
    entry = replace(first, seq=2, state=InputState.QUEUED)
    operations = (
        Update(conversation_key("conv"), Present(), assign={"accepted": 2}, add={"bell": 1}),
        Put(stored(input_key("conv", 2), entry)),
    )
    world.store.commit(Transaction("say", operations), "say")
    world.kicks.kick("conv")


@pytest.mark.req("NOD-087", "NOD-164")
def test_a_setup_that_certainly_never_began_is_run_in_the_next_sandbox() -> None:
    world = World(plays([says("done")]), lambda kind, request: exited("out\n"))
    world.admit(context=SETUP)
    sleep = world.clock.sleep

    def die(seconds: float) -> None:
        sleep(seconds)
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = daemon.alive and not (daemon.up and daemon.sandbox == "conv-s1")

    world.clock.sleep = die  # type: ignore[method-assign]
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert [(entry.task, entry.state) for entry in world.outside.observations("conv-1")] == [
        ("sandbox", TaskState.COMPLETED),
        ("setup", TaskState.FAILED),
        ("sandbox2", TaskState.COMPLETED),
        ("setup2", TaskState.COMPLETED),
        ("route", TaskState.COMPLETED),
        ("r1", TaskState.COMPLETED),
    ]
    assert world.sandboxes.effects == [("conv-s2", "conv-1.setup2")]
