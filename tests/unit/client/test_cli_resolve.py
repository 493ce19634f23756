"""`nodus agentrun resolve`, and what tells people that a run waits for them; the same from Python."""

from pathlib import Path

import nodus
import pytest

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_runs import Outcome
from tests.unit.client.fake_server import FakeServer, Fault
from tests.unit.client.manifests import NEX_04, NEX_07

STEP = "turn-1.tool.run_command.1"
HELD = Outcome("Waiting", None, "NeedsResolution", "Look at it.", unresolved=(STEP, "setup"))
RESOLVE = ("agentrun", "resolve", "hello-agent-run")


@pytest.fixture
def held(cli: Cli, server: FakeServer) -> Cli:
    """A run that waits for somebody to say what became of two steps."""
    server.outcomes["hello-agent-run"] = HELD
    assert cli("apply", "-f", "-", stdin=NEX_04 + "---\n" + NEX_07).code == 0
    server.runs["default", "hello-agent-run"].end()
    return cli


def said(server: FakeServer) -> list[dict[str, object]]:
    """The statements that came in, without their keys."""
    bodies = [seen.json() for seen in server.asked("POST .*/resolution$")]
    return [{key: value for key, value in body.items() if key != "requestKey"} for body in bodies]


@pytest.mark.req("NODQ-55")
def test_resolve_says_what_happened_with_its_output_and_exit_code(
    held: Cli, server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "out.txt").write_text("paid é\n")
    output = held(*RESOLVE, STEP, "--happened", "--result", str(tmp_path / "out.txt"), "--exit-code", "3")
    assert (output.code, output.out) == (0, f"agentrun/hello-agent-run {STEP} resolved\n")
    assert output.err == "still unresolved: setup\n"
    result = {"text": "paid é\n", "exitCode": 3}
    assert said(server) == [{"step": STEP, "outcome": "Happened", "result": result}]


@pytest.mark.req("NODQ-55")
def test_resolve_says_what_did_not_happen_and_the_run_goes_on_with_the_last(
    held: Cli, server: FakeServer
) -> None:
    assert held(*RESOLVE, STEP, "--did-not-happen").code == 0
    output = held(*RESOLVE, "setup", "--happened", "--exit-code", "0")
    assert (output.code, output.err) == (0, "")
    assert said(server) == [
        {"step": STEP, "outcome": "DidNotHappen"},
        {"step": "setup", "outcome": "Happened", "result": {"exitCode": 0}},
    ]
    assert server.runs["default", "hello-agent-run"].status()["phase"] == "Succeeded"


@pytest.mark.req("NODQ-55", "NOD-277")
def test_a_lost_answer_is_asked_for_again_under_the_same_request_key(held: Cli, server: FakeServer) -> None:
    server.faults.append(Fault("POST .*/resolution$", lost=True))
    assert held(*RESOLVE, STEP, "--did-not-happen").code == 0
    keys = [seen.json()["requestKey"] for seen in server.asked("POST .*/resolution$")]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert held(*RESOLVE, "setup", "--happened", "--key", "mine").code == 0
    assert server.asked("POST .*/resolution$")[-1].json()["requestKey"] == "mine"


@pytest.mark.req("NODQ-55", "NOD-500")
def test_who_comes_second_is_told_who_was_first(held: Cli, server: FakeServer) -> None:
    held(*RESOLVE, STEP, "--happened")
    output = held(*RESOLVE, STEP, "--did-not-happen")
    assert output.code == 1
    assert "Error (Conflict)" in output.err
    assert "resolved by 'bob'" in output.err


@pytest.mark.req("NODQ-55")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "either --happened or --did-not-happen"),
        (("--happened", "--did-not-happen"), "either --happened or --did-not-happen"),
        (("--did-not-happen", "--exit-code", "0"), "only with --happened"),
        (("--happened", "--exit-code", "zero"), "zero"),
        (("--happened", "--result", "no-such-file"), "no-such-file"),
    ],
)
def test_a_statement_without_a_meaning_is_refused_and_nothing_is_sent(
    held: Cli, server: FakeServer, words: tuple[str, ...], says: str
) -> None:
    output = held(*RESOLVE, STEP, *words)
    assert output.code == 1
    assert says in output.err
    assert said(server) == []


def test_a_result_that_is_no_text_is_refused(held: Cli, server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"ab\xff")
    output = held(*RESOLVE, STEP, "--happened", "--result", str(tmp_path / "raw"))
    assert (output.code, "byte 2" in output.err) == (1, True)
    assert said(server) == []


@pytest.mark.req("NOD-090")
def test_steps_mark_an_uncertain_step_with_its_guarantee(held: Cli) -> None:
    (line,) = [line for line in held("agentrun", "steps", "hello-agent-run").out.splitlines() if STEP in line]
    assert "Uncertain (AtMostOnce)" in line


@pytest.mark.req("NOD-090", "NOD-491")
def test_the_wide_table_shows_guarantee_and_attempt_of_every_step(held: Cli) -> None:
    lines = held("agentrun", "steps", "hello-agent-run", "-o", "wide").out.splitlines()
    for word in ("GUARANTEE", "ATTEMPT", "RESOLVED"):
        assert word in lines[0]
    assert all("AtMostOnce" in line or "ExactlyOnce" in line for line in lines[1:])


@pytest.mark.req("NOD-090", "NOD-483")
def test_wait_says_once_that_a_person_is_needed_and_goes_on_waiting(held: Cli, server: FakeServer) -> None:
    run = server.runs["default", "hello-agent-run"]
    looks: list[int] = []

    def somebody_comes(seen: object) -> None:
        looks.append(1)
        if len(looks) == 4:
            run.outcome = Outcome()

    server.when_seen = somebody_comes
    output = held(
        "wait", "agentrun/hello-agent-run", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"
    )
    assert output.code == 0
    assert output.err.splitlines() == [
        "agentrun/hello-agent-run waits for a person (NeedsResolution): the outcome of a step is unknown: look at "
        "`status.unresolved`, then resolve or cancel it",
        f"  nodus agentrun resolve hello-agent-run {STEP} --happened | --did-not-happen",
        "  nodus agentrun resolve hello-agent-run setup --happened | --did-not-happen",
        "  nodus cancel agentrun/hello-agent-run",
    ]


@pytest.mark.req("NOD-483")
def test_waiting_for_the_wait_itself_needs_nobody(held: Cli) -> None:
    output = held("wait", "agentrun/hello-agent-run", "--for=jsonpath={.status.reason}=NeedsResolution")
    assert (output.code, output.err) == (0, "")


@pytest.mark.req("NODQ-55", "NOD-513")
def test_a_handle_resolves_steps(held: Cli, client: nodus.Client, server: FakeServer) -> None:
    run = nodus.AgentRun.from_name("hello-agent-run", client=client)
    status = run.resolve(STEP, happened=True, text="paid", exit_code=0, request_key="k")
    assert [entry.step for entry in status.unresolved] == ["setup"]
    assert run.resolve(STEP, happened=True, text="paid", exit_code=0, request_key="k") == status
    with pytest.raises(nodus.errors.ApiError) as refused:
        run.resolve(STEP, happened=False)
    assert refused.value.reason == "Conflict"
    run.resolve("setup", happened=False)
    assert run.wait(60).phase == "Succeeded"
