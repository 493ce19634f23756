"""Scripts of the scripted model server: how they are read, chosen, filled in and refused."""

import json
from pathlib import Path

import pytest

from localstack.scripted.heard import Heard, Result, Unreadable, listen
from localstack.scripted.library import Library
from localstack.scripted.play import choose, default_family
from localstack.scripted.script import BadScript, read_scripts
from localstack.scripted.template import BadTemplate, Context, check, fill

REPOSITORY = Path(__file__).parents[3]
VERSION = Result("Python 3.11.7\nsecond line\n", "run_command", is_error=False)
CONTEXT = Context("say it", "m-1", 2, (VERSION,), {0: "all", 1: "one", "word": "named"})


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("results[-1].text | search('Python ([0-9.]+)')", "3.11.7"),
        (r"results[0].text | search('\d+')", "3"),
        ("results[0].name", "run_command"),
        ("results[0].text | first_line", "Python 3.11.7"),
        ("results[0].text | last_line", "second line"),
        ("results[0].text | trim", "Python 3.11.7\nsecond line"),
        ("results[5].text | default('none')", "none"),
        ("results[0].text | search('Perl') | default('no Perl')", "no Perl"),
        ("match[1]", "one"),
        ("match[1] | times('3')", "oneoneone"),
        ("match['word']", "named"),
        ("user", "say it"),
        ("model", "m-1"),
        ("turn", "2"),
        ("results[3].text", "(nothing found for results[3].text)"),
    ],
)
def test_an_expression_is_filled_in(expression: str, text: str) -> None:
    assert fill(expression, CONTEXT) == text


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "results",
        "results[0]",
        "results[0].__class__",
        "results['x'].text",
        "user | upper",
        "user | search(1)",
        "user | search('(')",
        "user | trim('x')",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "user.format",
        "(lambda: 1)()",
        "1 +",
    ],
)
def test_nothing_else_is_ever_run(expression: str) -> None:
    with pytest.raises(BadTemplate):
        check([{"deep": f"{{{{ {expression} }}}}"}])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "is not YAML"),
        ("just text", "must be a mapping"),
        ("scripts: 3", "`scripts` must be a list"),
        ("{match: x}", "at least one reply"),
        ("{replies: [{text: a}]}", "match"),
        ("{match: '(', replies: [{text: a}]}", "not a regular expression"),
        ("{match: {who: x}, replies: [{text: a}]}", "unknown ['who']"),
        ("{name: n, match: x, replies: [{txt: a}]}", "n.replies[0]: unknown ['txt']"),
        ("{match: x, replies: [{calls: [{arguments: {}}]}]}", "a call is"),
        ("{match: x, replies: [{text: '{{ nothing }}'}]}", "cannot read the template"),
        ("{match: x, replies: [{fault: {status: soon}}]}", "fault.status"),
        ("{match: x, replies: [{fault: {stats: 1}}]}", "unknown ['stats']"),
        ("{match: x, replies: [{usage: {input: -1}}]}", "usage"),
        ("{match: x, replies: [{repeat: true}]}", "repeat"),
    ],
)
def test_a_broken_script_names_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(BadScript) as refused:
        read_scripts(text, "mine.yaml")
    assert says in str(refused.value)


def anthropic(*messages: dict[str, object], system: str = "") -> Heard:
    body = json.dumps({"model": "m", "system": system, "messages": messages}).encode()
    return listen("anthropic", body, "digest")


def result(text: str) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]}


ASSISTANT: dict[str, object] = {"role": "assistant", "content": [{"type": "text", "text": "hm"}]}
FIRST: dict[str, object] = {"role": "user", "content": "first"}


def test_turns_are_counted_from_the_last_user_text() -> None:
    heard = anthropic(FIRST, ASSISTANT, result("a"), ASSISTANT, result("b"))
    assert (heard.user, heard.turns, [r.text for r in heard.results]) == ("first", 2, ["a", "b"])
    again = anthropic(FIRST, ASSISTANT, {"role": "user", "content": "second"}, ASSISTANT, result("c"))
    assert (again.user, again.turns, [r.text for r in again.results]) == ("second", 1, ["c"])


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": [1]}', b"\xff"])
def test_what_is_no_request_is_refused(body: bytes) -> None:
    for wire in ("anthropic", "openai"):
        with pytest.raises(Unreadable):
            listen(wire, body, "")


def library(tmp_path: Path, text: str) -> Library:
    (tmp_path / "a.yaml").write_text(text)
    return Library([tmp_path, tmp_path / "missing"])


def test_the_reply_is_chosen_by_the_request_alone(tmp_path: Path) -> None:
    books = library(tmp_path, "{match: first, replies: [{text: a, repeat: 2}, {text: b}]}")
    history = [FIRST]
    texts: list[str] = []
    for _ in range(4):
        texts.append(choose(books, anthropic(*history)).reply.text)
        history += [ASSISTANT, result("x")]
    assert texts[:3] == ["a", "a", "b"]
    assert "no reply number 4" in texts[3]
    assert choose(books, anthropic(FIRST)).reply.text == "a"


@pytest.mark.parametrize(
    ("match", "plays"),
    [
        ("first", True),
        ("^irst", False),
        ("{prompt: careful}", True),
        ("{system: careful, user: first}", True),
        ("{system: careful, user: second}", False),
        ("{model: ^m$}", True),
        ("{model: other}", False),
    ],
)
def test_a_script_is_played_when_all_its_expressions_are_found(
    tmp_path: Path, match: str, plays: bool
) -> None:
    books = library(tmp_path, f"{{match: {match}, replies: [{{text: played}}]}}")
    part = choose(books, anthropic(FIRST, system="be careful"))
    assert (part.reply.text == "played") is plays


def test_a_changed_folder_is_read_again_and_a_broken_file_is_named(tmp_path: Path) -> None:
    books = library(tmp_path, "{match: first, replies: [{text: old}]}")
    assert choose(books, anthropic(FIRST)).reply.text == "old"
    (tmp_path / "a.yaml").write_text("{match: first, replies: [{text: newer}]}")
    (tmp_path / "b.yaml").write_text("{match: first")
    assert choose(books, anthropic(FIRST)).reply.text == "newer"
    (tmp_path / "a.yaml").unlink()
    assert "b.yaml: is not YAML" in choose(books, anthropic(FIRST)).reply.text


def test_the_default_router_goes_up_with_the_prompt() -> None:
    families = ("haiku", "sonnet", "opus", "fable")
    assert default_family("Say hi", families) == "haiku"
    assert default_family("x" * 500, families) == "sonnet"
    assert default_family("Prove and design " + "x" * 5000, families) == "fable"
    assert default_family("Prove and design " + "x" * 5000, ("haiku",)) == "haiku"


def test_the_scripts_that_come_with_the_examples_can_be_played() -> None:
    books = Library([REPOSITORY / "examples" / "scripts"])
    prompts = {
        "Use the shell to print the Python version, then tell me which one it is.": "hello",
        "Use the shell to print the Python version": "hello",
        "Say hi": "say-hi",
        "Summarize the logs": "summarize-logs",
        "Now the staging logs": "staging-logs",
        "Now do the same for the staging logs": "staging-logs",
    }
    for prompt, name in prompts.items():
        assert choose(books, anthropic({"role": "user", "content": prompt})).source == f"{name}[0]"
    assert books.problems == ()
