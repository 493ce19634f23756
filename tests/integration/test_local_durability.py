"""What was answered is there after `kill -9` of the emulator; what was refused is not."""

import os
import signal
import threading
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from localstack import daemons
from localstack.testing import TestCloud


def client(cloud: TestCloud, service: str) -> Any:
    """Without retries: a retry would hide that an answer never came."""
    config = Config(retries={"total_max_attempts": 1})
    return boto3.client(service, config=config, **cloud.cloud.client_arguments())


def kill(cloud: TestCloud) -> None:
    os.kill(cloud.cloud.pids[daemons.CLOUD], signal.SIGKILL)


@pytest.fixture
def table(bare_cloud: TestCloud) -> str:
    name = f"durable-{os.urandom(4).hex()}"
    client(bare_cloud, "dynamodb").create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def test_every_answered_write_survives_a_kill(bare_cloud: TestCloud, table: str) -> None:
    """Writers write until the emulator is killed in the middle of it."""
    answered: list[str] = []
    enough = threading.Event()

    def write(writer: int) -> None:
        writes = client(bare_cloud, "dynamodb")
        for number in range(100_000):
            key = f"{writer}-{number}"
            try:
                writes.put_item(TableName=table, Item={"pk": {"S": key}})
            except BotoCoreError:
                return
            answered.append(key)
            if len(answered) > 300:
                enough.set()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    assert enough.wait(30)
    kill(bare_cloud)
    for thread in threads:
        thread.join(30)
    bare_cloud.run("up", "--no-deploy")

    pages = client(bare_cloud, "dynamodb").get_paginator("scan").paginate(TableName=table)
    stored = {item["pk"]["S"] for page in pages for item in page["Items"]}
    assert set(answered) <= stored
    # The one request of each writer that was under way may have been kept without an answer.
    assert len(stored - set(answered)) <= len(threads)


def test_order_conditions_and_counts_are_kept(bare_cloud: TestCloud, table: str) -> None:
    """Counting twice, or letting a refused write through, would show."""
    writes = client(bare_cloud, "dynamodb")
    writes.put_item(TableName=table, Item={"pk": {"S": "1"}, "n": {"N": "0"}})
    for _ in range(5):
        writes.update_item(
            TableName=table,
            Key={"pk": {"S": "1"}},
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        writes.put_item(
            TableName=table,
            Item={"pk": {"S": "1"}, "n": {"N": "100"}},
            ConditionExpression="attribute_not_exists(pk)",
        )
    secrets = client(bare_cloud, "secretsmanager")
    secrets.create_secret(Name=table, SecretString="first")
    secrets.put_secret_value(SecretId=table, SecretString="second")

    for _ in range(2):  # the second start begins from what the first one has played and saved
        kill(bare_cloud)
        bare_cloud.run("up", "--no-deploy")
        item = client(bare_cloud, "dynamodb").get_item(TableName=table, Key={"pk": {"S": "1"}})["Item"]
        assert item["n"] == {"N": "5"}
        value = client(bare_cloud, "secretsmanager").get_secret_value(SecretId=table)
        assert value["SecretString"] == "second"


def test_a_clean_stop_plays_nothing_twice(bare_cloud: TestCloud, table: str) -> None:
    writes = client(bare_cloud, "dynamodb")
    count = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
    writes.update_item(TableName=table, Key={"pk": {"S": "1"}}, **count)
    bare_cloud.run("down")
    bare_cloud.run("up", "--no-deploy")
    client(bare_cloud, "dynamodb").update_item(TableName=table, Key={"pk": {"S": "1"}}, **count)
    kill(bare_cloud)
    bare_cloud.run("up", "--no-deploy")
    item = client(bare_cloud, "dynamodb").get_item(TableName=table, Key={"pk": {"S": "1"}})["Item"]
    assert item["n"] == {"N": "2"}


def test_objects_survive_a_kill(bare_cloud: TestCloud) -> None:
    bucket = f"durable-{os.urandom(4).hex()}"
    objects = client(bare_cloud, "s3")
    objects.create_bucket(Bucket=bucket)
    objects.put_object(Bucket=bucket, Key="org/run/digest", Body=b"\x00\xff", Metadata={"a": "b"})
    kill(bare_cloud)
    bare_cloud.run("up", "--no-deploy")
    found = client(bare_cloud, "s3").get_object(Bucket=bucket, Key="org/run/digest")
    assert found["Body"].read() == b"\x00\xff"
    assert found["Metadata"] == {"a": "b"}
