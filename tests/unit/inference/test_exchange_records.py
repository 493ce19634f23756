"""What is stored of a conversation is read back the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.inference import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    UserMessage,
    message_from_record,
)

words = st.text(max_size=20)
calls = st.builds(ToolCall, words, words, words, st.none() | words)
messages = st.one_of(
    st.builds(UserMessage, words),
    st.builds(
        AssistantMessage,
        st.sampled_from(["anthropic", "openai"]),
        words,
        words,
        words,
        words,
        st.lists(calls, max_size=3).map(tuple),
        words,
    ),
    st.builds(
        ToolResults, st.lists(st.builds(ToolResult, words, words, st.booleans()), max_size=3).map(tuple)
    ),
)


@given(messages)
@pytest.mark.req("FLD-02")
def test_a_message_survives_storage(message: Message) -> None:
    assert message_from_record(json.loads(json.dumps(message.to_record()))) == message


def test_usage_survives_storage() -> None:
    usage = Usage(1, 2, 3, 4)
    assert Usage.from_record(json.loads(json.dumps(usage.to_record()))) == usage


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="system"):
        message_from_record({"role": "system", "text": "x"})
