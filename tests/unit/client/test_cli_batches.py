"""`nodus create -f` and `nodus apply -f` of lists: what is made together, and what one after the other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import FakeServer, Fault
from tests.unit.client.manifests import NEX_04


def run(name: str, /, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "nodus.dev/v1",
        "kind": "AgentRun",
        "metadata": {"name": name},
        "spec": {"agent": "claude-assistant", "input": f"Do {name}.", **spec},
    }


def runs(*items: Any, kind: str = "AgentRunList") -> str:
    """A list, as JSON."""
    return json.dumps({"apiVersion": "nodus.dev/v1", "kind": kind, "items": list(items)})


YAML = """\
apiVersion: nodus.dev/v1
kind: AgentRunList
items:
- apiVersion: nodus.dev/v1
  kind: AgentRun
  metadata: {name: first, labels: {team: web}}
  spec: {agent: claude-assistant, input: Do the first.}
- apiVersion: nodus.dev/v1
  kind: AgentRun
  metadata: {name: second}
  spec:
    agent: claude-assistant
    input: Do the second.
"""


@pytest.mark.req("NOD-360", "NOD-362", "NOD-364")
@pytest.mark.parametrize("form", ["yaml", "json", "stdin"])
def test_the_runs_of_a_list_are_created_with_one_call(
    cli: Cli, server: FakeServer, tmp_path: Any, form: str
) -> None:
    text = YAML if form == "yaml" else runs(run("first"), run("second"))
    file = tmp_path / f"runs.{form}"
    file.write_text(text)
    output = cli("create", "-f", "-", stdin=text) if form == "stdin" else cli("create", "-f", str(file))
    assert output == (0, "agentrun/first created\nagentrun/second created\n", "")
    (call,) = server.asked("POST")
    assert call.headers["idempotency-key"]
    assert [item["metadata"]["name"] for item in call.json()["items"]] == ["first", "second"]
    assert len(server.runs) == 2
    if form == "yaml":
        assert server.object("agentruns", "first")["metadata"]["labels"] == {"team": "web"}


@pytest.mark.req("NOD-361", "FLD-17")
def test_one_run_that_is_refused_keeps_all_of_its_list_from_being_made(cli: Cli, server: FakeServer) -> None:
    wrong = YAML.replace("    input: Do the second.", "    input: Do the second.\n    agnet: x")
    output = cli("create", "-f", "-", stdin=wrong + "---\n" + NEX_04)
    assert (output.code, output.out) == (1, "")
    assert output.err.splitlines() == [
        "Error (Invalid): items[1]: AgentRun is invalid; nothing was created",
        "  items[1].spec.agnet: unknown field (standard input line 14)",
        "a list of 2 was refused; 1 after it not sent",
    ]
    assert server.objects == {}


@pytest.mark.req("NOD-361")
def test_a_name_that_is_taken_refuses_the_list(cli: Cli, server: FakeServer) -> None:
    cli("create", "-f", "-", stdin=runs(run("b")))
    output = cli("create", "-f", "-", stdin=runs(run("a"), run("b"), run("c")))
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith("Error (AlreadyExists): items[1]: ")
    assert {name for _, name in server.runs} == {"b"}


@pytest.mark.req("NOD-363", "FLD-16")
def test_a_list_whose_answer_is_lost_is_sent_again_under_the_same_key(cli: Cli, server: FakeServer) -> None:
    server.faults.append(Fault("POST", lost=True))
    output = cli("create", "-f", "-", stdin=runs(run("a"), run("b")))
    assert (output.code, output.out) == (0, "agentrun/a created\nagentrun/b created\n")
    calls = server.asked("POST")
    assert len(calls) == 2
    assert len({call.headers["idempotency-key"] for call in calls}) == 1
    assert len(server.runs) == 2


def test_a_list_stands_among_other_objects_in_the_order_of_the_files(cli: Cli, server: FakeServer) -> None:
    text = NEX_04 + "---\n" + YAML + "---\n" + json.dumps(run("last", agent="hello-agent"))
    assert cli("create", "-f", "-", stdin=text).out.splitlines() == [
        "agent/hello-agent created",
        "agentrun/first created",
        "agentrun/second created",
        "agentrun/last created",
    ]
    assert len(server.asked("POST")) == 3


@pytest.mark.parametrize("mode", ["client", "server"])
def test_a_list_that_is_only_tried_is_not_made(cli: Cli, server: FakeServer, mode: str) -> None:
    output = cli("create", "-f", "-", f"--dry-run={mode}", stdin=YAML)
    mark = "dry run" if mode == "client" else "server dry run"
    assert output.out == f"agentrun/first created ({mark})\nagentrun/second created ({mark})\n"
    assert server.objects == {}
    assert [call.query for call in server.seen] == ([] if mode == "client" else [{"dryRun": "All"}])
    refused = cli("create", "-f", "-", "--dry-run=server", stdin=runs(run("a"), run("b", input="")))
    assert refused.code == 1


def test_the_runs_that_were_created_can_be_printed(cli: Cli, server: FakeServer) -> None:
    assert cli("create", "-f", "-", "-o", "name", stdin=YAML).out == "agentrun/first\nagentrun/second\n"
    names = cli(
        "create", "-f", "-", "-o", "jsonpath={.items[*].metadata.name}", stdin=runs(run("a"), run("b"))
    )
    assert names.out == "a b"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (runs(run("a"), run("b") | {"kind": "Agent"}), "items[1].kind: must be AgentRun in an AgentRunList"),
        (
            runs(run("a"), run("b") | {"metadata": {"name": "b", "namespace": "lab"}}),
            "items[1].metadata.namespace: must be the configured one",
        ),
        (
            runs(*[run(name) | {"metadata": {"name": name, "namespace": name}} for name in ("a", "b")]),
            "items[1].metadata.namespace: must be a ",
        ),
        (runs(*(run(f"r{number}") for number in range(101))), "items: 101 runs: at most 100 are created"),
        (runs(), "no object in it"),
        (YAML.replace("{name: second}", "{}"), "line 10: items[1].metadata.name: is required"),
    ],
)
def test_what_cannot_be_created_together_is_told_before_anything_is_sent(
    cli: Cli, server: FakeServer, text: str, says: str
) -> None:
    output = cli("create", "-f", "-", stdin=text)
    assert (output.code, output.out) == (1, "")
    assert says in output.err
    assert server.seen == []


def test_a_list_is_created_in_its_own_project(cli: Cli, server: FakeServer) -> None:
    placed = [run(name) | {"metadata": {"name": name, "namespace": "lab"}} for name in ("a", "b")]
    assert cli("create", "-f", "-", stdin=runs(*placed)).code == 0
    assert {project for project, _ in server.runs} == {"lab"}
    assert cli("create", "-f", "-", "-p", "web", stdin=runs(run("c"))).code == 0
    assert ("web", "c") in server.runs


def test_a_list_of_any_kind_is_created_one_by_one(cli: Cli, server: FakeServer) -> None:
    output = cli("create", "-f", "-", stdin=runs(run("a"), run("b", input=""), run("c"), kind="List"))
    assert (output.code, output.out) == (1, "agentrun/a created\n")
    assert output.err.endswith("agentrun/b was refused; 1 after it not sent\n")


@pytest.mark.req("NOD-052", "NOD-482")
def test_a_list_that_is_applied_again_changes_nothing(cli: Cli, server: FakeServer) -> None:
    first = cli("apply", "-f", "-", stdin=runs(run("a"), run("b")))
    assert (first.code, first.out) == (0, "agentrun/a created\nagentrun/b created\n")
    again = cli("apply", "-f", "-", stdin=runs(run("a"), run("b"), run("c")))
    assert (again.code, again.out.splitlines()) == (
        0,
        ["agentrun/a unchanged", "agentrun/b unchanged", "agentrun/c created"],
    )
    assert len(server.runs) == 3
    shown = cli("get", "ar", "-o", "yaml").out
    assert cli("apply", "-f", "-", stdin=shown).out.count("unchanged") == 3


@pytest.mark.req("FLD-17")
def test_an_item_that_apply_is_refused_is_named_with_its_line(cli: Cli, server: FakeServer) -> None:
    wrong = YAML.replace("    input: Do the second.", "    input: Do the second.\n    agnet: x")
    output = cli("apply", "-f", "-", stdin=wrong)
    assert (output.code, output.out) == (1, "agentrun/first created\n")
    assert "  spec.agnet: unknown field (standard input line 14)" in output.err
