"""A task that nobody wants is stopped, and one that died unheard is seen, with nothing but the sweeper to do it."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from localstack.testing import TestCloud
from tests.integration.runs.machine import room
from tests.integration.runs.orphans import orphans
from tests.integration.runs.person import Person, in_turn
from tests.integration.waiting import until

# The sweeper comes once a minute; without it the sandbox's death would be seen when its time is paid, six minutes on.
pytestmark = pytest.mark.timeout(240, func_only=True)


@pytest.fixture
def unheard(local_cloud: TestCloud) -> Iterator[None]:
    """Nobody is told of the end of a task."""
    events = boto3.client("events", **local_cloud.cloud.client_arguments())
    (rule,) = (
        each["Name"] for each in events.list_rules()["Rules"] if "aws.ecs" in each.get("EventPattern", "")
    )
    events.disable_rule(Name=rule)
    yield
    events.enable_rule(Name=rule)


def start_by_hand(cloud: TestCloud, started_by: str) -> str:
    """A task of the sandboxes' definition that no agent of this machine takes for a sandbox: nothing ends it here."""
    ecs = boto3.client("ecs", **cloud.cloud.client_arguments())
    (definition,) = ecs.list_task_definitions(familyPrefix="nodus-sandbox")["taskDefinitionArns"]
    cluster = cloud.cloud.output("ClusterName")
    task = ecs.run_task(cluster=cluster, taskDefinition=definition, startedBy=started_by)["tasks"][0]
    return task["taskArn"]


def described(cloud: TestCloud, task: str) -> dict[str, Any]:
    ecs = boto3.client("ecs", **cloud.cloud.client_arguments())
    (found,) = ecs.describe_tasks(cluster=cloud.cloud.output("ClusterName"), tasks=[task])["tasks"]
    return found


@pytest.mark.req("FLD-10")
def test_a_task_of_a_sandbox_that_never_was_is_stopped_and_one_of_others_is_not(person: Person) -> None:
    cloud = person.cloud
    theirs, ours = start_by_hand(cloud, "somebody"), start_by_hand(cloud, "made-up-s1")
    task = until(lambda: described(cloud, ours), lambda seen: seen["lastStatus"] == "STOPPED")
    assert task["stoppedReason"] == "NodusOrphan: there is no sandbox made-up-s1"
    assert described(cloud, theirs)["desiredStatus"] == "RUNNING"
    ecs = boto3.client("ecs", **cloud.cloud.client_arguments())
    ecs.stop_task(cluster=cloud.cloud.output("ClusterName"), task=theirs)


@pytest.mark.req("FLD-10", "NOD-408")
@pytest.mark.usefixtures("unheard")
def test_a_sandbox_that_dies_unheard_while_its_run_rests_is_seen(person: Person) -> None:
    person.agent("sleeper")
    run = person.start("sleeper", in_turn("echo one"), keepAlive=True)
    name = run.waits("MessageWait")["sandbox"]["name"]
    own = room(person.cloud, name)
    own.kill()
    gone = until(
        lambda: person.call("GET", f"sandboxes/{name}").json()["status"],
        lambda seen: seen["phase"] == "Deleted",
    )
    assert gone["reason"] == "SandboxLost"
    assert run.status()["phase"] == "Waiting"
    assert own.is_gone()
    assert run.say(in_turn("echo two"), "next").status_code == 202
    until(run.status, lambda seen: len(seen["turns"]) == 2 and seen.get("reason") == "MessageWait")
    assert run.status()["sandbox"]["name"] != name
    until(lambda: orphans(person.cloud), lambda seen: not any(seen.values()))
    run.cancel()
    assert run.cleared()["phase"] == "Cancelled"
