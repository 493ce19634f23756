"""Commands of people in Sandboxes: run at most once, cancelled, timed out, and kept when the machine is gone."""

from typing import Any

import pytest
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.api.rest import Reply, Rest, manifest

COMMANDS = "sandboxes/mine/commands"


def behaves(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    if request["command"] == "forever":
        return RUNNING
    if request["command"] == "long":
        return exited("x" * 100_000 + "\n")
    if request["cwd"] == "/none":
        return {"state": "failed", "reason": "not_found", "message": "'/none': No such file or directory."}
    return exited(f"{request['command']} in {request['cwd']}\n", code=3 if request["command"] == "bad" else 0)


@pytest.fixture
def rest() -> Rest:
    made = Rest(behaviour=behaves)
    made.post("sandboxes", manifest("Sandbox", "mine", {"env": [{"name": "A", "value": "b"}]}))
    made.world.pass_time(1)
    assert made.get("sandboxes/mine").json["status"]["phase"] == "Running"
    return made


def run(rest: Rest, command: str, key: str = "k", **more: Any) -> Reply:
    return rest.post(COMMANDS, {"command": command, "requestKey": key, **more})


def state(rest: Rest, name: str) -> dict[str, Any]:
    return rest.get(f"{COMMANDS}/{name}").json["status"]


@pytest.mark.req("NOD-431", "NODQ-67", "NODQ-68")
def test_a_command_runs_where_it_is_asked_to_and_its_output_is_what_it_put_out(rest: Rest) -> None:
    placed = run(rest, "pwd", workingDir="/workspace/sub", timeout="5m")
    assert (placed.code, placed.json["status"]) == (202, {"state": "Pending"})
    assert placed.json["spec"] == {"command": "pwd", "workingDir": "/workspace/sub", "timeout": "300s"}
    name = placed.json["metadata"]["name"]
    rest.world.pass_time(1)
    assert {key: state(rest, name)[key] for key in ("state", "exitCode")} == {
        "state": "Exited",
        "exitCode": 0,
    }
    assert rest.get(f"{COMMANDS}/{name}/output").text == "pwd in /workspace/sub\n"
    bad = run(rest, "bad", "k2").json["metadata"]["name"]
    long = run(rest, "long", "k3").json["metadata"]["name"]
    rest.world.pass_time(1)
    assert state(rest, bad)["exitCode"] == 3
    assert rest.get(f"{COMMANDS}/{long}/output").text == "x" * 100_000 + "\n"


@pytest.mark.req("NOD-431")
def test_a_command_that_did_not_run_says_why(rest: Rest) -> None:
    name = run(rest, "ls", workingDir="/none").json["metadata"]["name"]
    rest.world.pass_time(1)
    found = state(rest, name)
    assert (found["state"], found["message"]) == ("Failed", "'/none': No such file or directory.")
    assert rest.get(COMMANDS).json["items"][0]["status"]["message"] == found["message"]


@pytest.mark.req("NOD-410", "NOD-438")
def test_a_sandbox_that_takes_no_command_says_what_to_do_about_it(rest: Rest) -> None:
    assert rest.post("sandboxes", manifest("Sandbox", "new", {})).code == 201
    pending = rest.post("sandboxes/new/commands", {"command": "ls", "requestKey": "k"})
    assert (pending.code, pending.json["reason"]) == (409, "SandboxNotRunning")
    assert "nodus wait sandbox/new --for=phase=Running" in pending.json["message"]
    assert "nodus start" not in pending.json["message"]
    rest.post("sandboxes/mine/stop")
    assert "is Running (Stopping)" in run(rest, "ls").json["message"]
    assert "wait until it is Paused, then start it" in run(rest, "ls").json["message"]
    rest.world.settle()
    assert "is Paused (Stopped)" in run(rest, "ls").json["message"]
    assert "nodus start sandbox/mine" in run(rest, "ls").json["message"]


@pytest.mark.req("NOD-410", "NOD-438")
def test_one_that_has_cost_its_limit_is_not_said_to_start(rest: Rest) -> None:
    assert rest.post("sandboxes", manifest("Sandbox", "poor", {"maxCostUSD": "0.02"})).code == 201
    rest.world.pass_time(3600)
    rest.world.settle()
    assert rest.get("sandboxes/poor").json["status"]["reason"] == "MaxCostReached"
    refused = rest.post("sandboxes/poor/commands", {"command": "ls", "requestKey": "k"}).json["message"]
    assert "make a new one" in refused
    assert "nodus start" not in refused


@pytest.mark.req("NOD-442", "NOD-443", "FLD-16")
def test_the_same_request_again_is_the_same_command_and_runs_once(rest: Rest) -> None:
    first, again = run(rest, "echo"), run(rest, "echo")
    assert (first.code, again.code) == (202, 200)
    assert first.json["metadata"] == again.json["metadata"]
    rest.world.pass_time(1)
    assert run(rest, "echo").json["status"]["state"] == "Exited"
    assert len(rest.world.sandboxes.effects) == 1
    other = run(rest, "other")
    assert (other.code, other.json["reason"]) == (409, "IdempotencyKeyConflict")
    assert [item["spec"]["command"] for item in rest.get(COMMANDS).json["items"]] == ["echo"]


@pytest.mark.req("NOD-435", "NOD-436")
def test_a_cancel_ends_this_command_only(rest: Rest) -> None:
    name = run(rest, "forever").json["metadata"]["name"]
    rest.world.pass_time(1)
    assert state(rest, name)["state"] == "Running"
    assert (rest.get(f"{COMMANDS}/{name}/output").code, rest.get(f"{COMMANDS}/{name}/output").text) == (
        200,
        "",
    )
    assert rest.post(f"{COMMANDS}/{name}/cancel").code == 202
    rest.world.pass_time(1)
    assert state(rest, name)["state"] == "Cancelled"
    assert rest.post(f"{COMMANDS}/{name}/cancel").code == 200
    assert rest.get("sandboxes/mine").json["status"]["phase"] == "Running"
    withdrawn = run(rest, "forever", "k2").json["metadata"]["name"]
    rest.post(f"{COMMANDS}/{withdrawn}/cancel")
    rest.world.pass_time(1)
    assert state(rest, withdrawn)["state"] == "Cancelled"
    assert len(rest.world.sandboxes.effects) == 1


@pytest.mark.req("NOD-437", "NOD-438", "NOD-439", "NOD-440")
def test_the_history_is_there_without_a_machine_and_the_output_is_not(rest: Rest) -> None:
    names = []
    for number in range(3):
        names.append(run(rest, f"c{number}", f"k{number}").json["metadata"]["name"])
        rest.world.pass_time(1)
    left = run(rest, "forever", "k9").json["metadata"]["name"]
    rest.world.pass_time(1)
    rest.post("sandboxes/mine/stop")
    rest.world.settle()
    shown = rest.get(COMMANDS).json["items"]
    assert [item["metadata"]["name"] for item in shown] == [left, *reversed(names)]
    assert [item["status"]["state"] for item in shown] == ["Lost", "Exited", "Exited", "Exited"]
    gone = rest.get(f"{COMMANDS}/{names[0]}/output")
    assert (gone.code, gone.json["reason"]) == (410, "OutputGone")
    refused = run(rest, "more", "k10")
    assert (refused.code, refused.json["reason"]) == (409, "SandboxNotRunning")
    assert not [daemon for daemon in rest.world.sandboxes.daemons.values() if daemon.alive]
    rest.post("sandboxes/mine/start")
    rest.world.pass_time(1)
    newest = run(rest, "new", "k11").json["metadata"]["name"]
    pages, after = [], None
    while True:
        page = rest.get(COMMANDS, query={"limit": "2", **({"continue": after} if after else {})}).json
        pages += [item["metadata"]["name"] for item in page["items"]]
        after = page["metadata"].get("continue")
        if after is None:
            break
    assert pages == [newest, left, *reversed(names)]
    assert rest.get(f"{COMMANDS}/{names[0]}/output").json["reason"] == "OutputGone"


@pytest.mark.req("NOD-399")
def test_work_keeps_a_sandbox_from_being_idle() -> None:
    rest = Rest(behaviour=behaves)
    rest.post("sandboxes", manifest("Sandbox", "mine", {"idleTimeout": "5m"}))
    rest.world.pass_time(1)
    name = run(rest, "forever").json["metadata"]["name"]
    rest.world.pass_time(1500)
    assert rest.get("sandboxes/mine").json["status"]["phase"] == "Running"
    rest.post(f"{COMMANDS}/{name}/cancel")
    rest.world.pass_time(1200)
    status = rest.get("sandboxes/mine").json["status"]
    assert (status["phase"], status["reason"]) == ("Paused", "Idle")


def test_what_is_no_command_is_refused_and_nothing_is_stored(rest: Rest) -> None:
    for body, field in (
        ({"requestKey": "k"}, "command"),
        ({"command": " ", "requestKey": "k"}, "command"),
        ({"command": "x"}, "requestKey"),
        ({"command": "x", "requestKey": "k", "timeout": "25h"}, "timeout"),
        ({"command": "x", "requestKey": "k", "cwd": "/"}, "cwd"),
    ):
        answer = rest.post(COMMANDS, body)
        assert (answer.code, answer.fields) == (422, [field]), answer.json
    assert rest.get(COMMANDS).json["items"] == []
    assert rest.get(f"{COMMANDS}/u-1").code == 404
    assert rest.get("sandboxes/none/commands").code == 404
    assert rest.get(COMMANDS, query={"continue": "bm8"}).code == 400


@pytest.mark.req("NOD-433", "NOD-434")
def test_output_is_read_behind_an_offset_with_its_streams_apart(rest: Rest) -> None:
    name = run(rest, "pwd").json["metadata"]["name"]
    rest.world.pass_time(1)
    part = rest.get(f"{COMMANDS}/{name}/output", query={"offset": "4", "timeoutSeconds": "8"}).json
    assert part == {
        "apiVersion": "nodus.dev/v1",
        "kind": "SandboxCommandOutput",
        "command": name,
        "pieces": [{"stream": "stdout", "text": "in /workspace\n"}],
        "firstOffset": 0,
        "nextOffset": 18,
        "ended": True,
    }
    running = run(rest, "forever", "k2").json["metadata"]["name"]
    placed = rest.get(f"{COMMANDS}/{running}/output", query={"offset": "0"}).json
    assert (placed["pieces"], placed["ended"]) == ([], False)
    for query in ({"offset": "x"}, {"offset": "-1"}, {"nonsense": "1"}):
        assert rest.get(f"{COMMANDS}/{name}/output", query=query).code == 400


@pytest.mark.req("NOD-440")
def test_output_stands_nowhere_but_in_its_machine(rest: Rest) -> None:
    secret = "only the machine knows " * 50
    name = run(rest, f"echo {secret}").json["metadata"]["name"]
    rest.world.pass_time(1)
    read = rest.get(f"{COMMANDS}/{name}/output").text
    assert read.startswith("echo only the machine")
    (daemon,) = rest.world.sandboxes.daemons.values()
    daemon.known.clear()  # others have put out too much since
    lost = rest.get(f"{COMMANDS}/{name}/output")
    assert (lost.code, lost.json["reason"]) == (410, "OutputGone")


@pytest.mark.req("NOD-432", "NODQ-68")
def test_a_silent_command_of_sixteen_minutes_completes(rest: Rest) -> None:
    """Nothing takes it for lost, and its Sandbox for idle, however long it says nothing."""
    name = run(rest, "forever", timeout="20m").json["metadata"]["name"]
    rest.world.pass_time(16 * 60)
    assert state(rest, name)["state"] == "Running"
    (daemon,) = (each for each in rest.world.sandboxes.daemons.values() if each.alive)
    daemon.known[name] = exited("done\n")
    rest.world.pass_time(60)
    shown = state(rest, name)
    assert (shown["state"], shown["exitCode"]) == ("Exited", 0)
    assert rest.get(f"{COMMANDS}/{name}/output").text == "done\n"


def test_the_api_rings_for_a_command_itself(rest: Rest) -> None:
    (daemon,) = rest.world.sandboxes.daemons.values()
    rest.world.outside.sandboxes.attach(daemon.sandbox, "bell", rest.world.clock.now())
    run(rest, "pwd")
    assert rest.world.sandboxes.rings == ["bell"]
