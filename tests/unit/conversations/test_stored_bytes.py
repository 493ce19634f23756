"""What a run leaves in the journal and the payload store: its content once, and little beside it."""

import random
from dataclasses import replace
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.stepping import Stepping
from nodus_core.inference.exchange import ModelRequest, ToolResults
from nodus_core.kernel.states import CommandState
from nodus_core.kernel.text import INLINE_LIMIT, PREVIEW_LIMIT, Inline, Stored
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import Step, plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

from tests.bench.units import size

CONTEXT = Context("agent", 1, "You are careful.", ModelChoice("Nodus"), max_tool_calls=2000)
ALICE = Place(NAMES.org, NAMES.project, "alice")
OUTPUT = 5 * 1024


def rows_of(world: World) -> int:
    """Bytes of all rows, by reading back what the commits have touched."""
    store = world.store
    assert isinstance(store, MemoryStore)
    keys = {operation.key for commit in store.commits for operation in commit.operations}
    return sum(size(store.get([key])[0]) for key in keys)


def outputs(world: World) -> list[str]:
    """What the model was told last."""
    told = [message for message in world.models.requests[-1].messages if isinstance(message, ToolResults)]
    return [result.text for message in told for result in message.results]


@pytest.mark.req("FLD-07")
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("calls", "of_a_message"), [(1000, 40), (60, 1)])
def test_many_results_are_stored_once_and_little_beside_them(calls: int, of_a_message: int) -> None:
    chance = random.Random(7)
    made: list[str] = []

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        made.append("".join(chance.choices("abcdefghij klmno\n", k=OUTPUT)))
        return exited(made[-1])

    def script(request: ModelRequest, number: int) -> Step:
        if number * of_a_message == calls:
            return says("done")
        wanted = [("run_command", {"command": f"produce {number} {index}"}) for index in range(of_a_message)]
        return says(f"round {number}", *wanted)

    world = World(script, behaviour)
    world.admit(context=CONTEXT, cap="1000")
    world.settle()
    assert len(made) == calls
    told = [output if output.endswith("\n") else f"{output}\n" for output in made]
    assert sorted(outputs(world)) == sorted(f"{output}[exit code 0]" for output in told)
    objects = sum(len(text.encode()) for text in world.payloads.objects.values())
    unique = sum(len(output.encode()) for output in made)
    assert len(world.payloads.objects) == calls
    assert objects + rows_of(world) <= 1.5 * unique


@pytest.mark.req("NOD-071", "FLD-06")
def test_a_long_result_is_shown_from_its_beginning_as_a_short_one_is() -> None:
    long = "é" * 1000 + "".join(f"line {number}\n" for number in range(2000))
    world = World(
        plays([says("Look.", ("run_command", {"command": "cat"})), says("done")]), lambda *_: exited(long)
    )
    world.admit(context=CONTEXT)
    world.settle()
    page = Stepping(Shelf(world.outside, world.payloads, world.clock)).page(ALICE, NAMES.name, 100, None)
    step = next(item for item in page.items if item["name"] == "turn-1.tool.run_command.1")
    assert len(step["preview"].encode()) == PREVIEW_LIMIT
    assert long.startswith(step["preview"])
    assert (step["exitCode"], step["rawBytes"]) == (0, len(long.encode()))
    assert outputs(world) == [f"{long}[exit code 0]"]


def test_a_setup_that_fails_with_a_long_output_says_how_it_began() -> None:
    long = "no such package\n" * 2000
    world = World(plays([]), lambda *_: exited(long, code=3))
    world.admit(context=replace(CONTEXT, setup="install"))
    world.settle()
    obj = world.outside.object(NAMES)
    assert obj is not None
    assert obj.status["reason"] == "SetupFailed"
    assert obj.status["message"].startswith("no such package\nno such package\n")


def test_a_result_that_an_earlier_release_has_stored_is_understood() -> None:
    """Its row names the daemon's whole JSON: no other text of it is stored."""
    long = "x" * INLINE_LIMIT * 2
    world = World(
        plays([says("Look.", ("run_command", {"command": "cat"})), says("done")]), lambda *_: exited(long)
    )
    sandboxes = world.sandboxes.link.journal.sandboxes if world.sandboxes.link else None
    assert sandboxes is not None
    finish = sandboxes.finish_command

    def as_before(sandbox: str, command: str, boot: str, result: Any, now: Any, *, told: Any = None) -> None:
        if told is not None:
            whole = f'{{"state": "exited", "exitCode": 0, "output": "{long}"}}'
            assert world.sandboxes.link is not None
            result = world.payloads.put(world.sandboxes.link._scope(row(sandbox)), whole)
        finish(sandbox, command, boot, result, now)

    def row(sandbox: str) -> Any:
        return world.outside.sandbox(sandbox)

    sandboxes.finish_command = as_before  # type: ignore[method-assign]
    world.admit(context=CONTEXT)
    world.settle()
    command = world.outside.command("conv-s1", "conv-1.r1t0")
    assert command is not None
    assert command.state is CommandState.DONE
    assert isinstance(command.result, Stored)
    assert command.told is None
    assert outputs(world) == [f"{long}\n[exit code 0]"]


def test_a_short_result_stands_in_its_row() -> None:
    world = World(
        plays([says("Look.", ("run_command", {"command": "cat"})), says("done")]), lambda *_: exited("ok")
    )
    world.admit(context=CONTEXT)
    world.settle()
    command = world.outside.command("conv-s1", "conv-1.r1t0")
    assert command is not None
    assert isinstance(command.result, Inline)
    assert command.told is None
    assert not world.payloads.objects
