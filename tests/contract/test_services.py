"""The adapters of services that are told things, on MiniStack: what it answers is what they expect."""

import json
from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from nodus_core.aws.bell import WebSocketBell
from nodus_core.aws.endpoints import Endpoints
from nodus_core.aws.events import EventBridgeEvents
from nodus_core.aws.executions import StepFunctionsExecutions
from nodus_core.aws.secrets import SecretsManagerSecrets
from nodus_core.aws.task_fleet import EcsTaskFleet
from nodus_core.aws.tasks import EcsSandboxTasks, TaskPlace
from nodus_core.journal.ports import Event, TaskRequest

from tests.contract.emulator import REGION, Emulator

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "states.amazonaws.com"}}
    ],
}


@pytest.fixture
def tasks(client: Callable[[str], Any]) -> EcsSandboxTasks:
    ecs = client("ecs")
    ecs.create_cluster(clusterName="sandboxes")
    definition = ecs.register_task_definition(
        family="sandbox",
        requiresCompatibilities=["FARGATE"],
        networkMode="awsvpc",
        cpu="256",
        memory="512",
        containerDefinitions=[{"name": "sandbox", "image": "sandbox"}],
    )
    arn = definition["taskDefinition"]["taskDefinitionArn"]
    return EcsSandboxTasks(ecs, TaskPlace("sandboxes", arn, ("subnet-1",), ("sg-1",)))


def test_a_sandbox_has_one_task_from_its_start_to_its_end(
    tasks: EcsSandboxTasks, client: Callable[[str], Any]
) -> None:
    variables = {"NODUS_SANDBOX_ID": "c-1-s1", "NODUS_ENROL_CODE": "one"}
    task = tasks.run(TaskRequest("c-1-s1", variables, cpu=512, memory=1024, tags={"nodus:sandbox": "c-1-s1"}))

    assert tasks.run(TaskRequest("c-1-s1", {**variables, "NODUS_ENROL_CODE": "two"})) == task
    assert tasks.run(TaskRequest("c-1-s2", variables)) != task
    assert tasks.state(task).phase in ("pending", "running")
    (described,) = client("ecs").describe_tasks(cluster="sandboxes", tasks=[task], include=["TAGS"])["tasks"]
    assert described["startedBy"] == "c-1-s1"
    assert described["tags"] == [{"key": "nodus:sandbox", "value": "c-1-s1"}]
    (container,) = described["overrides"]["containerOverrides"]
    assert {pair["name"]: pair["value"] for pair in container["environment"]} == variables

    tasks.stop(task, "released")
    tasks.stop(task, "released again")

    assert (tasks.state(task).phase, tasks.state(task).reason) == ("stopped", "released")
    # A task that stopped is no longer listed; ECS knows it by the client token, which the emulator ignores.
    assert tasks.find("c-1-s1") is None


@pytest.mark.req("NOD-448", "NOD-449", "NODQ-82")
@pytest.mark.usefixtures("tasks")
def test_a_task_of_a_foreign_image_has_a_definition_of_its_own(client: Callable[[str], Any]) -> None:
    ecs = client("ecs")
    place = TaskPlace("sandboxes", "sandbox", ("subnet-1",), ("sg-1",), runtime_image="example/runtime:1")
    tasks, image = EcsSandboxTasks(ecs, place), f"public.ecr.aws/library/python@sha256:{'a' * 64}"

    def definition(sandbox: str) -> str:
        task = tasks.run(TaskRequest(sandbox, {"NODUS_SANDBOX_ID": sandbox}, image=image))
        (described,) = ecs.describe_tasks(cluster="sandboxes", tasks=[task])["tasks"]
        return described["taskDefinitionArn"]

    first = definition("c-2-s1")
    assert definition("c-2-s2") == first
    containers = ecs.describe_task_definition(taskDefinition=first)["taskDefinition"]["containerDefinitions"]
    assert [(each["name"], each["image"]) for each in containers] == [
        ("runtime", "example/runtime:1"),
        ("sandbox", image),
    ]


@pytest.mark.req("FLD-10")
def test_all_tasks_of_the_cluster_are_found_page_by_page(client: Callable[[str], Any]) -> None:
    ecs = client("ecs")
    ecs.create_cluster(clusterName="fleet")
    for family in ("ours", "ours-of-an-image", "theirs"):
        container = {"name": "sandbox", "image": "sandbox"}
        ecs.register_task_definition(family=family, cpu="256", memory="512", containerDefinitions=[container])
    started: dict[str, str] = {}
    for number in range(101):
        task = {"cluster": "fleet", "taskDefinition": "ours", "startedBy": f"c-{number}-s1"}
        started[ecs.run_task(**task)["tasks"][0]["taskArn"]] = task["startedBy"]
    others = {"theirs": "c-1-s1", "ours-of-an-image": "c-9-s2", "ours": "alice"}
    named = {
        ecs.run_task(cluster="fleet", taskDefinition=family, startedBy=by)["tasks"][0]["taskArn"]: by
        for family, by in others.items()
    }
    fleet = EcsTaskFleet(ecs, "fleet", "ours")

    pages = list(fleet.pages())

    assert [len(page) for page in pages] == [100, 4]
    assert {arn for page in pages for arn in page} == started.keys() | named.keys()
    (first, *_), found = started, {each.task: each.sandbox for page in pages for each in fleet.whose(page)}
    assert found == {
        **started,
        **{arn: by if by == "c-9-s2" else None for arn, by in named.items()},
    }
    fleet.stop(first, "NodusOrphan: nobody wants it")
    unknown = f"arn:aws:ecs:{REGION}:000000000000:task/fleet/{'0' * 32}"
    assert {task: each.phase for task, each in fleet.states([first, unknown]).items()} == {
        first: "stopped",
        unknown: "missing",
    }
    assert fleet.whose([first]) == []
    assert first not in {arn for page in fleet.pages() for arn in page}


def test_an_unknown_task_is_missing_and_may_be_stopped(tasks: EcsSandboxTasks) -> None:
    unknown = f"arn:aws:ecs:{REGION}:000000000000:task/sandboxes/{'0' * 32}"

    tasks.stop(unknown, "released")

    assert tasks.state(unknown).phase == "missing"


def test_a_generation_is_started_once(client: Callable[[str], Any]) -> None:
    states = client("stepfunctions")
    role = client("iam").create_role(RoleName="line", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"][
        "Arn"
    ]
    machine = states.create_state_machine(
        name="line",
        roleArn=role,
        definition=json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}),
    )["stateMachineArn"]
    executions = StepFunctionsExecutions(states, machine)

    for generation in (3, 3, 4):
        executions.start("c-1", generation)

    listed = states.list_executions(stateMachineArn=machine)["executions"]
    assert sorted(execution["name"] for execution in listed) == ["c-1-3", "c-1-4"]


def test_a_connection_that_is_gone_is_no_error(emulator: Emulator, client: Callable[[str], Any]) -> None:
    apis = client("apigatewayv2")
    api = apis.create_api(
        Name="link", ProtocolType="WEBSOCKET", RouteSelectionExpression="$request.body.action"
    )
    apis.create_stage(ApiId=api["ApiId"], StageName="link", AutoDeploy=True)
    endpoints = Endpoints("h1", api["ApiId"], "link", REGION, emulator.endpoint)
    session = botocore.session.Session()
    session.set_credentials(emulator.access_key, emulator.secret_key)
    connections = session.create_client(
        "apigatewaymanagementapi", region_name=REGION, endpoint_url=endpoints.connections
    )

    assert WebSocketBell(connections).ring("bm9ib2R5=") is False


def test_every_event_reaches_the_rules_of_its_bus(client: Callable[[str], Any]) -> None:
    events, sqs = client("events"), client("sqs")
    events.create_event_bus(Name="nodus")
    queue = sqs.create_queue(QueueName="events")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = json.dumps({"source": ["nodus"], "detail-type": ["RunSettled"]})
    events.put_rule(Name="settled", EventBusName="nodus", EventPattern=pattern)
    events.put_targets(Rule="settled", EventBusName="nodus", Targets=[{"Id": "queue", "Arn": arn}])
    runs = {f"c-1-{number}" for number in range(12)}  # more than one call carries

    EventBridgeEvents(events, "nodus").put([Event("RunSettled", {"run": run}) for run in sorted(runs)])

    received: set[str] = set()
    while received < runs:
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        for message in found.get("Messages", []):
            received.add(json.loads(message["Body"])["detail"]["run"])
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert received == runs


def test_secrets_are_read(client: Callable[[str], Any]) -> None:
    manager = client("secretsmanager")
    manager.create_secret(Name="nodus/providers", SecretString="{}")

    assert SecretsManagerSecrets(manager).read("nodus/providers") == "{}"
