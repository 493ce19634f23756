"""A run's sandbox under its name: people work in it beside the agent, and its run alone decides over it."""

from typing import Any

import pytest
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.api.rest import Rest


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


@pytest.mark.req("NOD-467")
def test_nobody_reaches_a_sandbox_of_another_project(rest: Rest) -> None:
    name = sandbox(rest)
    body = {"command": "date", "requestKey": "k"}
    assert rest.post(f"sandboxes/{name}/commands", body, project="lab").code == 404
    assert rest.get(f"sandboxes/{name}/commands", project="lab").code == 404
    assert rest.get(f"sandboxes/{name[:-1]}9/commands").code == 404
