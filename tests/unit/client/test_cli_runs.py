"""Runs from the command line: create, wait, steps, answer, cancel, delete, patch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nodus
import pytest
from nodus.cli import failures, follow, step_table

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_runs import Outcome, Run
from tests.unit.client.fake_server import FakeServer, Fault, Seen
from tests.unit.client.manifests import NEX_04, NEX_07

RUN = "agentrun/hello-agent-run"
SUCCEEDED = "--for=jsonpath={.status.phase}=Succeeded"


@pytest.fixture
def started(cli: Cli, server: FakeServer) -> Cli:
    cli("apply", "-f", "-", stdin=NEX_04 + "---\n" + NEX_07)
    return cli


def the_run(server: FakeServer) -> Run:
    return server.runs["default", "hello-agent-run"]


@pytest.mark.req("NOD-483", "NOD-032", "NOD-480")
def test_nex_08_apply_wait_read(started: Cli) -> None:
    assert started("wait", RUN, SUCCEEDED, "--timeout=8m") == (0, f"{RUN} condition met\n", "")
    shown = started("get", RUN, "-o", "yaml").out
    assert all(
        word in shown for word in ("phase: Succeeded", "chosenBy: jev", "preview: done", "totalUSD: '0.0021'")
    )


@pytest.mark.req("NOD-488", "NOD-031")
def test_nex_09_a_run_without_a_file(started: Cli, server: FakeServer) -> None:
    words = ("create", "agentrun", "triage", "--agent", "hello-agent", "--prompt", "Summarize the logs")
    assert started(*words).out == "agentrun/triage created\n"
    assert server.object("agentruns", "triage")["spec"] == {
        "agent": "hello-agent",
        "input": "Summarize the logs",
    }
    again = started(*words)
    assert (again.code, again.err) == (1, "Error (AlreadyExists): agentruns 'triage' already exists\n")


@pytest.mark.req("NOD-488")
def test_nex_22_choosing_a_run_maximum(started: Cli, server: FakeServer) -> None:
    started(
        "create", "ar", "n", "--agent", "hello-agent", "--prompt", "T", "--parallelism", "6", "--keep-alive"
    )
    spec = server.object("agentruns", "n")["spec"]
    assert (spec["parallelism"], spec["keepAlive"]) == (6, True)


@pytest.mark.req("NOD-490", "NOD-491", "NOD-066", "NOD-071", "NODQ-86")
def test_nex_10_answer_and_steps(started: Cli, server: FakeServer) -> None:
    the_run(server).end()
    assert started("agentrun", "answer", "hello-agent-run").out == "done"
    header, *rows = started("agentrun", "steps", "hello-agent-run").out.splitlines()
    assert header.split() == ["#", "STEP", "STATE", "TIME", "COST", "TOKENS", "DETAIL"]
    assert [row.split()[1] for row in rows] == [name for name, _ in Run(Outcome()).names]
    assert rows[1].endswith("exit 0  workspace-ready")
    assert all("Completed" in row for row in rows)


@pytest.mark.req("NOD-072")
def test_steps_as_json_are_the_server_s(started: Cli, server: FakeServer) -> None:
    server.page_size = 2
    the_run(server).end()
    shown = json.loads(started("agentrun", "steps", "hello-agent-run", "-o", "json").out)
    assert (shown["kind"], shown["items"]) == ("StepList", the_run(server).steps())


def test_a_run_without_steps_says_so(started: Cli, server: FakeServer) -> None:
    the_run(server).looks = -1
    assert started("agentrun", "steps", "hello-agent-run") == (
        0,
        "",
        "Run hello-agent-run has no step yet.\n",
    )


@pytest.mark.req("NOD-066", "NOD-008")
def test_an_answer_is_exact_in_a_pipe_and_visible_on_a_terminal(started: Cli, server: FakeServer) -> None:
    answer = "a\r\n\tb\x1b[31m\u202e" + "ä" * 5000
    the_run(server).outcome = Outcome(answer=answer)
    the_run(server).end()
    assert started("agentrun", "answer", "hello-agent-run").out == answer
    assert started("agentrun", "answer", "hello-agent-run", terminal=True).out == (
        "a\n\tb\\x1b[31m\\u202e" + "ä" * 5000 + "\n"
    )


@pytest.mark.req("NOD-067", "NOD-500")
def test_an_answer_before_its_time_is_a_clear_refusal(started: Cli) -> None:
    output = started("agentrun", "answer", "hello-agent-run")
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith("Error (AnswerNotReady): ")


@pytest.mark.req("NODQ-73", "NOD-483")
def test_a_wait_for_what_cannot_come_ends_at_once_with_2(started: Cli, server: FakeServer) -> None:
    the_run(server).outcome = Outcome("Failed", None, "SetupFailed", "npm ci ended with 1")
    the_run(server).end()
    output = started("wait", RUN, SUCCEEDED, "--timeout=8m")
    assert (output.code, output.err) == (
        2,
        f"Error (SetupFailed): {RUN} is Failed and will not become Succeeded: npm ci ended with 1\n",
    )


@pytest.mark.req("NOD-483")
@pytest.mark.parametrize("condition", [SUCCEEDED, "--for=jsonpath=.status.phase=Succeeded"])
def test_a_wait_that_is_over_ends_with_1(started: Cli, server: FakeServer, condition: str) -> None:
    the_run(server).looks = -100_000
    output = started("wait", RUN, condition, "--timeout=10ms")
    assert output.code == 1
    assert output.err.startswith(f"Error (Timeout): {RUN} is Running after 0.0s, and not ")


@pytest.mark.req("NOD-483", "NODQ-73")
def test_a_wait_that_is_over_before_anything_was_read_says_so(started: Cli, server: FakeServer) -> None:
    server.faults.append(Fault("GET .*agentruns", times=100, lost=True))
    output = started("wait", RUN, SUCCEEDED, "--timeout=10ms")
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith(f"Error (Timeout): {RUN} was not read after 0.0s, and ")


def test_a_wait_for_another_field_goes_on_after_the_end(started: Cli, server: FakeServer) -> None:
    the_run(server).end()
    condition = "--for=jsonpath={.status.sandbox.phase}=Gone"
    assert started("wait", RUN, condition, "--timeout=10ms").code == 1
    assert started("wait", RUN, "--for=jsonpath={.status.attempts}=1").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("wait", RUN), "Missing option '--for'"),
        (("wait", RUN, "--for=Succeeded"), "'Succeeded' is no condition"),
        (("wait", RUN, "--for=jsonpath={.status.phase}"), "which value?"),
        (("wait", RUN, "--for=jsonpath=.status.phase"), "which value?"),
        (("wait", RUN, SUCCEEDED, "--timeout=8"), "write it with its unit, such as 30s, 8m"),
        (("wait", "agentrun", SUCCEEDED), "which agentrun? Give agentrun/NAME"),
        (("wait", "job/x", SUCCEEDED), "no kind 'job'"),
        (("wait", "ar/nope", SUCCEEDED), "Error (NotFound)"),
        (("create", "agentrun", "x", "--agent", "nope", "--prompt", "y"), "agents 'nope' not found"),
        (("create", "agentrun", "x", "--agent", "hello-agent", "--prompt", ""), "  spec.input: is required"),
        (("create", "ar", "x", "--agent", "a", "--prompt", "y", "--parallelism", "-1"), "x>=0"),
        (("cancel", "agent/hello-agent"), "give agentrun/NAME"),
        (("patch", RUN, "--patch", "{spec: 1}"), "not JSON"),
        (("patch", RUN, "--patch", '{"spec":{"a":1,"a":2}}'), "given twice"),
        (("delete", "agent/nope"), "Error (NotFound)"),
        (("agentrun", "steps", "nope"), "Error (NotFound)"),
        (("agentrun", "steps", "nope", "--follow"), "Error (NotFound)"),
        (("agentrun", "step", "x"), "no command 'step'; did you mean 'steps'?"),
        (("describe", "ar", "x"), "agentruns 'x' not found"),
        (("logs", "x"), "agentruns 'x' not found"),
        (("logs", "agent/x"), "only runs have logs"),
        (("get", "ar", "-n", "web"), "a project is chosen with -p: -p web"),
        (("-n", "web", "get", "ar"), "a project is chosen with -p: -p web"),
        (("get", "ar", "-w", "-o", "jsonpath={.a}"), "--watch shows tables, names, json or yaml"),
        (("get", "ar", "-w", "--sort-by=.a"), "leave out -f, --sort-by and -A"),
        (("cancel", "ar", "a", "ar/b"), "write every object as KIND/NAME"),
        (("cancel", "ar/a", "b"), "no kind 'b'"),
        (("cancel",), "which object? Give KIND/NAME"),
    ],
)
def test_what_cannot_be_done_teaches(started: Cli, words: tuple[str, ...], says: str) -> None:
    output = started(*words)
    assert (output.code, output.out) == (1, "")
    assert says in output.err


@pytest.mark.req("NOD-024", "NOD-038", "NOD-500")
def test_nex_44_a_stopped_agent(started: Cli, server: FakeServer) -> None:
    started("patch", "agent/hello-agent", "--patch", '{"spec":{"state":"Stopped"}}')
    output = started("create", "agentrun", "x", "--agent", "hello-agent", "--prompt", "hi")
    assert (output.code, output.err) == (1, "Error (AgentStopped): agent 'hello-agent' is stopped\n")
    assert len(server.runs) == 1


@pytest.mark.req("NOD-495")
def test_nex_16_cancel(started: Cli, server: FakeServer) -> None:
    assert started("cancel", RUN).out == f"{RUN} cancelled\n"
    assert started("cancel", RUN).code == 0
    started("create", "ar", "b", "--agent", "hello-agent", "--prompt", "x")
    server.runs["default", "b"].end()
    assert started("cancel", "ar/b").out == "agentrun/b has finished already (Succeeded)\n"


@pytest.mark.req("NOD-497", "NODQ-92")
def test_nex_20_patch(started: Cli, server: FakeServer) -> None:
    words = (
        "patch",
        "agent/hello-agent",
        "--patch",
        '{"spec":{"maxParallelAgents":0,"perRunMaxCostUSD":0.10}}',
    )
    assert started(*words).out == "agent/hello-agent patched\n"
    spec = server.object("agents", "hello-agent")["spec"]
    assert (spec["maxParallelAgents"], spec["perRunMaxCostUSD"], spec["workingDir"]) == (
        0,
        "0.10",
        "/workspace",
    )


@pytest.mark.req("NOD-496", "NODQ-94", "NODQ-57")
def test_delete_waits_until_the_object_is_gone(started: Cli, server: FakeServer) -> None:
    assert started("delete", RUN).out == f"{RUN} deleted\n"
    assert ("default", "agentruns", "hello-agent-run") not in server.objects
    assert [seen.method for seen in server.seen[-3:]] == ["DELETE", "GET", "GET"]
    assert started("delete", "agent/hello-agent").out == "agent/hello-agent deleted\n"


@pytest.mark.req("NODQ-94")
def test_delete_does_not_wait_when_told(started: Cli, server: FakeServer) -> None:
    assert started("delete", RUN, "--wait=false").out == f"{RUN} deleting\n"
    assert server.seen[-1].method == "DELETE"


def test_delete_is_not_misled_by_a_new_object_of_the_name(started: Cli, server: FakeServer) -> None:
    def remake(seen: Seen) -> None:
        if seen.method == "GET" and server.asked("DELETE"):
            named = {"name": "hello-agent-run", "namespace": "default"}
            server.object("agentruns", "hello-agent-run")["metadata"] = {"uid": "another"} | named

    server.when_seen = remake
    assert started("delete", RUN).code == 0
    assert server.object("agentruns", "hello-agent-run")["metadata"]["uid"] == "another"


def test_delete_that_takes_too_long_says_that_it_goes_on(
    started: Cli, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        FakeServer, "_get", lambda self, *words: self._below(words[0], "default", words[3], "cancel")
    )
    output = started("delete", RUN, "--timeout=10ms")
    assert (output.code, "if it was deleted, that goes on" in output.err) == (1, True)


def test_follow_prints_a_line_when_a_step_starts_and_ends(started: Cli, server: FakeServer) -> None:
    the_run(server).looks = -1  # reading steps moves it on by half a step, reading the run by another half
    lines = started("agentrun", "steps", "hello-agent-run", "--follow").out.splitlines()
    ended = [line.split() for line in lines if line.startswith("completed")]
    assert [words[1] for words in ended] == [name for name, _ in the_run(server).names]
    assert lines[-1] == "run        agentrun/hello-agent-run Succeeded  $0.0021  compute $0.0004"
    assert "started    sandbox" in lines


def test_follow_as_json_prints_a_line_per_change(started: Cli, server: FakeServer) -> None:
    the_run(server).looks = -1
    output = started("agentrun", "steps", "hello-agent-run", "--follow", "-o", "json").out
    steps = [json.loads(line) for line in output.splitlines()]
    seen = {(step["name"], step["state"]) for step in steps}
    assert {(name, "Completed") for name, _ in the_run(server).names} <= seen
    assert len(seen) == len(steps)


def test_follow_ends_with_a_failed_run_and_outlives_faults(started: Cli, server: FakeServer) -> None:
    the_run(server).outcome = Outcome("Failed", None, "SetupFailed", "x\x1b[2J")
    server.when_seen = lambda seen: (
        server.faults.append(Fault("GET", times=2, lost=True)) if len(server.seen) == 10 else None
    )
    output = started("agentrun", "steps", "hello-agent-run", "--follow")
    assert output.code == 0
    assert output.out.splitlines()[-1].endswith("Failed  (SetupFailed)  $0.0021  compute $0.0004  x\\x1b[2J")


@pytest.mark.req("NOD-034")
@pytest.mark.parametrize(
    ("reason", "says"), [("NeedsResolution", "outcome of a step"), ("MaxCostReached", "cost limit")]
)
def test_follow_ends_when_only_a_person_can_go_on(
    started: Cli, server: FakeServer, reason: str, says: str
) -> None:
    the_run(server).outcome = Outcome("Waiting", None, reason, "see there")
    output = started("agentrun", "steps", "hello-agent-run", "--follow")
    assert output.code == 1
    assert output.out.splitlines()[-1].startswith(f"run        agentrun/hello-agent-run Waiting  ({reason})")
    assert f"Error ({reason})" in output.err
    assert says in output.err


def test_follow_ends_well_when_the_run_waits_for_a_message(started: Cli, server: FakeServer) -> None:
    the_run(server).outcome = Outcome("Waiting", "done", "MessageWait")
    output = started("agentrun", "steps", "hello-agent-run", "--follow")
    says = "agentrun/hello-agent-run waits for a message (MessageWait): nodus agentrun send hello-agent-run"
    assert (output.code, output.err) == (0, f'{says} "TEXT"\n')
    assert output.out.splitlines()[-1].startswith(
        "run        agentrun/hello-agent-run Waiting  (MessageWait)"
    )


def test_a_notice_stands_above_the_live_lines_and_on_no_other_stream(
    started: Cli, server: FakeServer
) -> None:
    """Two streams on one terminal would tear the lines that are drawn again and again."""
    the_run(server).outcome = Outcome("Waiting", "done", "MessageWait")
    output = started("agentrun", "steps", "hello-agent-run", "--follow", terminal=True)
    assert (output.code, output.err) == (0, "")
    assert "waits for a message (MessageWait)" in output.out


@pytest.mark.parametrize("reason", ["BudgetBlocked", "InsufficientCredits", "ModelUnavailable"])
@pytest.mark.parametrize(
    "words", [("wait", RUN, SUCCEEDED), ("agentrun", "steps", "hello-agent-run", "--follow")]
)
def test_what_a_run_waits_for_is_said_once_on_stderr(
    started: Cli, server: FakeServer, reason: str, words: tuple[str, ...]
) -> None:
    run = the_run(server)
    run.outcome = Outcome("Waiting", None, reason)
    looks: list[int] = []

    def goes_on(seen: Seen) -> None:
        looks.append(run.over)
        if sum(looks) == 6:
            run.outcome = Outcome()

    server.when_seen = goes_on
    output = started(*words)
    assert output.code == 0
    (line,) = output.err.splitlines()
    assert line.startswith(f"{RUN} waits ({reason}): ")


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_kind_and_name_may_be_two_words(started: Cli, server: FakeServer, verb: str) -> None:
    assert started(verb, "ar", "hello-agent-run").out.startswith(RUN)


def test_a_run_may_have_a_deadline(started: Cli, server: FakeServer) -> None:
    words = ("create", "agentrun", "n", "--agent", "hello-agent", "--prompt", "T", "--deadline", "20s")
    assert started(*words).code == 0
    assert server.object("agentruns", "n")["spec"]["deadline"] == "20s"


def test_what_is_not_valid_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    causes = [nodus.errors.Cause("spec.a", "is no field"), nodus.errors.Cause("spec.b", "is required")]
    message = "AgentRun 'x' is not accepted: spec.a is no field; spec.b is required"
    failures.show(nodus.errors.InvalidError(message, code=422, causes=causes))
    assert capsys.readouterr().err.splitlines() == [
        "Error (Invalid): AgentRun 'x' is not accepted",
        "  spec.a: is no field",
        "  spec.b: is required",
    ]


def test_follow_into_a_pipe_tells_when_phase_or_reason_change(started: Cli, server: FakeServer) -> None:
    run = the_run(server)
    run.looks = -1
    output = started("agentrun", "steps", "hello-agent-run", "--follow").out
    told = [line for line in output.splitlines() if line.startswith("run ")]
    assert [line.split()[2] for line in told] == ["Running", "Succeeded"]


def many(server: FakeServer, count: int) -> Run:
    """The run with so many steps, which goes on only when the test says so."""
    run = the_run(server)
    run.pace = 0
    run.names = tuple((f"turn-1.tool.run_command.{number}", "tool") for number in range(count))
    return run


def test_follow_reads_finished_pages_only_once(
    started: Cli, server: FakeServer, client: nodus.Client
) -> None:
    run = many(server, 10)
    server.page_size = 3
    run.looks = 13
    reader = follow.StepReader(client, "hello-agent-run")
    assert [step["index"] for step in reader.changes()] == [1, 2, 3, 4, 5, 6, 7]
    assert [step["index"] for step in reader.running()] == [7]
    asked = len(server.asked("steps"))
    run.end()
    assert [(step["index"], step["state"]) for step in reader.changes()] == [
        (number, "Completed") for number in (7, 8, 9, 10)
    ]
    assert [seen.query.get("continue") for seen in server.asked("steps")[asked:]] == ["at-6", "at-9"]


def test_follow_begins_anew_when_its_position_has_expired(
    started: Cli, server: FakeServer, client: nodus.Client
) -> None:
    run = many(server, 5)
    server.page_size = 2
    run.end()
    reader = follow.StepReader(client, "hello-agent-run")
    assert len(reader.changes()) == 5
    server.faults.append(Fault("steps", status=410, reason="Expired"))
    assert reader.changes() == []
    server.faults.append(Fault("steps", status=403, reason="Forbidden"))
    with pytest.raises(nodus.ApiError):
        reader.changes()


@pytest.mark.parametrize(
    ("step", "detail"),
    [
        ({"model": "m", "error": {"reason": "R", "message": "bad\n"}}, "m  R: bad"),
        ({"exitCode": 3, "preview": "a\nb\x1b"}, "exit 3  a\\nb\\x1b"),
        ({"error": "text"}, "text"),
        ({}, ""),
    ],
)
def test_the_detail_of_a_step(step: dict[str, Any], detail: str) -> None:
    assert step_table.detail(step) == detail


# --- messages ---

SEND = ("agentrun", "send", "hello-agent-run")


@pytest.mark.req("NOD-179", "NOD-180")
def test_nex_15_a_message_with_a_key_is_delivered_once(started: Cli, server: FakeServer) -> None:
    words = (*SEND, "Now do the same for the staging logs", "--key", "staging-1")
    for _ in range(2):
        assert started(*words) == (0, f"{RUN} message staging-1 accepted as turn 2\n", "")
    assert the_run(server).messages == {"staging-1": "Now do the same for the staging logs"}


@pytest.mark.req("NODQ-18")
def test_without_a_key_each_message_gets_one_of_its_own(started: Cli, server: FakeServer) -> None:
    for _ in range(2):
        assert started(*SEND, "Again").code == 0
    assert list(the_run(server).messages.values()) == ["Again", "Again"]
    started(*SEND, "An empty key is no key left out", "--key", "")
    assert server.asked("POST .*/messages")[-1].json()["messageKey"] == ""


def test_a_text_that_no_message_can_be_is_not_sent(started: Cli, server: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "question"
    for content, problem in (
        (b"plum \xff", "not UTF-8 at byte 5"),
        (b"x" * 262_145, "larger than 262144 bytes"),
    ):
        file.write_bytes(content)
        refused = started(*SEND, "-f", str(file))
        assert (refused.code, refused.err) == (1, f"Error (FileNotRead): {file}: {problem}\n")
        resolved = started(
            "agentrun", "resolve", "hello-agent-run", "setup", "--happened", "--result", str(file)
        )
        assert (resolved.code, resolved.err) == (1, refused.err)
    assert not server.asked("POST .*/(messages|resolution)")


def test_a_message_may_come_from_a_file_or_standard_input(
    started: Cli, server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "question.txt").write_text("Was ist läuft?\n")
    assert started(*SEND, "-f", str(tmp_path / "question.txt"), "--key", "a").code == 0
    assert started(*SEND, "-f", "-", "--key", "b", stdin="and\nthis").code == 0
    assert the_run(server).messages == {"a": "Was ist läuft?\n", "b": "and\nthis"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "give the message once"),
        (("text", "-f", "-"), "give the message once"),
        (("-f", "no/such/file"), "no/such/file: No such file"),
    ],
)
def test_a_message_that_is_not_there_is_not_sent(
    started: Cli, server: FakeServer, words: tuple[str, ...], problem: str
) -> None:
    refused = started(*SEND, *words)
    assert refused.code == 1
    assert problem in refused.err
    assert not server.asked("POST .*/messages")


@pytest.mark.req("NOD-182")
def test_a_finished_run_takes_no_message(started: Cli, server: FakeServer) -> None:
    the_run(server).end()
    refused = started(*SEND, "more", "--key", "k")
    assert refused.code == 1
    assert refused.err.startswith("Error (AgentRunFinished): ")


def test_a_message_of_unknown_outcome_names_its_key(started: Cli, server: FakeServer) -> None:
    server.faults.append(Fault("POST .*/messages", times=99, lost=True))
    lost = started(*SEND, "more")
    assert (lost.code, len(the_run(server).messages)) == (1, 1)
    (key,) = the_run(server).messages
    assert f"--key {key}" in lost.err
