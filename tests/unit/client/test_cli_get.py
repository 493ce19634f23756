"""`nodus get`: formats, paging, and text that is shown but not obeyed."""

from __future__ import annotations

import json

import pytest
import yaml
from nodus.cli import formats, text

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_runs import Outcome
from tests.unit.client.fake_server import FakeServer
from tests.unit.client.manifests import NEX_04, NEX_07

HOSTILE = "\x1b[31mred\x07\u202egnp\n<script>alert(1)</script>\x9b2J"


@pytest.fixture
def filled(cli: Cli, server: FakeServer) -> Cli:
    cli("apply", "-f", "-", stdin=NEX_04 + "---\n" + NEX_07)
    server.runs["default", "hello-agent-run"].end()
    return cli


@pytest.mark.req("NOD-484", "NOD-028")
def test_yaml_shows_the_values_that_were_applied(filled: Cli) -> None:
    shown = yaml.safe_load(filled("get", "agent/hello-agent", "-o", "yaml").out)
    assert set(shown) == {"apiVersion", "kind", "metadata", "spec"}
    assert shown["spec"] == yaml.safe_load(NEX_04)["spec"]


@pytest.mark.req("NOD-486", "NOD-062", "NOD-485", "NOD-144")
def test_the_table_of_runs(filled: Cli) -> None:
    header, row = filled("get", "ar").out.splitlines()
    assert header.split() == ["NAME", "PHASE", "REASON", "MODEL", "COST", "CAP", "AGE"]
    assert row.split()[:4] == ["hello-agent-run", "Succeeded", "scripted/claude-sonnet-5-5", "$0.0021"]
    wide = filled("get", "ar", "-o", "wide").out.splitlines()
    assert wide[0].split()[-4:] == ["COMPUTE", "AGENT", "SANDBOX", "INPUT"]
    assert {"$0.0021", "$0.0004"} <= set(wide[1].split()), "two separate charges"
    assert wide[1].endswith(
        "hello-agent  Deleted  Use the shell to print the Python version, then tell me whi…"
    )


@pytest.mark.req("NOD-484")
def test_the_table_of_agents(filled: Cli) -> None:
    header, row = filled("get", "agents").out.splitlines()
    assert header.split() == ["NAME", "ACCESS", "MODEL", "RUN-CAP", "STATE", "REVISION", "AGE"]
    assert row.split()[:4] == ["hello-agent", "Nodus", "$0.50", "1"]


@pytest.mark.req("NOD-499")
@pytest.mark.parametrize(
    "words", [("agentrun/hello-agent-run",), ("ar/hello-agent-run",), ("ar", "hello-agent-run")]
)
def test_every_way_to_name_a_run(filled: Cli, words: tuple[str, ...]) -> None:
    assert filled("get", *words, "-o", "name").out == "agentrun/hello-agent-run\n"


def test_json_of_one_and_of_all(filled: Cli) -> None:
    one = json.loads(filled("get", "ar/hello-agent-run", "-o", "json").out)
    every = json.loads(filled("get", "agentruns", "-o", "json").out)
    assert (every["kind"], every["items"]) == ("AgentRunList", [one])


@pytest.mark.req("NOD-034")
@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{.status.phase}", "Succeeded"),
        ("{.status.reason}", ""),
        ("{.status.turns[0].model}{'\\n'}", "scripted/claude-sonnet-5-5\n"),
        ("{.metadata.name}: {.status.turns[*].costUSD}", "hello-agent-run: 0.0021"),
    ],
)
def test_jsonpath(filled: Cli, template: str, shown: str) -> None:
    assert filled("get", "ar", "hello-agent-run", "-o", f"jsonpath={template}").out == shown


@pytest.mark.req("NODQ-71", "NOD-487")
def test_lists_page_by_themselves_and_are_selected(cli: Cli, server: FakeServer) -> None:
    cli("apply", "-f", "-", stdin="---\n".join(NEX_04.replace("hello", f"h{n}") for n in range(7)))
    server.page_size = 3
    assert len(cli("get", "agents", "-o", "name").out.splitlines()) == 7
    assert [seen.query.get("continue") for seen in server.asked("GET .*agents$")] == [None, "at-3", "at-6"]
    cli("get", "agents", "--field-selector", "spec.workingDir=/workspace")
    assert server.seen[-1].query["fieldSelector"] == "spec.workingDir=/workspace"


@pytest.mark.req("NOD-498")
def test_the_project_option_before_and_after(filled: Cli, server: FakeServer) -> None:
    assert filled("-p", "other", "get", "ar").err == "No agentruns in project other.\n"
    assert filled("get", "ar", "-p", "other", "-o", "name").err == ""
    assert filled("get", "--org", "foreign", "ar").err.startswith(
        "Error (Forbidden): no access to organization"
    )


@pytest.mark.req("NOD-008")
def test_hostile_text_is_visible_in_tables_and_exact_in_json(cli: Cli, server: FakeServer) -> None:
    cli("create", "agentrun", "x", "--agent", "claude-assistant", "--prompt", HOSTILE)
    wide = cli("get", "ar", "-o", "wide").out
    assert "\\x1b[31mred\\x07\\u202egnp <script>alert(1)</script>\\x9b2J" in wide
    assert len(wide.splitlines()) == 2
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        shown = cli("get", "ar/x", "-o", output).out
        assert read(shown)["spec"]["input"] == HOSTILE
        assert not set(shown) & set("\x1b\x07\u202e\x9b")


@pytest.mark.req("NOD-008")
def test_jsonpath_is_exact_in_a_pipe_and_safe_on_a_terminal(cli: Cli, server: FakeServer) -> None:
    cli("create", "agentrun", "x", "--agent", "claude-assistant", "--prompt", HOSTILE)
    words = ("get", "ar/x", "-o", "jsonpath={.spec.input}")
    assert cli(*words).out == HOSTILE
    assert cli(*words, terminal=True).out == "\\x1b[31mred\\x07\\u202egnp\n<script>alert(1)</script>\\x9b2J"


@pytest.mark.req("NOD-008")
def test_messages_of_the_server_are_made_safe(cli: Cli, server: FakeServer) -> None:
    server.outcomes["x"] = Outcome("Failed", None, "\x1b]0;x\x07", "a\x1b[2J")
    cli("create", "agentrun", "x", "--agent", "claude-assistant", "--prompt", "x")
    server.runs["default", "x"].end()
    output = cli("wait", "ar/x", "--for=jsonpath={.status.phase}=Succeeded")
    assert "\x1b" not in output.err
    assert "\\x1b" in output.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("get", "agnet"),
            "Error (UnknownKind): no kind 'agnet'; did you mean 'agent'? Kinds: agent, agentrun (ar), agentgroup (ag)",
        ),
        (("get", "ar/x", "y"), "no kind 'y'"),
        (("get", "ar/"), "which agentrun? Give agentrun/NAME"),
        (("get", "ar/x", "--field-selector", "a=b"), "leave out the names"),
        (
            ("get", "ar", "-o", "xml"),
            "no format 'xml'; there are table, wide, yaml, json, name, jsonpath=TEMPLATE",
        ),
        (("get", "ar", "-o", "jsonpath={.a"), "not closed"),
        (("get", "ar", "-o", "jsonpath={.a[?(@.b)]}"), "InvalidJSONPath"),
        (("get", "ar/nope"), "Error (NotFound): agentruns 'nope' not found"),
    ],
)
def test_what_cannot_be_shown_teaches(
    cli: Cli, server: FakeServer, words: tuple[str, ...], says: str
) -> None:
    output = cli(*words)
    assert (output.code, output.out) == (1, "")
    assert says in output.err


def test_yaml_reads_back_whatever_the_text() -> None:
    value = {
        "a": [
            "on",
            "1e3",
            "0100",
            "",
            " x ",
            "a: b",
            "#",
            "x\n",
            "x\n\ny",
            "\n",
            "é😀",
            "\u2028",
            "a\r\nb",
            HOSTILE,
        ]
    }
    assert yaml.safe_load(formats.to_yaml(value)) == value
    assert "|" in formats.to_yaml({"system": "one\ntwo\n"})


def test_columns_line_up_whatever_the_width_of_the_characters() -> None:
    assert text.table(["A", "B"], [["漢字", "x"], ["e\u0301", "y"]]) == "A     B\n漢字  x\ne\u0301     y"
    assert (text.cut("漢字漢字", 5), text.cut("abc", 3), text.cut("abcd", 3)) == ("漢字…", "abc", "ab…")


@pytest.mark.req("NOD-146", "NOD-148")
def test_a_budget_shows_what_is_left_of_it(cli: Cli, server: FakeServer) -> None:
    assert cli("apply", "-f", "examples/agents/product-showcase/budget.yaml").code == 0
    header, row = cli("get", "budgets").out.splitlines()
    assert header.split() == ["NAME", "PHASE", "LIMIT", "SPENT", "RESERVED", "REMAINING", "AGE"]
    assert row.split()[:6] == ["product-showcase", "Active", "$5.00", "$0", "$0", "$5.00"]
