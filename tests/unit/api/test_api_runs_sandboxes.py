"""A run's sandbox under its name: people work in it beside the agent, and its run alone decides over it."""

import json
from typing import Any

import pytest
from nodus_core.kernel.sandboxes import Used
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.api.rest import Rest, manifest


def behaves(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    return RUNNING if request["command"] == "forever" else exited(f"{request['command']}\n")


@pytest.fixture
def rest() -> Rest:
    """A run that waits for its next message, with its sandbox."""
    made = Rest(plays([says("one"), says("two")]), behaves)
    made.agent()
    made.run("kept", keepAlive=True)
    made.world.settle()
    assert made.get("agentruns/kept").json["status"]["phase"] == "Waiting"
    return made


def sandbox(rest: Rest) -> str:
    return rest.get("agentruns/kept").json["status"]["sandbox"]["name"]


@pytest.mark.req("NOD-445", "NOD-397")
def test_a_persons_command_runs_beside_the_agent_and_is_no_step_of_the_run(rest: Rest) -> None:
    name = sandbox(rest)
    steps = rest.get("agentruns/kept/steps").json["items"]
    version = rest.get("agentruns/kept").json["metadata"]["resourceVersion"]
    placed = rest.post(f"sandboxes/{name}/commands", {"command": "date", "requestKey": "k"})
    assert placed.code == 202, placed.json
    again = rest.post(f"sandboxes/{name}/commands", {"command": "date", "requestKey": "k"})
    assert (again.code, again.json["metadata"]) == (200, placed.json["metadata"])
    rest.world.sandboxes.turn()
    command = f"sandboxes/{name}/commands/{placed.json['metadata']['name']}"
    assert rest.get(command).json["status"]["state"] == "Exited"
    assert rest.get(f"{command}/output").text == "date\n"
    history = rest.get(f"sandboxes/{name}/commands").json["items"]
    assert [item["spec"]["command"] for item in history] == ["date"]
    assert rest.get("agentruns/kept/steps").json["items"] == steps
    assert rest.get("agentruns/kept").json["metadata"]["resourceVersion"] == version


@pytest.mark.req("NOD-439", "NOD-440", "NOD-443")
def test_when_the_run_ends_its_commands_are_written_off_and_their_history_stays(rest: Rest) -> None:
    name = sandbox(rest)
    commands = f"sandboxes/{name}/commands"
    ended = rest.post(commands, {"command": "date", "requestKey": "a"}).json["metadata"]["name"]
    rest.post(commands, {"command": "forever", "requestKey": "b"})
    rest.world.sandboxes.turn()
    rest.post("agentruns/kept/cancel")
    rest.world.settle()
    states = {item["spec"]["command"]: item["status"]["state"] for item in rest.get(commands).json["items"]}
    assert states == {"date": "Exited", "forever": "Lost"}
    assert rest.get(f"{commands}/{ended}/output").json["reason"] == "OutputGone"
    refused = rest.post(commands, {"command": "more", "requestKey": "c"})
    assert (refused.code, refused.json["reason"]) == (409, "SandboxNotRunning")
    assert "released" in refused.json["message"]


def test_who_may_not_write_runs_does_nothing_in_a_runs_sandbox(rest: Rest) -> None:
    """What is done there steers the run, and reads what the run was given."""
    name = sandbox(rest)
    of_sandboxes = rest.new_key(permissions=("sandboxes:read", "sandboxes:write"))
    for path, body in (
        ("commands", {"command": "env", "requestKey": "k"}),
        ("terminals", {"requestKey": "k"}),
        ("files/uploads", {"size": 1, "sha256": "0" * 64}),
    ):
        refused = rest.post(f"sandboxes/{name}/{path}", body, key=of_sandboxes)
        assert (refused.code, refused.json.get("reason")) == (403, "Forbidden"), path
        assert "agentruns:write" in refused.json["message"]
    assert rest.get(f"sandboxes/{name}/commands", key=of_sandboxes).code == 200


@pytest.mark.req("NOD-467")
def test_nobody_reaches_a_sandbox_of_another_project(rest: Rest) -> None:
    name = sandbox(rest)
    body = {"command": "date", "requestKey": "k"}
    assert rest.post(f"sandboxes/{name}/commands", body, project="lab").code == 404
    assert rest.get(f"sandboxes/{name}/commands", project="lab").code == 404
    assert rest.get(f"sandboxes/{name[:-1]}9/commands").code == 404


def listed(rest: Rest, **query: str) -> list[str]:
    return [item["metadata"]["name"] for item in rest.get("sandboxes", query=query).json["items"]]


@pytest.mark.req("NOD-397", "NOD-407", "NOD-414", "NOD-021")
def test_both_kinds_are_listed_together_with_what_holds_of_them(rest: Rest) -> None:
    name = sandbox(rest)
    rest.post("sandboxes", manifest("Sandbox", "mine", {}))
    rest.world.pass_time(1)
    assert listed(rest) == sorted(["mine", name])
    assert listed(rest, limit="1") == [sorted(["mine", name])[0]]
    assert listed(rest, fieldSelector="status.phase=Running") == sorted(["mine", name])
    assert listed(rest, fieldSelector=f"metadata.name={name}") == [name]
    run, shown = rest.get("agentruns/kept").json, rest.get(f"sandboxes/{name}").json
    assert shown["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "nodus.dev/v1",
            "kind": "AgentRun",
            "name": "kept",
            "uid": run["metadata"]["uid"],
            "controller": True,
        }
    ]
    assert shown["spec"] == {
        "image": "nodus/agent-tools",
        "resources": {"cpu": "1", "memory": "2"},
        "network": {"egress": {"policy": "Deny"}},
    }
    assert shown["status"]["phase"] == "Running"
    assert {each["type"] for each in shown["status"]["conditions"]} >= {"Isolated", "EgressEnforced"}
    before = float(shown["status"]["costUSD"])
    rest.world.clock.advance(3600)
    assert float(rest.get(f"sandboxes/{name}").json["status"]["costUSD"]) > before > 0


@pytest.mark.req("NOD-407", "NOD-416")
def test_what_it_uses_is_shown_while_it_runs(rest: Rest) -> None:
    name = sandbox(rest)
    assert "disk" not in rest.get(f"sandboxes/{name}").json["status"]
    row, link = rest.world.journal.sandbox(name), rest.world.sandboxes.link
    assert row is not None
    assert link is not None
    link.uses(row, Used(rest.world.clock.now(), 12, 3 * 2**20, 2**30, 20 * 2**30))
    status = rest.get(f"sandboxes/{name}").json["status"]
    assert status["disk"] == "1.0Gi/20.0Gi"
    assert status["usage"] | {"at": ""} == {
        "cpuSeconds": 12,
        "memoryBytes": 3 * 2**20,
        "diskBytes": 2**30,
        "diskSizeBytes": 20 * 2**30,
        "at": "",
    }
    soon = rest.world.journal.sandbox(name)
    assert soon is not None
    link.uses(soon, Used(rest.world.clock.now(), 99, 1, 1, 1))
    assert rest.get(f"sandboxes/{name}").json["status"] == status
    rest.post("agentruns/kept/cancel")
    rest.world.settle()
    assert "usage" not in rest.get(f"sandboxes/{name}").json["status"]


@pytest.mark.req("NOD-412", "NOD-397")
def test_nobody_but_its_run_changes_or_ends_it(rest: Rest) -> None:
    name = sandbox(rest)
    before = rest.get(f"sandboxes/{name}").json
    refused = [
        rest.call("DELETE", f"sandboxes/{name}"),
        rest.post(f"sandboxes/{name}/start"),
        rest.post(f"sandboxes/{name}/stop"),
        rest.patch(f"sandboxes/{name}", {"metadata": {"labels": {"a": "b"}}}),
        rest.apply(f"sandboxes/{name}", manifest("Sandbox", name, {})),
        rest.call("PUT", f"sandboxes/{name}", manifest("Sandbox", name, {})),
    ]
    for answer in refused:
        assert (answer.code, answer.json["reason"]) == (409, "Conflict"), answer.json
        assert "belongs to AgentRun 'kept'" in answer.json["message"]
    assert rest.get(f"sandboxes/{name}").json["metadata"] == before["metadata"]
    taken = rest.post("sandboxes", manifest("Sandbox", f"run-{'0' * 32}-s1", {}))
    assert (taken.code, taken.fields) == (422, ["metadata.name"])


@pytest.mark.req("NOD-418", "NOD-408", "NODQ-57")
def test_it_is_shown_as_released_after_the_run_and_goes_with_it(rest: Rest) -> None:
    name = sandbox(rest)
    version = rest.get("sandboxes").json["metadata"]["resourceVersion"]
    rest.post("agentruns/kept/cancel")
    rest.world.settle()
    gone = rest.get(f"sandboxes/{name}").json["status"]
    assert (gone["phase"], gone["reason"]) == ("Deleted", "Released")
    assert "machine" not in gone
    rest.world.clock.advance(3600)
    assert rest.get(f"sandboxes/{name}").json["status"]["costUSD"] == gone["costUSD"]
    assert listed(rest, fieldSelector="status.phase=Running") == []
    assert rest.call("DELETE", "agentruns/kept").code in (200, 202)
    rest.world.settle()
    assert rest.get(f"sandboxes/{name}").code == 404
    assert listed(rest) == []
    assert version.isdecimal()


@pytest.mark.req("NOD-408", "NOD-478")
def test_a_watcher_is_told_of_its_coming_its_end_and_its_removal(rest: Rest) -> None:
    version = rest.get("sandboxes").json["metadata"]["resourceVersion"]
    rest.run("second")
    rest.world.settle()
    name = rest.get("agentruns/second").json["status"]["sandbox"]["name"]
    rest.call("DELETE", "agentruns/second")
    rest.world.settle()
    events = rest.get(
        "sandboxes", query={"watch": "true", "resourceVersion": version, "timeoutSeconds": "1"}
    ).text
    told = [json.loads(line) for line in events.splitlines()]
    mine = [event["type"] for event in told if event["object"]["metadata"]["name"] == name]
    assert mine[-1] == "DELETED"


@pytest.mark.req("NOD-408")
def test_a_lost_one_says_so_and_the_one_in_its_place_is_another_object() -> None:
    rest = Rest(plays([says("one"), says("two")]), behaves)
    rest.agent()
    rest.run("kept", keepAlive=True)
    rest.world.settle()
    first = sandbox(rest)
    rest.world.sandboxes.daemons[f"task/{first}"].alive = False
    rest.world.journal.sandboxes.gone(first, "out of memory", rest.world.clock.now())
    reported = rest.get(f"sandboxes/{first}").json["status"]
    assert (reported["phase"], reported["reason"], reported["message"]) == (
        "Deleted",
        "SandboxLost",
        "out of memory",
    )
    rest.post("agentruns/kept/messages", {"payload": "more", "messageKey": "m"})
    rest.world.settle()
    second = sandbox(rest)
    assert listed(rest) == sorted([first, second])
    assert second != first
    assert rest.get(f"sandboxes/{first}").json["status"]["reason"] == "SandboxLost"
