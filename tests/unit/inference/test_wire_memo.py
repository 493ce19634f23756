"""A conversation is encoded anew for every round; what was made of its parts is kept and changes nothing."""

from __future__ import annotations

import gc
import json
from dataclasses import replace

import pytest
from nodus_core.inference.exchange import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
)
from nodus_core.inference.target import Target
from nodus_core.inference.wires import encode_request
from nodus_core.inference.wires.memo import Memo
from nodus_core.testing.scripted_model import target

OPENAI = replace(target("haiku"), wire="openai", endpoint="openai", family="gpt")


def conversation(tag: str, *, is_error: bool = False) -> tuple[Message, ...]:
    raw = json.dumps([{"type": "tool_use", "id": f"call_{tag}", "name": "run_command", "input": {}}])
    call = ToolCall(f"call_{tag}", "run_command", "{}")
    reply = AssistantMessage("anthropic", "claude", "haiku", raw, "", (call,), "anthropic")
    return UserMessage("Work."), reply, ToolResults((ToolResult(call.id, tag, is_error=is_error),))


@pytest.mark.parametrize("to", [target("haiku"), target("sonnet"), OPENAI], ids=["native", "family", "wire"])
def test_the_same_conversation_gives_the_same_bytes_whoever_was_asked_before(to: Target) -> None:
    """Each target gets its own form of a message, also after another has got its own."""
    alone = encode_request(ModelRequest(to, "s", conversation("a")))
    messages = conversation("a")
    for other in (target("haiku"), target("sonnet"), OPENAI):
        encode_request(ModelRequest(other, "s", messages))
    assert encode_request(ModelRequest(to, "s", messages)) == alone


@pytest.mark.parametrize("to", [target("haiku"), OPENAI], ids=["anthropic", "openai"])
def test_results_that_differ_in_their_mark_only_are_told_apart(to: Target) -> None:
    good = encode_request(ModelRequest(to, "s", conversation("a")))
    bad = encode_request(ModelRequest(to, "s", conversation("a", is_error=True)))
    assert good != bad
    assert encode_request(ModelRequest(to, "s", conversation("a"))) == good


def test_nothing_is_made_twice_and_nothing_outlives_its_part() -> None:
    memo: Memo[str] = Memo()
    made: list[str] = []

    def make() -> str:
        made.append("once")
        return "text"

    part = ToolResult("call", "".join(["a", "b"]))
    assert [memo.of(part, 1, make), memo.of(part, 1, make), memo.of(part, 2, make)] == ["text"] * 3
    assert len(made) == 2
    del part
    gc.collect()
    memo.of(ToolResult("call", "ab"), 1, make)
    assert len(made) == 3
