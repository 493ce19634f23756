"""Several objects in one command, selectors, dry runs, labels, replace and diff."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import FakeServer, Fault, Seen
from tests.unit.client.manifests import NEX_04, NEX_07


def agent(name: str, **metadata: object) -> str:
    thing = {"apiVersion": "nodus.dev/v1", "kind": "Agent", "metadata": {"name": name, **metadata}}
    return json.dumps(thing | {"spec": {"system": f"You are {name}."}})


@pytest.fixture
def three(cli: Cli, server: FakeServer) -> Cli:
    """Agents a and b of team web, c of none."""
    web = {"labels": {"team": "web"}}
    cli("apply", "-f", "-", stdin="\n---\n".join([agent("a", **web), agent("b", **web), agent("c")]))
    return cli


def names(server: FakeServer, plural: str = "agents") -> list[str]:
    return [name for _, kind, name in sorted(server.objects) if kind == plural]


@pytest.mark.parametrize(
    "words",
    [
        ("agent", "a", "b"),
        ("agent/a", "agents/b"),
        ("agents", "-l", "team=web"),
        ("agent/a", "agent/b", "agent/a"),
    ],
)
def test_get_shows_what_is_chosen(three: Cli, words: tuple[str, ...]) -> None:
    assert three("get", *words, "-o", "name").out == "agent/a\nagent/b\n"


def test_get_shows_what_there_is_and_then_says_what_is_missing(three: Cli) -> None:
    output = three("get", "agent", "a", "nope", "c", "-o", "name")
    assert (output.code, output.out) == (1, "agent/a\nagent/c\n")
    assert output.err == "Error (NotFound): agents 'nope' not found\n"
    fine = three("get", "agent", "a", "nope", "-o", "name", "--ignore-not-found")
    assert (fine.code, fine.out, fine.err) == (0, "agent/a\n", "")


def test_get_of_several_kinds(three: Cli) -> None:
    three("create", "budget", "cap", "--limit", "5.00")
    tables = three("get", "agents,budgets").out.split("\n\n")
    assert [table.split()[0] for table in tables] == ["NAME", "NAME"]
    assert "cap" in tables[1]
    assert three("get", "agent/a", "budget/cap", "-o", "name").out == "agent/a\nbudget/cap\n"
    both = json.loads(three("get", "agents,budgets", "-o", "json").out)
    assert (both["kind"], [item["kind"] for item in both["items"]]) == ("List", ["Agent"] * 3 + ["Budget"])


def test_get_of_every_project(three: Cli) -> None:
    assert three("get", "budgets", "-A").err == "No budgets in any project.\n"
    for project in ("default", "web"):
        three("create", "project", project)
    three("create", "agent", "there", "--system", "x", "-p", "web")
    rows = [line.split()[:2] for line in three("get", "agents", "-A").out.splitlines()]
    assert rows == [
        ["PROJECT", "NAME"],
        ["default", "a"],
        ["default", "b"],
        ["default", "c"],
        ["web", "there"],
    ]
    assert three("get", "projects", "-A", "-o", "name").out == "project/default\nproject/web\n"
    things = json.loads(three("get", "agents", "-A", "-l", "team=web", "-o", "json").out)["items"]
    assert [thing["metadata"]["name"] for thing in things] == ["a", "b"]


def test_get_of_what_a_file_describes(three: Cli) -> None:
    assert three("get", "-f", "-", "-o", "name", stdin=agent("b")).out == "agent/b\n"


@pytest.mark.parametrize(
    ("path", "order"),
    [
        (".metadata.name", "a10 a9 b"),
        ("{.spec.perRunMaxCostUSD}", "b a9 a10"),
        (".metadata.labels.rank", "a9 b a10"),
    ],
)
def test_get_sorts(cli: Cli, server: FakeServer, path: str, order: str) -> None:
    caps = {"a9": "9.5", "a10": "10", "b": "0.50"}
    for name, cap in caps.items():
        cli("create", "agent", name, "--system", "x", "--max-cost", cap)
    cli("label", "agent/b", "rank=one")
    cli("label", "agent/a10", "rank=two")
    listed = cli("get", "agents", "--sort-by", path, "-o", "custom-columns=N:.metadata.name", "--no-headers")
    assert listed.out.split() == order.split()


def test_columns_of_ones_own(three: Cli) -> None:
    lines = three("get", "agents", "-o", "custom-columns=WHO:.metadata.name,TEAM:.metadata.labels.team").out
    assert [line.split() for line in lines.splitlines()] == [
        ["WHO", "TEAM"],
        ["a", "web"],
        ["b", "web"],
        ["c", "<none>"],
    ]
    assert "write NAME:.metadata.name" in three("get", "agents", "-o", "custom-columns=a").err


def test_a_template_from_a_file(three: Cli, tmp_path: object) -> None:
    template = f"{tmp_path}/names.txt"
    with open(template, "w", encoding="utf-8") as file:
        file.write("{range .items[*]}{.metadata.name};{end}")
    assert three("get", "agents", "-o", f"jsonpath-file={template}").out == "a;b;c;"
    assert "Error (FileNotRead)" in three("get", "agents", "-o", "jsonpath-file=/nope").err


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("agent", "a", "b"), ["c"]),
        (("agent/c", "agent/a"), ["b"]),
        (("agents", "-l", "team=web"), ["c"]),
        (("agents", "--field-selector", "metadata.name=b"), ["a", "c"]),
        (("agents", "--all"), []),
    ],
)
def test_delete_deletes_what_is_chosen(
    three: Cli, server: FakeServer, words: tuple[str, ...], left: list[str]
) -> None:
    output = three("delete", *words)
    assert (output.code, output.err) == (0, "")
    assert names(server) == left
    assert sorted(output.out.split("\n")[:-1]) == [f"agent/{n} deleted" for n in "abc" if n not in left]


@pytest.mark.parametrize("words", [("-l", "team=web"), ("--field-selector", "metadata.name=a"), ("--all",)])
def test_only_the_objects_that_were_selected_are_deleted(
    three: Cli, server: FakeServer, words: tuple[str, ...]
) -> None:
    """One that is made again under the name between the list and the delete was not selected."""

    def remake(seen: Seen) -> None:
        if seen.method == "DELETE":
            server.object("agents", "a")["metadata"]["uid"] = "another"

    server.when_seen = remake
    output = three("delete", "agents", *words)
    assert (output.code, "a" in names(server)) == (1, True)
    assert output.err == "Error (Conflict): agents 'a' is not the one of the preconditions\n"
    assert three("delete", "agent/a").code == 0, "what is named is deleted, whichever it is"


def test_delete_of_what_files_describe(three: Cli, server: FakeServer) -> None:
    three("delete", "-f", "-", stdin=agent("a") + "\n---\n" + agent("c"))
    assert names(server) == ["b"]


def test_a_refusal_does_not_keep_the_others_from_being_deleted(three: Cli, server: FakeServer) -> None:
    server.faults.append(Fault("DELETE .*/agents/a$", status=403, reason="Forbidden"))
    output = three("delete", "agent", "a", "nope", "b")
    assert (output.code, output.out) == (1, "agent/b deleted\n")
    assert "Error (Forbidden): injected" in output.err
    assert "agents 'nope' not found" in output.err
    assert three("delete", "agent", "nope", "--ignore-not-found").code == 0


def test_a_key_that_is_not_known_is_told_once(three: Cli, server: FakeServer) -> None:
    server.faults.append(Fault("DELETE", times=9, status=401, reason="Unauthorized"))
    assert three("delete", "agent", "a", "b").err.count("Error (Unauthorized)") == 1
    assert len(server.asked("DELETE")) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("delete",), "which object? Give KIND/NAME"),
        (("delete", "agent", "-f", "x.yaml"), "one of them"),
        (("delete", "agent/a", "-l", "x=y"), "give one KIND and no name"),
        (("delete", "--all"), "give one KIND and no name"),
        (("delete", "agent", "a", "agent/b"), "write every object as KIND/NAME"),
        (("get", "agents", "-A", "-w"), "of one project"),
        (("get", "agent/a", "-A"), "are for lists"),
        (("label", "agent/a"), "nothing to set: give KEY=VALUE or KEY-"),
        (("label", "agent/a", "=x"), "KEY=VALUE or KEY-"),
        (("label", "agent/a", "x=1", "x-"), "write each key once"),
        (("patch", "agent/a"), "give the patch once"),
        (("patch", "agent/a", "--patch", "{}", "--patch-file", "-"), "give the patch once"),
        (("create",), "create what? Give -f FILE, or a kind: agentrun, "),
        (("create", "-f", "-", "budget", "x", "--limit", "1"), "create budget reads no file"),
        (("create", "apikey", "x"), "give --role or --permission"),
    ],
)
def test_what_has_no_meaning_teaches(
    three: Cli, server: FakeServer, words: tuple[str, ...], says: str
) -> None:
    asked = len(server.seen)
    output = three(*words)
    assert (output.code, output.out, says in output.err) == (1, "", True), output.err
    assert len(server.seen) == asked


def test_labels_are_set_changed_and_removed(three: Cli, server: FakeServer) -> None:
    assert three("label", "agent", "a", "c", "stage=test").out == "agent/a labeled\nagent/c labeled\n"
    assert server.object("agents", "a")["metadata"]["labels"] == {"team": "web", "stage": "test"}
    kept = three("label", "agent/a", "team=shop")
    assert (kept.code, kept.out) == (1, "")
    assert kept.err == "Error (AlreadyExists): agent/a has team=web; --overwrite changes it\n"
    assert three("label", "agent/a", "team=shop", "stage-", "--overwrite").code == 0
    assert server.object("agents", "a")["metadata"]["labels"] == {"team": "shop"}
    assert three("label", "agent/a", "team=shop").out == "agent/a not labeled\n"
    three("annotate", "agents", "--all", "owner=Ada Lovelace")
    assert {server.object("agents", n)["metadata"]["annotations"]["owner"] for n in "abc"} == {"Ada Lovelace"}


def test_a_label_is_not_written_over_what_somebody_else_wrote_meanwhile(
    three: Cli, server: FakeServer
) -> None:
    seen = server.object("agents", "c")["metadata"]["resourceVersion"]
    three("label", "agent/c", "team=web")
    assert server.asked("PATCH .*/c$")[-1].json()["metadata"]["resourceVersion"] == seen


def test_a_dry_run_changes_nothing(three: Cli, server: FakeServer) -> None:
    before = json.dumps(server.objects[("default", "agents", "a")])
    new = three("apply", "-f", "-", "--dry-run=server", stdin=agent("new"))
    assert new.out == "agent/new created (server dry run)\n"
    patch = three("patch", "agent/a", "--patch", '{"spec":{"system":"x"}}', "--dry-run=server", "-o", "yaml")
    assert yaml.safe_load(patch.out)["spec"] == {"system": "x"}
    assert three("label", "agent/a", "x=y", "--dry-run=server").out == "agent/a labeled (server dry run)\n"
    assert three("delete", "agent/a", "--dry-run=server").out == "agent/a deleted (server dry run)\n"
    assert three("replace", "-f", "-", "--dry-run=server", stdin=agent("a")).code == 0
    assert three("create", "project", "p", "--dry-run=server").out == "project/p created (server dry run)\n"
    assert (names(server), names(server, "projects")) == (["a", "b", "c"], [])
    assert json.dumps(server.objects[("default", "agents", "a")]) == before


def test_a_dry_run_of_the_client_sends_nothing_that_changes(three: Cli, server: FakeServer) -> None:
    writes = len(server.asked("^(POST|PUT|PATCH|DELETE)"))
    assert (
        three("apply", "-f", "-", "--dry-run=client", stdin=agent("new")).out
        == "agent/new applied (dry run)\n"
    )
    made = three(
        "create", "agentrun", "x", "--agent", "a", "--prompt", "go", "--dry-run=client", "-o", "yaml"
    )
    assert yaml.safe_load(made.out) == {
        "apiVersion": "nodus.dev/v1",
        "kind": "AgentRun",
        "metadata": {"name": "x"},
        "spec": {"agent": "a", "input": "go"},
    }
    three("delete", "agent", "a", "--dry-run=client")
    three("label", "agent/a", "x=y", "--dry-run=client")
    assert len(server.asked("^(POST|PUT|PATCH|DELETE)")) == writes


def test_apply_prints_the_objects_if_asked(cli: Cli, server: FakeServer) -> None:
    both = cli("apply", "-f", "-", "-o", "json", stdin=NEX_04 + "---\n" + NEX_07)
    assert [item["kind"] for item in json.loads(both.out)["items"]] == ["Agent", "AgentRun"]
    assert cli("apply", "-f", "-", "-o", "name", stdin=NEX_04).out == "agent/hello-agent\n"
    one = cli("apply", "-f", "-", "-o", "jsonpath={.metadata.name}", stdin=NEX_04)
    assert one.out == "hello-agent"


def test_replace_writes_what_exists_as_the_file_has_it(three: Cli, server: FakeServer) -> None:
    three("patch", "agent/a", "--patch", '{"spec":{"setup":"true"}}')
    assert three("replace", "-f", "-", stdin=agent("a")).out == "agent/a replaced\n"
    assert server.object("agents", "a")["spec"] == {"system": "You are a."}
    assert server.asked("PUT .*/agents/a$")
    output = three("replace", "-f", "-", stdin=agent("nope"))
    assert (output.code, "Error (NotFound)" in output.err) == (1, True)


@pytest.mark.parametrize("output", ["yaml", "json"])
@pytest.mark.parametrize("command", ["replace", "apply"])
def test_what_was_read_is_not_written_over_what_others_changed_since(
    three: Cli, server: FakeServer, command: str, output: str
) -> None:
    file = three("get", "agent/a", "-o", output).out.replace("You are a.", "You are mine.")
    three("patch", "agent/a", "--patch", '{"spec":{"system":"You are theirs."}}')
    late = three(command, "-f", "-", stdin=file)
    assert (late.code, late.out) == (1, "")
    assert late.err == "Error (Conflict): 'a' has another resourceVersion\n"
    assert server.object("agents", "a")["spec"] == {"system": "You are theirs."}
    again = three("get", "agent/a", "-o", output).out.replace("You are theirs.", "You are mine.")
    assert three(command, "-f", "-", stdin=again).code == 0
    assert server.object("agents", "a")["spec"] == {"system": "You are mine."}


@pytest.mark.parametrize("command", ["replace", "apply"])
def test_another_object_of_the_name_is_not_written_over(three: Cli, server: FakeServer, command: str) -> None:
    file = json.dumps({**json.loads(agent("a", uid="another")), "spec": {"system": "x"}})
    assert three(command, "-f", "-", stdin=file).err == "Error (Conflict): 'a' has another uid\n"
    assert server.object("agents", "a")["spec"] == {"system": "You are a."}


def test_what_was_read_can_be_made_again_under_another_name(three: Cli, server: FakeServer) -> None:
    three("create", "agentrun", "x", "--agent", "a", "--prompt", "go")
    read = json.loads(three("get", "ar/x", "-o", "json").out)
    read["metadata"]["name"] = "y"
    assert three("create", "-f", "-", stdin=json.dumps(read)).code == 0
    read["metadata"]["name"] = "z"
    listed = {"apiVersion": "nodus.dev/v1", "kind": "AgentRunList", "items": [read]}
    assert three("create", "-f", "-", stdin=json.dumps(listed)).code == 0
    for seen in server.asked("POST")[-2:]:
        [sent] = seen.json().get("items") or [seen.json()]
        assert not {"uid", "resourceVersion"} & sent["metadata"].keys()


def test_diff_says_what_an_apply_would_change(three: Cli, server: FakeServer) -> None:
    same = three("diff", "-f", "-", stdin=agent("a"))
    assert (same.code, same.out) == (0, "")
    changed = three("diff", "-f", "-", stdin=agent("a").replace("You are a.", "You are \\u001b new."))
    assert changed.code == 2
    assert "--- stored/agent/a" in changed.out
    assert "-  system: You are a." in changed.out
    assert '+  system: "You are \\e new."' in changed.out
    new = three("diff", "-f", "-", stdin=agent("new"))
    assert (new.code, "+  name: new" in new.out) == (2, True)
    refused = three("diff", "-f", "-", stdin=agent("a").replace("system", "sistem"))
    assert (refused.code, "spec.sistem: unknown field" in refused.err) == (1, True)
    assert names(server) == ["a", "b", "c"]


def test_create_from_a_file_does_not_change_what_exists(three: Cli, server: FakeServer) -> None:
    text = agent("d", labels={"team": "ops"}) + "\n---\n" + agent("a")
    output = three("create", "-f", "-", stdin=text)
    assert (output.code, output.out) == (1, "agent/d created\n")
    assert "Error (AlreadyExists)" in output.err
    assert server.object("agents", "d")["metadata"]["labels"] == {"team": "ops"}


def test_create_makes_names_where_a_file_asks_for_them(three: Cli, server: FakeServer) -> None:
    run = {"apiVersion": "nodus.dev/v1", "kind": "AgentRun", "metadata": {"generateName": "more-"}}
    run |= {"spec": {"agent": "a", "input": "go"}}
    runs = {"apiVersion": "nodus.dev/v1", "kind": "AgentRunList", "items": [run, run]}
    made = three("create", "-f", "-", stdin=json.dumps(run) + "\n---\n" + json.dumps(runs))
    assert made == (0, "".join(f"agentrun/more-0000{n} created\n" for n in (1, 2, 3)), "")
    assert three("create", "-f", "-", "-o", "name", stdin=json.dumps(run)).out == "agentrun/more-00004\n"
    tried = three("create", "-f", "-", "--dry-run=client", stdin=json.dumps(run))
    assert tried.out == "agentrun/more- created (dry run)\n"
    run["metadata"] |= {"name": "x"}
    assert three("create", "-f", "-", stdin=json.dumps(run)).out == "agentrun/x created\n"


def test_a_name_that_is_made_by_a_create_whose_answer_was_lost_is_made_once(
    three: Cli, server: FakeServer
) -> None:
    server.faults.append(Fault("POST", lost=True))
    agent_ = json.dumps({**json.loads(agent("x")), "metadata": {"generateName": "more-"}})
    assert three("create", "-f", "-", stdin=agent_).out == "agent/more-00001 created\n"
    assert names(server) == ["a", "b", "c", "more-00001"]


@pytest.mark.parametrize("command", ["apply", "replace", "diff", "delete", "get"])
def test_what_finds_an_object_by_its_name_makes_none(three: Cli, server: FakeServer, command: str) -> None:
    asked = len(server.seen)
    agent_ = json.dumps({**json.loads(agent("x")), "metadata": {"generateName": "more-"}})
    output = three(command, "-f", "-", stdin=agent_)
    assert (output.code, output.out, len(server.seen)) == (1, "", asked)
    assert "metadata.name: is required: generateName is for `nodus create -f` only" in output.err


def test_the_beginning_of_a_name_is_a_text(three: Cli) -> None:
    agent_ = json.dumps({**json.loads(agent("x")), "metadata": {"generateName": 7}})
    assert "metadata.generateName: must be a text: write '7'" in three("create", "-f", "-", stdin=agent_).err


def test_waiting_for_several(three: Cli, server: FakeServer) -> None:
    for name in ("x", "y"):
        three("create", "ar", name, "--agent", "a", "--prompt", "go")
    assert three("wait", "ar", "x", "y", "--for=phase=Succeeded").out == (
        "agentrun/x condition met\nagentrun/y condition met\n"
    )
    other = three("wait", "ar/x", "ar/nope", "ar/y", "--for=phase=Failed")
    assert (other.code, other.out) == (2, "")
    assert other.err.count("will not become Failed") == 2
    three("delete", "ar/x", "--wait=false")
    assert three("wait", "ar/x", "--for=delete").out == "agentrun/x condition met\n"
