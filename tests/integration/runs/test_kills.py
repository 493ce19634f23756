"""What dies in the middle of a run: quick cases; `tests/crash/deployed` has the slow ones.

What has been recorded is never done again, and what was in flight goes on, is made again, or is asked about.
"""

import json
import signal
from decimal import Decimal
from typing import Any

import boto3
import pytest
from nodus_core.conversations.worker import MOST_ROUNDS

from tests.integration.runs.asked import requests
from tests.integration.runs.machine import gate, room, send, workers
from tests.integration.runs.person import Person, in_turn, names
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(180, func_only=True)

TAKE_OVER_S = 10.0
"""Within this a worker's death that Step Functions sees is made up for (the machine may be slower by `ROOM`)."""

ROOM = 3


@pytest.mark.req("NOD-073", "NOD-075", "NOD-088", "FLD-05")
def test_a_worker_killed_in_a_model_call_is_replaced_and_the_call_made_again(person: Person) -> None:
    person.agent("mortal")
    run = person.start("mortal", "Think between:\n$ echo x >> did\n$ cat did")
    (_, call) = until(lambda: requests(person.cloud, run.mark), lambda asked: len(asked) == 2)
    send(workers(person.cloud, "line"), signal.SIGKILL)
    again = until(lambda: requests(person.cloud, run.mark), lambda asked: len(asked) >= 3)[2]
    run.succeeded()
    asked = requests(person.cloud, run.mark)
    assert [entry["body"] for entry in asked].count(call["body"]) == 2
    assert len(asked) == 4
    print(f"taken over {again['at'] - call['at']:.1f} s after the call that died")
    assert again["at"] - call["at"] < TAKE_OVER_S * ROOM
    assert run.answer() == "x\n[exit code 0]"
    assert names(run.steps()) == [
        "sandbox",
        "model.1",
        "tool.run_command.1",
        "model.2",
        "tool.run_command.2",
        "model.3",
    ]
    second = run.step("model.2")
    assert (second["attempt"], second["resent"], second["state"]) == (2, 1, "Completed")
    # 1,000 tokens at $2 and 100 at $10 a million, once
    assert Decimal(second["costUSD"]) == Decimal("0.003")
    assert Decimal(run.status()["cost"]["totalUSD"]) == sum(
        Decimal(step["costUSD"]) for step in run.steps() if step["kind"] == "model"
    )
    assert [step["attempt"] for step in run.steps() if step["name"] != second["name"]] == [1] * 5


@pytest.mark.req("NOD-074", "NOD-088")
def test_an_execution_that_has_gone_round_often_enough_is_followed_by_the_next(person: Person) -> None:
    """Its worker dies as well: only who takes the line counts, and the call that died with it is made again."""
    person.agent("long-lived")
    run = person.start("long-lived", "Think between:\n$ echo x >> did\n$ cat did")
    until(lambda: requests(person.cloud, run.mark), lambda asked: len(asked) == 2)
    table = journal_of(person)
    line = {"Key": {"pk": f"conv#{run.uid}", "sk": "head"}, "ReturnValues": "ALL_OLD"}
    before = table.update_item(
        **line,
        UpdateExpression="SET #line.rounds = :most",
        ExpressionAttributeNames={"#line": "line"},
        ExpressionAttributeValues={":most": MOST_ROUNDS},
    )["Attributes"]["line"]
    send(workers(person.cloud, "line"), signal.SIGKILL)
    run.succeeded()
    after = table.get_item(Key=line["Key"], ConsistentRead=True)["Item"]["line"]
    assert after["generation"] > before["generation"]
    assert after["rounds"] < MOST_ROUNDS
    machine = person.cloud.cloud.output("LineMachineArn")
    executions = boto3.client("stepfunctions", **person.cloud.cloud.client_arguments())
    first = executions.describe_execution(
        executionArn=f"{machine.replace(':stateMachine:', ':execution:')}:{run.uid}-{before['generation']}"
    )
    assert (first["status"], json.loads(first["output"])["outcome"]) == ("SUCCEEDED", {"next": "rest"})
    assert run.answer() == "x\n[exit code 0]"


@pytest.mark.req("NOD-089", "NOD-090", "NOD-091", "NOD-044", "NOD-045", "FLD-05")
def test_a_sandbox_killed_in_a_command_parks_the_run_until_it_is_canceled(person: Person) -> None:
    person.agent("homeless")
    effects = "echo x >> did; touch begun; " + gate()
    run = person.start("homeless", in_turn("true", effects))
    run.reaches("tool.run_command.2")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    until((own.workspace / "begun").exists, bool)
    did = own.read("did")
    own.kill()
    status = run.waits("NeedsResolution")
    (entry,) = status["unresolved"]
    assert entry["step"] == "turn-1.tool.run_command.2"
    assert effects in entry["input"]
    assert entry["since"].endswith("Z")
    assert entry["what"]
    assert run.step("tool.run_command.2")["state"] == "Uncertain"
    assert (did, len(requests(person.cloud, run.mark))) == ("x\n", 2)
    until(own.is_gone, bool)
    run.cancel()
    status = run.ended()
    assert status["phase"] == "Cancelled"
    assert "unresolved" not in status
    assert status["sandbox"]["phase"] == "Deleted"
    assert run.step("tool.run_command.2")["state"] == "Uncertain"


@pytest.mark.req("NOD-073", "FLD-05")
def test_a_link_cut_in_a_command_is_taken_up_again(person: Person) -> None:
    person.agent("cut-off")
    run = person.start("cut-off", in_turn("echo x >> did; " + gate(), "cat did"))
    run.reaches("tool.run_command.1")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    assert own.says("did") == "x\n"
    send(workers(person.cloud, "link"), signal.SIGKILL)
    hang_up(person, own.folder.name)
    own.open_gate()
    run.succeeded()
    assert run.answer() == "x\n[exit code 0]"
    assert {step["attempt"] for step in run.steps()} == {1}
    assert len(requests(person.cloud, run.mark)) == 3


def journal_of(person: Person) -> Any:
    """The journal's table."""
    cloud = person.cloud.cloud
    return boto3.resource("dynamodb", **cloud.client_arguments()).Table(cloud.output("TableName"))


def hang_up(person: Person, sandbox: str) -> None:
    """Ends the WebSocket of a sandbox's bell from the gateway's side."""
    cloud = person.cloud.cloud
    row = journal_of(person).get_item(Key={"pk": f"sb#{sandbox}", "sk": "head"}, ConsistentRead=True)["Item"]
    gateway = {
        **cloud.client_arguments(),
        "endpoint_url": f"{cloud.endpoint}/_aws/execute-api/{cloud.output('LinkApiId')}/{cloud.output('LinkApiStage')}",
    }
    boto3.client("apigatewaymanagementapi", **gateway).delete_connection(ConnectionId=row["connection"])
