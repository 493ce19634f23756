"""What a daemon says of a command is the agent's word: whatever it is, the step gets a result that can be stored."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.journal.codec import to_row
from nodus_core.journal.values import canonical
from nodus_core.kernel.states import FINAL_TASKS, TaskState
from nodus_core.kernel.tasks import Result
from nodus_core.kernel.text import Inline
from nodus_core.sandboxes.outcome import MOST_NUMBER, MOST_TEXT_BYTES, Outcome, outcome

KINDS = ["exec", "read_file", "write_file", "mkdir", "of a later release"]


def told(kind: str = "exec", **values: Any) -> Outcome:
    return outcome(kind, json.dumps({"state": "exited", **values}))


@pytest.mark.req("NOD-071")
@pytest.mark.parametrize(
    ("values", "text", "state", "error"),
    [
        ({"exitCode": 0, "output": "hi\n"}, "hi\n[exit code 0]", "completed", None),
        ({"exitCode": 0, "output": "hi"}, "hi\n[exit code 0]", "completed", None),
        ({"exitCode": 0, "output": ""}, "[exit code 0]", "completed", None),
        ({"exitCode": 3, "output": "no\n"}, "no\n[exit code 3]", "completed", None),
        (
            {"exitCode": 143, "output": "", "reason": "timeout"},
            "[ended after its time-out; exit code 143]",
            "timed_out",
            "TimedOut",
        ),
        (
            {"exitCode": 143, "output": "", "reason": "killed"},
            "[ended on request; exit code 143]",
            "completed",
            "Cancelled",
        ),
        (
            {"exitCode": 137, "output": "", "reason": "oom"},
            "[ended: it used more memory than the sandbox has; exit code 137]",
            "completed",
            "OutOfMemory",
        ),
    ],
)
def test_a_command_that_ran_tells_its_end(
    values: dict[str, Any], text: str, state: str, error: str | None
) -> None:
    result = told(**values)
    assert (result.text, result.state, result.error) == (text, TaskState(state), error)
    assert result.is_error is (values["exitCode"] != 0)
    assert result.exit_code == values["exitCode"]


@pytest.mark.req("NOD-071", "FLD-09")
@pytest.mark.parametrize(
    ("values", "text", "error"),
    [
        ({"signal": "SIGTERM", "output": "half"}, "half\n[ended by SIGTERM]", "Killed"),
        ({"output": ""}, "[ended by a signal]", "Killed"),
        ({"signal": "SIGKILL", "reason": "killed"}, "[ended on request]", "Cancelled"),
    ],
)
def test_a_command_that_a_signal_ended_tells_no_exit_code(
    values: dict[str, Any], text: str, error: str
) -> None:
    result = told(exitCode=None, **values)
    assert (result.text, result.error, result.exit_code) == (text, error, None)
    assert result.is_error


def test_files_tell_what_was_read_and_written() -> None:
    assert told("read_file", content="abc", size=3).text == "abc"
    part = told("read_file", content="abc", size=9, truncated=True)
    assert part.text == "abc\n[the file has 9 bytes; read on with offset]"
    assert told("write_file", size=5).text == "Done. 5 bytes."


@pytest.mark.req("NOD-085")
def test_a_lost_command_is_uncertain_and_a_failed_one_had_no_effect() -> None:
    assert outcome("exec", '{"state":"lost"}').state is TaskState.UNCERTAIN
    failed = outcome("exec", '{"state":"failed","reason":"conflict","message":"other digest"}')
    assert (failed.state, failed.is_error, failed.error) == (TaskState.FAILED, True, "CommandFailed")
    assert "other digest" in failed.text


@pytest.mark.parametrize(
    "said",
    ["", "null", "[]", "5", "{", "[" * 50_000, '{"state": 5}', '{"state": null}', '{"state": "done"}', "{}"],
)
def test_words_that_are_none_are_a_failure(said: str) -> None:
    assert outcome("exec", said).state is TaskState.FAILED


@pytest.mark.parametrize("number", [10**400, -(10**400), MOST_NUMBER + 1, 1.5, "0", True, None, [], {"a": 1}])
def test_figures_that_are_none_are_left_out(number: Any) -> None:
    if isinstance(number, int) and abs(number) > 10**300:
        said = '{"state":"exited","output":"","exitCode":' + "9" * 400 + "}"
        result = outcome("exec", said)
    else:
        result = told(exitCode=number, output="", rawBytes=number)
    assert (result.exit_code, result.raw_bytes) == (None, None)
    assert result.is_error


@pytest.mark.req("FLD-08")
def test_texts_are_bounded_at_a_character_and_hold_no_lone_surrogates() -> None:
    long = told(exitCode=0, output="é" * MOST_TEXT_BYTES)
    assert len(long.text.encode()) <= MOST_TEXT_BYTES + 100
    assert told(exitCode=0, output="a\ud800b").text.startswith("a?b")
    assert len(outcome("exec", json.dumps({"state": "failed", "message": "x" * 10**6})).text) < 5_000
    assert len(told(exitCode=1, output="", reason="y" * 10**6).text) < 5_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(
    [
        "state",
        "reason",
        "message",
        "exitCode",
        "output",
        "rawBytes",
        "droppedBytes",
        "content",
        "size",
        "truncated",
    ]
)
words = st.dictionaries(
    names, json_values | st.sampled_from(["exited", "failed", "lost", "timeout"]), max_size=6
)


@given(kind=st.sampled_from(KINDS), said=words)
def test_whatever_a_daemon_says_can_be_recorded(kind: str, said: dict[str, Any]) -> None:
    result = outcome(kind, json.dumps(said))
    assert result.state in FINAL_TASKS
    text = result.text.encode().decode()
    row = Result(
        Inline(text), result.is_error, result.error, result.exit_code, result.raw_bytes, result.dropped_bytes
    )
    assert canonical(to_row(row))
    assert (result.state is TaskState.UNCERTAIN) is (said.get("state") == "lost")


def test_a_lost_command_says_what_its_daemon_knows() -> None:
    told = outcome("exec", '{"state": "lost", "reason": "begun_before"}')
    assert (told.state, told.error) == (TaskState.UNCERTAIN, "OutcomeUnknown")
    assert "begun_before" in told.text
