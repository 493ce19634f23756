"""Streams of the local cloud's tables: a function that reads one goes on reading after a restart."""

import json
from typing import Any

import boto3

from localstack.testing import TestCloud
from tests.integration.test_local_functions import TRUST, archive
from tests.integration.waiting import until

HANDLER = """
    def handler(event, context):
        for record in event["Records"]:
            print("read", record["dynamodb"]["Keys"]["pk"]["S"], flush=True)
"""


def client(cloud: TestCloud, service: str) -> Any:
    return boto3.client(service, **cloud.cloud.client_arguments())


def put(cloud: TestCloud, *keys: str) -> None:
    for key in keys:
        client(cloud, "dynamodb").put_item(TableName="streamed", Item={"pk": {"S": key}})


def read(cloud: TestCloud, *keys: str) -> None:
    """Waits until the function has read these records."""
    log = cloud.state.logs / "functions.log"
    words = [f"read {key}\n" for key in keys]
    until(lambda: log.read_text() if log.exists() else "", lambda text: all(word in text for word in words))


def test_a_restart_swallows_no_record_of_a_stream(bare_cloud: TestCloud) -> None:
    table = client(bare_cloud, "dynamodb").create_table(
        TableName="streamed",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )["TableDescription"]
    role = client(bare_cloud, "iam").create_role(
        RoleName="reader",
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [TRUST]}),
    )
    functions = client(bare_cloud, "lambda")
    functions.create_function(
        FunctionName="reader",
        Runtime="python3.12",
        Role=role["Role"]["Arn"],
        Handler="module.handler",
        Code={"ZipFile": archive({"module.py": HANDLER})},
    )
    functions.create_event_source_mapping(
        FunctionName="reader",
        EventSourceArn=table["LatestStreamArn"],
        StartingPosition="LATEST",
        BatchSize=10,
    )
    put(bare_cloud, "a", "b", "c")
    read(bare_cloud, "a", "b", "c")
    bare_cloud.run("down")
    bare_cloud.run("up", "--no-deploy")
    put(bare_cloud, "d")
    read(bare_cloud, "d")
    put(bare_cloud, "e")
    read(bare_cloud, "e")
