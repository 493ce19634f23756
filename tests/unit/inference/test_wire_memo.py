"""A conversation is encoded anew for every round; what was made of its parts is kept and changes nothing."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from nodus_core.inference import window
from nodus_core.inference.exchange import (
    AssistantMessage,
    Message,
    ModelRequest,
    Record,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
    message_from_record,
)
from nodus_core.inference.target import Target
from nodus_core.inference.wires import encode_request
from nodus_core.inference.wires.memo import Growth, Memo
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


def rounds(number: int, *, is_error: bool = False) -> tuple[Message, ...]:
    found = [message for n in range(number) for message in conversation(f"{n}", is_error=is_error)[1:]]
    return (UserMessage("Work."), *found)


@pytest.mark.parametrize("to", [target("haiku"), target("sonnet"), OPENAI], ids=["native", "family", "wire"])
def test_a_conversation_that_grew_is_written_as_one_that_did_not(to: Target) -> None:
    messages = (*rounds(3), UserMessage("And?"), *conversation("x")[1:], UserMessage("More."))
    for end in range(1, len(messages) + 1):
        if isinstance(messages[end - 1], AssistantMessage):
            continue
        fresh = messages_of(json.loads(json.dumps([message.to_record() for message in messages[:end]])))
        grown = encode_request(ModelRequest(to, "s", messages[:end]))
        assert grown == encode_request(ModelRequest(to, "s", fresh))


def test_one_whose_beginning_was_shortened_or_that_was_taken_back_is_written_anew() -> None:
    whole = rounds(4)
    for messages in (whole, window.shortened(whole, 2), whole[:5], (*whole[:5], UserMessage("Or?")), whole):
        fresh = messages_of([message.to_record() for message in messages])
        sent = encode_request(ModelRequest(target("haiku"), "", messages))
        assert sent == encode_request(ModelRequest(target("haiku"), "", fresh))


def messages_of(records: Sequence[Record]) -> tuple[Message, ...]:
    return tuple(map(message_from_record, records))


def test_only_what_is_new_is_written_each_time() -> None:
    growth: Growth[int] = Growth()
    looked: list[int] = []

    def grow(before: int, added: tuple[Message, ...]) -> int:
        looked.append(len(added))
        return before + len(added)

    messages = rounds(50)
    for end in range(1, len(messages) + 1, 2):
        assert growth.of(messages[:end], None, 0, grow) == end
    assert max(looked) == 2


def test_a_request_is_made_once_and_is_forgotten_with_it() -> None:
    memo: Memo[str] = Memo()
    made: list[str] = []

    def make() -> str:
        made.append("once")
        return "text"

    part = UserMessage("".join(["a", "b"]))
    assert [memo.of(part, make), memo.of(part, make)] == ["text"] * 2
    assert len(made) == 1
    del part
    gc.collect()
    memo.of(UserMessage("ab"), make)
    assert len(made) == 2
