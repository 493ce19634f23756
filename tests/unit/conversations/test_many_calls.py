"""A message with more calls than a row can name: the first become steps, each of the others is answered."""

from dataclasses import replace
from typing import Any

import pytest
from nodus_core.conversations.calls import MOST_CALLS
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.transcript import read_transcript
from nodus_core.inference.exchange import AssistantMessage, ToolResult, ToolResults
from nodus_core.journal.keys import task_key
from nodus_core.kernel.projection import MOST_UNRESOLVED, waiting
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.world import World

MANY = 10_000
LARGEST_ROW = 400 * 1024


def of_many(stop: Any = None) -> World:
    calls = [("run_command", {"command": f"echo {number}"}) for number in range(MANY)]
    reply = says("All at once.", *calls, stop=stop)
    message = reply.message
    ids = tuple(
        replace(call, id=f"call_{number}", name="n" * 64) for number, call in enumerate(message.calls)
    )
    if stop is None:
        ids = tuple(replace(call, name="run_command") for call in ids)
    world = World(plays([replace(reply, message=replace(message, calls=ids)), says("Done.")]))
    world.admit(cap="90.00", context=Context("agent", 1, "", ModelChoice("Nodus"), max_tool_calls=50))
    world.settle()
    return world


def paired(messages: Any) -> list[ToolResult]:
    """The results after the first reply, which must answer each of its calls once and in order."""
    reply = next(message for message in messages if isinstance(message, AssistantMessage))
    told = messages[messages.index(reply) + 1]
    assert isinstance(told, ToolResults)
    assert [result.call_id for result in told.results] == [call.id for call in reply.calls]
    return list(told.results)


@pytest.mark.req("FLD-01", "FLD-05")
@pytest.mark.parametrize("stop", [None, "cut"])
def test_a_message_with_ten_thousand_calls_is_recorded_and_every_call_is_answered(stop: Any) -> None:
    world = of_many(stop)
    obj = world.journal.objects_of("acme", "web", "AgentRun")[0][0]
    assert obj.status["phase"] == "Succeeded"
    assert len(world.sandboxes.effects) == (50 if stop is None else 0)
    results = paired(world.models.requests[1].messages)
    assert len(results) == MANY
    assert all(f"at most {MOST_CALLS} calls" in result.text for result in results[MOST_CALLS:])
    assert all(result.is_error for result in results[MOST_CALLS:])
    (row,) = world.store.get([task_key("conv-1", "r1")])
    assert row is not None
    assert len(row["calls"]) == MOST_CALLS
    assert len(str(row)) < LARGEST_ROW


def test_a_worker_that_reads_the_journal_anew_tells_the_model_the_same() -> None:
    world = of_many()
    head = world.journal.conversation("conv")
    assert head is not None
    scope = next(iter(scope for scope, _ in world.payloads.objects))
    again = read_transcript(world.journal, world.payloads, scope, head, 4096)
    assert paired(again.messages) == paired(world.models.requests[1].messages)


def test_a_status_shows_the_first_unresolved_steps_and_how_many_there_are() -> None:
    steps = [{"step": f"turn-1.tool.run_command.{number}"} for number in range(45)]
    shown = waiting({}, "NeedsResolution", "Look.", steps)
    assert shown["unresolved"] == steps[:MOST_UNRESOLVED]
    assert shown["unresolvedCount"] == 45
    assert "unresolvedCount" not in waiting(shown, "MaxCostReached", "Look.")
    assert "unresolvedCount" not in waiting({}, "NeedsResolution", "Look.", steps[:MOST_UNRESOLVED])
