"""Secrets as variables of commands, in the deployed cloud; and where their values are then (FLD-14)."""

from typing import Any

import pytest

from tests.integration.runs.person import APPLY, Person, in_turn, manifest
from tests.integration.runs.test_own_keys import traces
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(240)

VALUE = "plum-9f31-KITE-77aa"
WANTED = [{"name": "deploy", "env": "DEPLOY_KEY", "key": "token"}]


@pytest.fixture
def owner(person: Person) -> Person:
    """A person with a Secret, and an agent whose setup, commands and children see it."""
    body = manifest("Secret", "deploy", {"data": {"token": VALUE}})
    answer = person.call("PATCH", "secrets/deploy", body, kind=APPLY)
    assert answer.status_code in (200, 201), answer.text
    person.agent(
        "deployer", secrets=WANTED, setup="sh -c 'echo setup has ${#DEPLOY_KEY} characters: $DEPLOY_KEY'"
    )
    return person


def command(owner: Person, sandbox: str, text: str, key: str) -> tuple[dict[str, Any], str]:
    """A command of a person: its status once it has ended, and its output."""
    path = f"sandboxes/{sandbox}/commands"
    placed = owner.call("POST", path, {"command": text, "requestKey": key})
    assert placed.status_code == 202, placed.text
    one = f"{path}/{placed.json()['metadata']['name']}"
    status = until(
        lambda: owner.call("GET", one).json()["status"],
        lambda seen: seen["state"] not in ("Pending", "Running"),
    )
    return status, owner.call("GET", f"{one}/output").text


@pytest.mark.req(
    *("NOD-454", "NOD-455", "NOD-456", "NOD-465", "NOD-461", "NODQ-70", "FLD-14"),
    *("NOD-445", "NOD-397", "NOD-418"),
)
def test_commands_see_the_value_and_nothing_else_has_it(owner: Person) -> None:
    run = owner.start("deployer", in_turn("env | grep DEPLOY_KEY"), keepAlive=True)
    run.waits("MessageWait")
    setup = run.step("setup")
    assert setup["preview"].startswith(f"setup has {len(VALUE)} characters: (secret)"), setup
    assert run.step("tool.run_command.1")["preview"].startswith("DEPLOY_KEY=(secret)")
    sandbox = run.status()["sandbox"]["name"]
    shown = owner.call("GET", f"sandboxes/{sandbox}").json()
    assert (shown["status"]["phase"], shown["metadata"]["ownerReferences"][0]["name"]) == (
        "Running",
        run.name,
    )
    asked = {
        "env": "env | grep DEPLOY_KEY",
        "child": 'python3 -c \'import os; print(len(os.environ["DEPLOY_KEY"]), os.environ["DEPLOY_KEY"])\'',
        "split": 'printf %s "${DEPLOY_KEY%-*}"; sleep 1; printf \'%s\\n\' "-${DEPLOY_KEY##*-}"',
        "fails": 'echo "no such key: $DEPLOY_KEY" >&2; exit 3',
    }
    told = {key: command(owner, sandbox, text, key) for key, text in asked.items()}
    assert {key: output for key, (_, output) in told.items()} == {
        "env": "DEPLOY_KEY=(secret)\n",
        "child": f"{len(VALUE)} (secret)\n",
        "split": "(secret)\n",
        "fails": "no such key: (secret)\n",
    }
    assert told["fails"][0]["exitCode"] == 3

    own = owner.call("POST", "sandboxes", manifest("Sandbox", f"own-{run.mark}", {"secrets": WANTED}))
    assert own.status_code == 201, own.text
    name = own.json()["metadata"]["name"]
    until(
        lambda: owner.call("GET", f"sandboxes/{name}").json()["status"],
        lambda status: status["phase"] == "Running",
    )
    assert command(owner, name, "env | grep DEPLOY_KEY", "k")[1] == "DEPLOY_KEY=(secret)\n"
    listed = [item["metadata"]["name"] for item in owner.call("GET", "sandboxes?limit=500").json()["items"]]
    assert {name, sandbox} <= set(listed)

    wrong = manifest("Secret", "deploy", {"data": {"token": VALUE}, "tokens": VALUE})
    refused = owner.call("PATCH", "secrets/deploy", wrong, kind=APPLY)
    assert (refused.status_code, VALUE in refused.text) == (422, False)
    answers = [
        owner.call("GET", path).text
        for path in ("agents", "agentruns", "secrets", "sandboxes", f"{run.path}/steps", f"{run.path}/answer")
    ]
    assert VALUE not in "".join(answers)
    assert [place for place, text in traces(owner.cloud) if VALUE in text] == []
    assert owner.call("POST", f"{run.path}/cancel").status_code in (200, 202)
    run.cleared()
    released = owner.call("GET", f"sandboxes/{sandbox}").json()["status"]
    assert (released["phase"], released["reason"]) == ("Deleted", "Released")
    assert owner.call("DELETE", f"sandboxes/{name}").status_code in (200, 202)
