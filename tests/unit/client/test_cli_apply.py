"""`nodus apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import FakeServer, Fault
from tests.unit.client.manifests import NEX_04, NEX_07, NEX_18, NEX_34, NEX_46


@pytest.mark.req("NOD-482", "NOD-009")
def test_nex_04_05_apply_creates_configures_and_leaves(cli: Cli, server: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(NEX_04)
    assert cli("apply", "-f", str(file)).out == "agent/hello-agent created\n"
    assert cli("apply", "-f", str(file)).out == "agent/hello-agent unchanged\n"
    file.write_text(NEX_04.replace("careful", "bold"))
    assert cli("apply", "-f", str(file)).out == "agent/hello-agent configured\n"
    spec = server.object("agents", "hello-agent")["spec"]
    assert spec["setup"] == "printf 'workspace-ready\\n' > ready.txt"
    assert (spec["perRunMaxCostUSD"], spec["model"]) == ("0.50", {"access": "Nodus"})
    assert not server.runs


@pytest.mark.req("NOD-052", "NOD-482")
def test_nex_07_a_run_that_is_applied_again_is_the_same_run(cli: Cli, server: FakeServer) -> None:
    cli("apply", "-f", "-", stdin=NEX_04)
    assert cli("apply", "-f", "-", stdin=NEX_07).out == "agentrun/hello-agent-run created\n"
    assert cli("get", "ar/hello-agent-run").code == 0
    assert cli("apply", "-f", "-", stdin=NEX_07).out == "agentrun/hello-agent-run unchanged\n"
    assert len(server.runs) == 1


@pytest.mark.req("NOD-006")
def test_documents_and_files_are_applied_in_their_order(cli: Cli, server: FakeServer, tmp_path: Path) -> None:
    for name, text in (("2.yaml", NEX_07), ("1.yml", NEX_04 + "---\n" + NEX_34), ("notes.txt", "x: [")):
        (tmp_path / name).write_text(text)
    assert cli("apply", "-f", str(tmp_path), "-f", "-", stdin=NEX_18).out.splitlines() == [
        "agent/hello-agent created",
        "agent/parallel-agents-worker created",
        "agentrun/hello-agent-run created",
        "agentrun/shared-subagents created",
    ]
    assert server.object("agentruns", "shared-subagents")["spec"]["parallelism"] == 2


def test_nex_34_46_values_arrive_as_written(cli: Cli, server: FakeServer) -> None:
    cli("apply", "-f", "-", stdin="\n---\n".join((NEX_34, NEX_04, NEX_46)))
    assert server.object("agents", "parallel-agents-worker")["spec"]["model"] == {
        "access": "Nodus",
        "families": ["haiku"],
        "maxTokens": 1024,
    }
    run = server.object("agentruns", "hello-agent-run")["spec"]
    assert (run["keepAlive"], run["deadline"]) == (True, "2030-01-01T00:00:00Z")


@pytest.mark.req("FLD-17", "NODQ-92", "NOD-028")
def test_words_and_money_are_kept_as_written(cli: Cli, server: FakeServer) -> None:
    text = (
        NEX_04.replace('"0.50"', "0.50").replace("/workspace}", "on}").replace("access: Nodus", "name: 1e3")
    )
    cli("apply", "-f", "-", stdin="\ufeff" + text.replace("\n", "\r\n"))
    spec = server.object("agents", "hello-agent")["spec"]
    assert (spec["perRunMaxCostUSD"], spec["continuity"]["stateDir"], spec["model"]["name"]) == (
        "0.50",
        "on",
        "1e3",
    )


@pytest.mark.req("NOD-484", "NOD-002")
@pytest.mark.parametrize("output", ["yaml", "json"])
def test_what_get_prints_can_be_applied(cli: Cli, server: FakeServer, output: str) -> None:
    cli("apply", "-f", "-", stdin=NEX_04 + "---\n" + NEX_07)
    shown = cli("get", "ar/hello-agent-run", "-o", output).out
    assert "status" in shown
    assert cli("apply", "-f", "-", stdin=shown).out == "agentrun/hello-agent-run unchanged\n"
    assert {*server.asked("PATCH")[-1].json()} == {"apiVersion", "kind", "metadata", "spec"}
    assert (
        cli("apply", "-f", "-", stdin=cli("get", "agents", "-o", output).out).out
        == "agent/hello-agent unchanged\n"
    )


@pytest.mark.req("FLD-17", "NODQ-61")
def test_refused_fields_are_named_with_their_lines(cli: Cli, server: FakeServer) -> None:
    text = NEX_04.replace("workingDir", "workingDri") + "---\n" + NEX_07
    output = cli("apply", "-f", "-", stdin=text)
    assert (output.code, output.out) == (1, "")
    assert output.err.splitlines() == [
        "Error (Invalid): Agent is invalid",
        "  spec.workingDri: unknown field (standard input line 6)",
        "agent/hello-agent was refused; 1 after it not sent",
    ]
    assert server.objects == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NEX_04.replace("v1", "v2"), "line 1: apiVersion: must be nodus.dev/v1, not 'nodus.dev/v2'"),
        (NEX_04.replace("apiVersion: nodus.dev/v1\n", ""), "line 1: apiVersion: must be nodus.dev/v1"),
        (
            NEX_04.replace("kind: Agent", "kind: Agnet"),
            "line 2: kind: no kind 'Agnet'; did you mean 'agent'?",
        ),
        (NEX_04.replace("kind: Agent", "kind: agents"), "line 2: kind: write it Agent"),
        (NEX_04.replace("  name: hello-agent\n", "  labels: {}\n"), "metadata.name: is required"),
        (
            NEX_04.replace("name: hello-agent", "name: 123"),
            "line 4: metadata.name: must be a text: write '123'",
        ),
        (NEX_04.replace("metadata:\n  name: hello-agent", "metadata: x"), "metadata: must be a mapping"),
        ("- 1", "expected apiVersion, kind, metadata and spec"),
        ("kind: List\napiVersion: v1\nitems: {a: 1}", "items: must be a list"),
        ("kind: List\nitems:\n- 1", "line 3: items[0]: must be a mapping"),
        (NEX_04 + "  setup: x\n", "line 17: spec.setup: this key is given twice (first in line 8)"),
        ("# nothing\n---\n", "-: no object in it"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_before_anything_is_sent(
    cli: Cli, server: FakeServer, text: str, says: str
) -> None:
    output = cli("apply", "-f", "-", stdin=text)
    assert (output.code, output.out) == (1, "")
    assert says in output.err
    assert server.seen == []


def test_a_broken_last_file_keeps_the_first_from_being_sent(
    cli: Cli, server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(NEX_04)
    (tmp_path / "b.yaml").write_text("a: [")
    assert "b.yaml line" in cli("apply", "-f", str(tmp_path)).err
    assert server.seen == []


@pytest.mark.parametrize(("name", "says"), [("gone.yaml", "No such file"), (".", "no *.yaml")])
def test_files_that_are_not_there(cli: Cli, server: FakeServer, tmp_path: Path, name: str, says: str) -> None:
    output = cli("apply", "-f", str(tmp_path / name))
    assert (output.code, says in output.err) == (1, True)


@pytest.mark.req("NODQ-93")
def test_a_member_without_a_name_is_called_after_its_group_and_task(cli: Cli, server: FakeServer) -> None:
    member = NEX_07.replace("  name: hello-agent-run", "  {}").replace(
        "spec:", "spec:\n  group: g\n  taskKey: a"
    )
    assert cli("apply", "-f", "-", stdin=NEX_04 + "---\n" + member).out.endswith("agentrun/g-a created\n")


@pytest.mark.req("NOD-498", "NOD-003")
def test_the_project_of_the_option_and_of_the_manifest(cli: Cli, server: FakeServer) -> None:
    theirs = NEX_04.replace("metadata:", "metadata:\n  namespace: theirs")
    assert cli("apply", "-f", "-", stdin=theirs).code == 0
    assert cli("apply", "-p", "mine", "-f", "-", stdin=NEX_04).code == 0
    assert [key[0] for key in server.objects] == ["theirs", "mine"]
    output = cli("apply", "-p", "mine", "-f", "-", stdin=theirs)
    assert "metadata.namespace: is 'theirs', but --project says 'mine'" in output.err


def test_an_agent_that_was_made_anew_meanwhile_is_not_unchanged(cli: Cli, server: FakeServer) -> None:
    cli("apply", "-f", "-", stdin=NEX_04)

    def remake(seen: object) -> None:
        if len(server.asked("PATCH")) == 2:
            server.object("agents", "hello-agent")["metadata"] |= {"uid": "another", "resourceVersion": "7"}

    server.when_seen = remake
    assert cli("apply", "-f", "-", stdin=NEX_04).out == "agent/hello-agent configured\n"


# --- what stands at an address ---


def put(server: FakeServer, path: str, **reply: Any) -> str:
    server.faults.append(Fault(f"GET {path}$", **reply))
    return server.address + path


def test_a_manifest_is_read_from_an_address_without_the_key(cli: Cli, server: FakeServer) -> None:
    put(server, "/agent.yaml", status=200, body=NEX_04.encode())
    moved = put(server, "/moved", status=302, headers={"Location": "/agent.yaml"})
    assert cli("apply", "-f", moved).out == "agent/hello-agent created\n"
    assert all("authorization" not in seen.headers for seen in server.asked("GET /(moved|agent.yaml)"))


def test_what_cannot_be_fetched_is_named(cli: Cli, server: FakeServer) -> None:
    missing = put(server, "/missing.yaml", status=404, body=b"no")
    assert cli("apply", "-f", missing).err == f"Error (FileNotRead): {missing}: HTTP 404\n"
    round_about = put(server, "/round", times=9, status=302, headers={"Location": "/round"})
    assert "leads elsewhere too often" in cli("apply", "-f", round_about).err
    wrong = put(server, "/wrong.yaml", status=200, body=b"a: 1\na: 2\n")
    assert (
        f"Error (InvalidManifest): {wrong} line 2: a: this key is given twice"
        in cli("apply", "-f", wrong).err
    )
