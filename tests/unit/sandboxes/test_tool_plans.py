"""What a model may ask of its sandbox: each call becomes exactly one command, or the model is told why not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.journal.values import canonical
from nodus_core.sandboxes.tools import (
    DEFAULT_TIMEOUT_S,
    MOST_TIMEOUT_S,
    READ_LIMIT,
    TOOLS,
    Misuse,
    Order,
    plan,
)

FOLDER, ENV = "/workspace", {"A": "1"}
NAMES = [tool.name for tool in TOOLS]


def planned(tool: str, **arguments: Any) -> Order | Misuse:
    return plan(tool, json.dumps(arguments), FOLDER, ENV)


def request(tool: str, **arguments: Any) -> dict[str, Any]:
    order = planned(tool, **arguments)
    assert isinstance(order, Order), order
    return order.request


def misuse(tool: str, **arguments: Any) -> str:
    refused = planned(tool, **arguments)
    assert isinstance(refused, Misuse), refused
    return refused.text


@pytest.mark.req("NODQ-87", "NODQ-68")
def test_a_command_runs_in_the_working_directory_with_the_agents_environment() -> None:
    assert request("run_command", command="ls") == {
        "command": "ls",
        "cwd": "/workspace",
        "timeoutS": DEFAULT_TIMEOUT_S,
        "graceS": 2,
        "env": ENV,
    }
    assert request("run_command", command="ls", cwd="src", timeout=5)["cwd"] == "/workspace/src"
    assert request("run_command", command="ls", cwd="/tmp", timeout=5)["timeoutS"] == 5
    assert request("run_command", command="ls", cwd=None, timeout=None)["timeoutS"] == DEFAULT_TIMEOUT_S


def test_files_are_read_and_written_where_the_model_says() -> None:
    assert request("read_file", path="a") == {"path": "/workspace/a", "offset": 0, "limit": READ_LIMIT}
    assert request("read_file", path="/etc/hosts", offset=7, limit=9) == {
        "path": "/etc/hosts",
        "offset": 7,
        "limit": 9,
    }
    written = request("write_file", path="a/b", content="x\x00\n")
    assert written == {"path": "/workspace/a/b", "content": "x\x00\n", "mode": 0o644, "createDirs": True}


@pytest.mark.req("FLD-01")
@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("run_command", {}, "'command' is missing"),
        ("run_command", {"command": None}, "'command' is missing"),
        ("run_command", {"command": 5}, "must be a string"),
        ("run_command", {"command": ["ls"]}, "must be a string"),
        ("run_command", {"command": "a\x00b"}, "NUL"),
        ("run_command", {"command": "a", "cwd": "\x00"}, "NUL"),
        ("run_command", {"command": "a", "timeout": 0}, f"from 1 to {MOST_TIMEOUT_S}"),
        ("run_command", {"command": "a", "timeout": MOST_TIMEOUT_S + 1}, f"from 1 to {MOST_TIMEOUT_S}"),
        ("run_command", {"command": "a", "timeout": 10**300}, f"from 1 to {MOST_TIMEOUT_S}"),
        ("run_command", {"command": "a", "timeout": 1.5}, "whole number"),
        ("run_command", {"command": "a", "timeout": True}, "whole number"),
        ("run_command", {"command": "a", "timeout": "5"}, "whole number"),
        ("run_command", {"command": "a", "env": {"A": "2"}}, "unknown argument 'env'"),
        ("read_file", {"path": "a", "offset": -1}, "from 0 to any"),
        ("read_file", {"path": "a", "limit": READ_LIMIT + 1}, f"from 1 to {READ_LIMIT}"),
        ("write_file", {"path": "a"}, "'content' is missing"),
        ("write_file", {"path": "\x00", "content": ""}, "NUL"),
        ("rm", {"path": "a"}, "There is no tool 'rm'. Tools: run_command, read_file, write_file."),
    ],
)
def test_a_misuse_is_told_by_name(tool: str, arguments: dict[str, Any], text: str) -> None:
    assert text in misuse(tool, **arguments)


@pytest.mark.req("FLD-01")
@pytest.mark.parametrize(
    "arguments", ["", "[]", "null", "5", '"x"', "{", '{"command": "ls"', "[" * 100_000, "NaN"]
)
def test_arguments_that_are_no_object_are_told(arguments: str) -> None:
    refused = plan("run_command", arguments, FOLDER, ENV)
    assert isinstance(refused, Misuse)
    assert "no JSON object" in refused.text


@pytest.mark.req("FLD-08")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_command", {"command": "echo \ud83d", "cwd": "/\udfff"}),
        ("read_file", {"path": "\ud800"}),
        ("write_file", {"path": "\ud800", "content": "\udc00 😀"}),
    ],
)
def test_lone_surrogates_become_question_marks_everywhere(tool: str, arguments: dict[str, Any]) -> None:
    text = json.dumps(request(tool, **arguments), ensure_ascii=False)
    assert "?" in text.encode().decode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from(["command", "cwd", "timeout", "path", "offset", "limit", "content", "other"])


@pytest.mark.req("FLD-01", "FLD-08")
@given(tool=st.sampled_from([*NAMES, "x"]), arguments=st.dictionaries(fields, json_values, max_size=4))
def test_whatever_a_model_sends_becomes_a_storable_order_or_a_text(
    tool: str, arguments: dict[str, Any]
) -> None:
    match plan(tool, json.dumps(arguments), FOLDER, ENV):
        case Order(kind=kind, request=request):
            assert kind in ("exec", "read_file", "write_file")
            json.dumps(canonical(request), ensure_ascii=False).encode()
            assert request.get("path", request.get("cwd", "")).startswith("/")
        case Misuse(text=text):
            assert text


@given(arguments=st.text(max_size=60))
def test_any_text_at_all_is_taken(arguments: str) -> None:
    for name in NAMES:
        assert plan(name, arguments, FOLDER, ENV)
