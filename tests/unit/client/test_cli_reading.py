"""`nodus get --watch`, `logs`, `describe`, `api-resources`, `version`: what people read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest
from click.shell_completion import ShellComplete
from nodus._kinds import KINDS
from nodus.cli import completing, main

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_runs import Outcome
from tests.unit.client.fake_server import FakeServer, Fault, Seen
from tests.unit.client.manifests import NEX_04, NEX_07

RUN = "agentrun/hello-agent-run"
HOSTILE = "\x1b[31mred\x07\u202egnp\n<script>\x9b2J"


@pytest.fixture
def started(cli: Cli, server: FakeServer) -> Cli:
    cli("apply", "-f", "-", stdin=NEX_04 + "---\n" + NEX_07)
    return cli


# --- watch ---


def when_watched(server: FakeServer, *changes: Callable[[], object]) -> None:
    """Each window that is asked for first sees a change; the one after the last is refused, which ends a watch."""
    left = list(changes)

    def look(seen: Seen) -> None:
        if seen.query.get("watch") != "true":
            return
        if left:
            left.pop(0)()
        else:
            server.faults.append(Fault("GET .*", status=403, reason="Forbidden"))

    server.when_seen = look


def stored(server: FakeServer, cli: Cli, name: str, spec: dict[str, object]) -> Callable[[], object]:
    def change() -> None:
        body = {"apiVersion": "nodus.dev/v1", "metadata": {"name": name}, "spec": spec}
        seen = Seen("PATCH", "", {}, {}, b"")
        server._store(seen, "default", "agents", name, body)

    return change


@pytest.fixture
def changing(started: Cli, server: FakeServer) -> Cli:
    """Two agents appear, one of them changes, while somebody watches."""
    when_watched(
        server,
        stored(server, started, "a", {"perRunMaxCostUSD": "1"}),
        stored(server, started, "a-much-longer-name", {}),
        stored(server, started, "a", {"perRunMaxCostUSD": "2"}),
    )
    return started


def test_a_watch_appends_a_row_for_each_change(changing: Cli) -> None:
    output = changing("get", "agents", "--watch")
    lines = output.out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "hello-agent", "a", "a-much-longer-name", "a"]
    assert ("$1" in lines[2], "$2" in lines[4]) == (True, True)
    assert lines[2].index("$1") < lines[4].index("$2"), "a column once as wide stays so"
    assert output.err == "Error (Forbidden): injected\n"


def test_a_watch_in_json_is_an_object_in_each_line(changing: Cli) -> None:
    seen = [json.loads(line) for line in changing("get", "agents", "-w", "-o", "json").out.splitlines()]
    assert [thing["metadata"]["name"] for thing in seen] == ["hello-agent", "a", "a-much-longer-name", "a"]
    assert seen[-1]["spec"] == {"perRunMaxCostUSD": "2"}


def test_a_watch_of_one_object_tells_of_no_other(changing: Cli) -> None:
    assert changing("get", "agent/hello-agent", "-w", "-o", "name").out == "agent/hello-agent\n"
    assert "Error (NotFound)" in changing("get", "agent/nope", "-w").err


def test_a_watch_without_heading_and_with_selectors(changing: Cli, server: FakeServer) -> None:
    rows = changing("get", "agents", "-w", "--no-headers", "--field-selector", "metadata.name=a").out
    assert [line.split()[0] for line in rows.splitlines()] == ["a", "a"]


# --- logs ---


@pytest.mark.req("NOD-071")
@pytest.mark.parametrize("words", [(RUN,), ("hello-agent-run",), ("ar", "hello-agent-run")])
def test_logs_are_steps_and_their_outputs(started: Cli, server: FakeServer, words: tuple[str, ...]) -> None:
    server.runs["default", "hello-agent-run"].outcome = Outcome(output="one\ntwo")
    server.runs["default", "hello-agent-run"].end()
    lines = started("logs", *words).out.splitlines()
    at = next(n for n, line in enumerate(lines) if "turn-1.tool.run_command.1" in line)
    assert lines[at].startswith("completed  turn-1.tool.run_command.1  ")
    assert lines[at].endswith("exit 0")
    assert lines[at + 1 : at + 3] == ["    one", "    two"]


def test_logs_may_begin_late(started: Cli, server: FakeServer) -> None:
    server.runs["default", "hello-agent-run"].end()
    assert started("logs", RUN, "--tail", "1").out.split()[1] == "turn-1.model.2"
    assert started("logs", RUN, "--tail", "0").out == ""


def test_logs_follow_to_the_end(started: Cli, server: FakeServer) -> None:
    output = started("logs", "-f", RUN)
    steps = [line.split()[1] for line in output.out.splitlines() if not line.startswith(" ")]
    assert steps == [name for name, _ in server.runs["default", "hello-agent-run"].names]
    assert output.err.startswith(f"{RUN} Succeeded")
    assert output.code == 0


def test_logs_of_a_run_that_waits_say_what_to_do(started: Cli, server: FakeServer) -> None:
    held = Outcome("Waiting", None, "NeedsResolution", unresolved=("setup",))
    server.runs["default", "hello-agent-run"].outcome = held
    output = started("logs", "-f", RUN)
    assert output.code == 1
    assert "nodus agentrun resolve hello-agent-run setup --happened | --did-not-happen" in output.err


@pytest.mark.req("NOD-008")
@pytest.mark.parametrize("words", [("logs", RUN), ("describe", RUN)])
def test_hostile_text_is_shown_and_not_obeyed(
    started: Cli, server: FakeServer, words: tuple[str, ...]
) -> None:
    server.runs["default", "hello-agent-run"].outcome = Outcome(
        output=HOSTILE, answer=HOSTILE, message=HOSTILE
    )
    server.runs["default", "hello-agent-run"].end()
    out = started(*words).out
    assert "\\x1b[31mred\\x07\\u202egnp" in out
    assert not set(out) & set("\x1b\x07\u202e\x9b")


# --- describe ---


def test_describe_a_run_that_has_finished(started: Cli, server: FakeServer) -> None:
    started("label", "agentrun/hello-agent-run", "team=web")
    server.runs["default", "hello-agent-run"].end()
    out = started("describe", RUN).out
    for words in (
        "Name:           hello-agent-run\nProject:        default\nKind:           AgentRun\n",
        "Labels:         team=web\n",
        "Spec:\n  agent:  hello-agent\n  model:\n    access:  Nodus\n",
        "Cost:\n  models $0.0021 of $1.00, sandbox $0.0004\n",
        "  TURN  PHASE",
        "Answer:\n  done\n",
        "turn-1.tool.run_command.1",
        "Next:\n  nodus agentrun answer hello-agent-run\n",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("outcome", "advice"),
    [
        (
            Outcome("Failed", None, "SetupFailed", "npm ci ended with 1"),
            "  nodus logs agentrun/hello-agent-run\n",
        ),
        (Outcome("Waiting", "hi", "MessageWait"), 'nodus agentrun send hello-agent-run "TEXT"'),
        (Outcome("Waiting", None, "MaxCostReached"), "  nodus cancel agentrun/hello-agent-run\n"),
    ],
)
def test_describe_says_what_to_do(started: Cli, server: FakeServer, outcome: Outcome, advice: str) -> None:
    server.runs["default", "hello-agent-run"].outcome = outcome
    server.runs["default", "hello-agent-run"].end()
    assert advice in started("describe", RUN).out.partition("Next:\n")[2]


def test_describe_tells_of_each_unresolved_step_what_it_was_to_do(started: Cli, server: FakeServer) -> None:
    server.runs["default", "hello-agent-run"].outcome = Outcome(
        "Waiting", None, "NeedsResolution", unresolved=("turn-1.tool.run_command.1",)
    )
    server.runs["default", "hello-agent-run"].end()
    out = started("describe", RUN).out
    assert "Unresolved:\n  turn-1.tool.run_command.1  since" in out
    assert "    what:\n      SandboxLost\n" in out


def test_describe_shows_conditions_long_texts_and_lists(cli: Cli, server: FakeServer) -> None:
    cli("create", "sandbox", "dev", "--allow", "pypi.org", "--allow", "github.com")
    condition = {"type": "Ready", "status": "False", "reason": "NotAvailable", "message": "not started yet"}
    server.object("sandboxes", "dev")["status"] = {"phase": "Pending", "conditions": [condition]}
    out = cli("describe", "sb/dev").out
    assert "      policy:  AllowList\n      allow:  pypi.org, github.com\n" in out
    assert "  TYPE   STATUS  REASON        MESSAGE\n  Ready  False   NotAvailable  not started yet\n" in out
    cli("create", "agent", "a", "--system", "Line one.\nLine two.")
    assert "  system:\n    Line one.\n    Line two.\n" in cli("describe", "agent", "a").out


def test_describe_all_of_a_kind(cli: Cli, server: FakeServer) -> None:
    for name in ("a", "b"):
        cli("create", "agent", name, "--system", name)
    shown = cli("describe", "agents").out
    assert [line for line in shown.splitlines() if line.startswith("Name:")] == [
        "Name:           a",
        "Name:           b",
    ]
    missing = cli("describe", "agent", "a", "nope")
    assert (missing.code, "Name:           a" in missing.out) == (1, True)


# --- kinds, versions ---


def test_the_kinds_there_are(cli: Cli) -> None:
    rows = [line.split() for line in cli("api-resources").out.splitlines()]
    assert rows[0] == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["agentruns", "ar", "nodus.dev/v1", "true", "AgentRun"] in rows
    assert len(rows) == 1 + len(KINDS)
    others = cli("api-resources", "--namespaced=false", "-o", "name").out.split()
    assert others == ["organizations", "projects", "apikeys"]


def test_versions(cli: Cli, server: FakeServer) -> None:
    output = cli("version")
    assert output.out.splitlines()[1] == f"Server: v0.1.0-fake at {server.address}"
    both = json.loads(cli("version", "-o", "json").out)
    assert both["serverVersion"]["gitVersion"] == "v0.1.0-fake"
    asked = len(server.seen)
    assert cli("version", "--client").out.count("\n") == 1
    assert len(server.seen) == asked


# --- completion ---


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than a person would wait."""
    monkeypatch.setattr(completing, "SECONDS", 60.0)


def offered(line: str) -> list[str]:
    """What a shell would offer for the last word of a command line."""
    *given, last = line.split(" ")[1:]
    return [item.value for item in ShellComplete(main.nodus, {}, "nodus", "_X").get_completions(given, last)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nodus des", ["describe"]),
        ("nodus get agentr", ["agentrun", "agentruns"]),
        ("nodus get agent/", ["agent/a", "agent/b-1", "agent/b-2"]),
        ("nodus get agents b-", ["b-1", "b-2"]),
        ("nodus delete agent a b", ["b-1", "b-2"]),
        ("nodus create agentrun x --agent b", ["b-1", "b-2"]),
        ("nodus get ar -o js", ["json", "jsonpath="]),
        ("nodus get nonsense ", []),
        ("nodus config use", ["use-context"]),
    ],
)
@pytest.mark.usefixtures("patient")
def test_words_are_completed(cli: Cli, server: FakeServer, line: str, words: list[str]) -> None:
    for name in ("a", "b-1", "b-2"):
        cli("create", "agent", name, "--system", "x")
    assert offered(line) == words


@pytest.mark.usefixtures("patient")
def test_names_of_another_project_are_completed(cli: Cli, server: FakeServer) -> None:
    cli("create", "agent", "there", "--system", "x", "-p", "other")
    assert offered("nodus get -p other agents ") == ["there"]
    assert offered("nodus -p other get agents ") == ["there"]


def test_a_key_press_is_answered_within_a_bound(
    cli: Cli, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completing, "SECONDS", 0.05)
    answered = threading.Event()
    server.when_seen = lambda seen: answered.wait(30)
    try:
        assert offered("nodus get agents ") == []
    finally:
        answered.set()


def test_a_server_that_refuses_offers_nothing(
    cli: Cli, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODUS_TOKEN", "wrong")
    assert offered("nodus get agents ") == []


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o"), ("zsh", "#compdef nodus"), ("fish", "complete ")]
)
def test_each_shell_gets_its_script(cli: Cli, shell: str, words: str) -> None:
    output = cli("completion", shell)
    assert (output.code, words in output.out, "_NODUS_COMPLETE" in output.out) == (0, True, True)


def test_no_script_for_other_shells(cli: Cli) -> None:
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in cli("completion", "tcsh").err
