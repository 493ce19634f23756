"""What the local cloud tells of by itself, as AWS does: tasks that stop, and executions that a restart ended."""

import json
from typing import Any

import boto3

from localstack import supervise
from localstack.testing import TestCloud
from tests.integration.test_local_functions import TRUST, archive
from tests.integration.waiting import until

HANDLER = """
    def handler(event, context):
        detail = event["detail"]
        words = detail.get("startedBy") or detail.get("name"), detail.get("lastStatus") or detail.get("status")
        print("heard", event["source"], *words, flush=True)
"""
WAITS = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}}


def client(cloud: TestCloud, service: str) -> Any:
    return boto3.client(service, **cloud.cloud.client_arguments())


def role(cloud: TestCloud, name: str) -> str:
    policy = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    return client(cloud, "iam").create_role(RoleName=name, AssumeRolePolicyDocument=policy)["Role"]["Arn"]


def listen(cloud: TestCloud) -> None:
    """A function that prints what the bus is told by ECS and Step Functions."""
    function = client(cloud, "lambda").create_function(
        FunctionName="listener",
        Runtime="python3.12",
        Role=role(cloud, "listener"),
        Handler="module.handler",
        Code={"ZipFile": archive({"module.py": HANDLER})},
    )
    events = client(cloud, "events")
    events.put_rule(Name="told", EventPattern=json.dumps({"source": ["aws.ecs", "aws.states"]}))
    events.put_targets(Rule="told", Targets=[{"Id": "listener", "Arn": function["FunctionArn"]}])


def heard(cloud: TestCloud, words: str) -> None:
    log = cloud.state.logs / "functions.log"
    until(lambda: log.read_text() if log.exists() else "", lambda text: f"heard {words}\n" in text)


def test_the_bus_is_told_of_stopped_tasks_and_of_executions_that_a_restart_ended(
    bare_cloud: TestCloud,
) -> None:
    listen(bare_cloud)
    ecs, states = client(bare_cloud, "ecs"), client(bare_cloud, "stepfunctions")
    ecs.create_cluster(clusterName="told")
    definition = ecs.register_task_definition(
        family="told", containerDefinitions=[{"name": "told", "image": "told", "memory": 64}]
    )
    task = ecs.run_task(
        cluster="told",
        taskDefinition=definition["taskDefinition"]["taskDefinitionArn"],
        startedBy="sandbox-1",
    )["tasks"][0]["taskArn"]
    ecs.stop_task(cluster="told", task=task)
    heard(bare_cloud, "aws.ecs sandbox-1 STOPPED")

    machine = states.create_state_machine(
        name="waits", definition=json.dumps(WAITS), roleArn=role(bare_cloud, "waits")
    )
    states.start_execution(stateMachineArn=machine["stateMachineArn"], name="line-1")
    heard(bare_cloud, "aws.states line-1 RUNNING")
    bare_cloud.run("down")
    bare_cloud.run("up", "--no-deploy")
    supervise.warm(bare_cloud.state)
    heard(bare_cloud, "aws.states line-1 FAILED")
