"""Deadlines of runs on the deployed local cloud."""

import boto3
import pytest

from tests.integration.runs.person import Person, in_turn
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(180, func_only=True)


def scheduled(person: Person) -> list[str]:
    """Runs at whose deadline a kick will be made."""
    client = boto3.client("scheduler", **person.cloud.cloud.client_arguments())
    return [each["Name"] for each in client.list_schedules(GroupName="nodus-kicks")["Schedules"]]


@pytest.mark.req("NOD-177", "NOD-178", "NOD-044", "NODQ-21")
def test_a_run_at_work_ends_at_its_deadline_with_its_command(person: Person) -> None:
    person.agent("overdue")
    run = person.start("overdue", in_turn("sleep 300"), deadline="15s")
    run.reaches("tool.run_command.1", "Running")
    status = run.ended()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["sandbox"]["phase"] == "Deleted"
    assert run.step("tool.run_command.1")["state"] == "Cancelled"
    created = person.call("GET", run.path).json()
    assert created["spec"]["deadline"] <= status["finishedAt"]


@pytest.mark.req("NOD-178", "NOD-182", "FLD-12")
def test_a_run_that_waits_for_a_message_ends_at_its_deadline(person: Person) -> None:
    person.agent("idle")
    run = person.start("idle", in_turn("echo first"), keepAlive=True, deadline="20s")
    assert run.uid in scheduled(person)
    run.waits("MessageWait")
    steps = len(run.steps())
    status = run.ended()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["sandbox"]["phase"] == "Deleted"
    assert len(run.steps()) == steps
    assert run.answer().startswith("first")
    until(lambda: scheduled(person), lambda names: run.uid not in names)  # it was made, and is gone
    body = {"payload": "late", "messageKey": "k"}
    refused = person.call("POST", f"{run.path}/messages", body)
    assert (refused.status_code, refused.json()["reason"]) == (409, "AgentRunFinished")
