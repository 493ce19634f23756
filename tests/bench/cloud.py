"""The local cloud that is measured: one of its own by default, or one that runs already."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import botocore.session
from botocore.client import Config
from botocore.credentials import Credentials
from nodus_core.aws.dynamodb_wire import DynamoDbWire

from localstack.endpoints import Cloud
from localstack.paths import State
from localstack.testing import TestCloud, discard, new_cloud

SCRIPTS = Path(__file__).parent / "scripts"


class BenchError(Exception):
    """Something cannot be measured; the message says why and what to do."""


@contextmanager
def measured_cloud(folder: Path | None, *, deployed: bool) -> Iterator[TestCloud]:
    """A running cloud.

    Args:
        folder: the state folder of a cloud to use and leave alone; None: a fresh one that is removed in the end.
        deployed: whether Nodus must be deployed to it.

    Raises:
        BenchError: it does not start.
    """
    if folder is not None:
        state = State(folder.resolve())
        yield TestCloud(state, state.folder / "config.yaml", {})
        return
    # Models are scripted whatever keys the person has: a benchmark never spends money.
    cloud = new_cloud({"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "NODUS_SCRIPTS": str(SCRIPTS)})
    try:
        done = cloud.run("up", *([] if deployed else ["--no-deploy"]), check=False)
        if done.returncode != 0:
            raise BenchError(f"the local cloud does not start:\n{done.stdout}{done.stderr}")
        yield cloud
    finally:
        discard(cloud)


def wire(cloud: Cloud) -> DynamoDbWire:
    """The wire that the functions use, with the credentials of whoever owns the cloud."""
    credentials = Credentials(cloud.access_key_id, cloud.secret_access_key)
    return DynamoDbWire(cloud.endpoint, cloud.region, credentials)


def client(cloud: Cloud, service: str) -> Any:
    """botocore's client of a service, as `nodus_core.aws.clients` makes it."""
    return botocore.session.get_session().create_client(
        service,
        config=Config(signature_version="s3v4") if service == "s3" else None,
        **cloud.client_arguments(),
    )


@contextmanager
def own_table(cloud: Cloud) -> Iterator[str]:
    """A table as the journal's, with its index and its stream, that no function of a deployment looks at."""
    name, dynamodb = f"bench-{uuid.uuid4().hex[:8]}", client(cloud, "dynamodb")
    keys = ("pk", "sk", "dueShard", "dueAt")
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=_keys("pk", "sk"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": "due",
                "KeySchema": _keys("dueShard", "dueAt"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    try:
        yield name
    finally:
        dynamodb.delete_table(TableName=name)


@contextmanager
def own_bucket(cloud: Cloud) -> Iterator[str]:
    """A bucket for the payloads of the hot loop."""
    name, s3 = f"bench-{uuid.uuid4().hex[:8]}", client(cloud, "s3")
    s3.create_bucket(Bucket=name)
    try:
        yield name
    finally:
        for entry in s3.list_objects_v2(Bucket=name).get("Contents", []):
            s3.delete_object(Bucket=name, Key=entry["Key"])
        s3.delete_bucket(Bucket=name)


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]
