"""What was answered is there after `kill -9` of the emulator; what was refused is not."""

import os
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from localstack import daemons
from localstack.paths import CLOUD_PYTHON, ROOT
from localstack.testing import TestCloud

# Each test starts the emulator again, some twice.
pytestmark = pytest.mark.timeout(240, func_only=True)


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


@contextmanager
def full_disk(cloud: TestCloud, bytes_left: int) -> Iterator[None]:
    """No file of the emulator may grow beyond so many bytes, as if its disk were full then."""
    pid = cloud.cloud.pids[daemons.CLOUD]
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (bytes_left, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_a_full_disk_refuses_writes_and_loses_none_that_was_answered(
    bare_cloud: TestCloud, table: str
) -> None:
    writes = client(bare_cloud, "dynamodb")
    log = bare_cloud.state.emulator / "write-ahead.log"
    key, text = {"pk": {"S": "1"}}, {"S": "x" * 5000}
    writes.put_item(TableName=table, Item={**key, "n": {"N": "1"}})
    with full_disk(bare_cloud, log.stat().st_size + 1000):
        for _ in range(2):
            with pytest.raises(ClientError, match="cannot write to disk"):
                writes.put_item(TableName=table, Item={**key, "n": {"N": "2"}, "text": text})
    writes.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    answered = writes.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
    kill(bare_cloud)
    bare_cloud.run("up", "--no-deploy")
    assert client(bare_cloud, "dynamodb").get_item(TableName=table, Key=key)["Item"] == answered


def test_an_object_that_could_not_be_written_is_refused_and_one_that_was_answered_stays(
    bare_cloud: TestCloud,
) -> None:
    bucket = f"durable-{os.urandom(4).hex()}"
    objects = client(bare_cloud, "s3")
    objects.create_bucket(Bucket=bucket)
    body = os.urandom(100_000)
    with full_disk(bare_cloud, 50_000), pytest.raises(ClientError) as refused:
        objects.put_object(Bucket=bucket, Key="a/b", Body=body)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    objects.put_object(Bucket=bucket, Key="a/b", Body=body)
    kill(bare_cloud)
    bare_cloud.run("up", "--no-deploy")
    assert client(bare_cloud, "s3").get_object(Bucket=bucket, Key="a/b")["Body"].read() == body


def test_an_object_and_its_folders_are_synced_before_its_put_is_answered(bare_cloud: TestCloud) -> None:
    """Seen from within a process like the emulator's, whose calls of the kernel are noted in order."""
    folder = bare_cloud.state.folder / "synced"
    done = subprocess.run(
        [str(CLOUD_PYTHON), "-c", SYNCED, str(folder)],
        cwd=ROOT,
        env={**os.environ, "S3_PERSIST": "1", "S3_DATA_DIR": str(folder), "AWS_ACCESS_KEY_ID": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    events = done.stdout.split()
    placed = [index for index, event in enumerate(events) if event.startswith("replaced:")]
    assert [events[index] for index in placed] == ["replaced:key", "replaced:key.meta.json"]
    for index in placed:
        name = events[index].removeprefix("replaced:")
        assert f"synced:{name}.tmp" in events[:index]
        assert "synced:run" in events[index:]
    assert {"synced:org", "synced:bucket"} <= set(events[placed[-1] :])


SYNCED = """
import os, sys
from localstack.cloud import corrections
from ministack.services import s3
corrections.keep_objects()
fsync, replace = os.fsync, os.replace
def noted_fsync(descriptor):
    fsync(descriptor)
    print("synced:" + os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
def noted_replace(old, new, **more):
    replace(old, new, **more)
    print("replaced:" + os.path.basename(new))
os.fsync, os.replace = noted_fsync, noted_replace
s3._persist_object("bucket", "org/run/key", {"body": b"x"})
"""
