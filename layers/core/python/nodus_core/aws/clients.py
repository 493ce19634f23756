"""The clients of AWS, each made when it is first asked for and kept for the life of the process.

By botocore alone: importing boto3 on top of it costs a cold start 0.1 s and gives nothing that is used here.
"""

import os
from functools import cache
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.httpsession import get_cert_path

from nodus_core.aws.dynamodb_wire import DynamoDbWire
from nodus_core.kernel.errors import TerminalError

CONNECT_S = 2
READ_S = 5
ATTEMPTS = 4

_CONFIG = Config(
    connect_timeout=CONNECT_S,
    read_timeout=READ_S,
    retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    tcp_keepalive=True,
    max_pool_connections=32,
)


_SOON_OVER = Config(retries={"mode": "standard", "total_max_attempts": 2})
"""Of services that the sweeper asks once a minute anyhow: a sick one must not take its time."""


@cache
def _session() -> botocore.session.Session:
    return botocore.session.get_session()


def region() -> str:
    """The region that the environment names. Raises `TerminalError` when it names none."""
    name = _session().get_config_variable("region")
    if not name:
        raise TerminalError("no AWS region: set AWS_REGION or AWS_DEFAULT_REGION")
    return str(name)


def endpoint(service: str) -> str | None:
    """The address that the environment sets for a service, or for all of them."""
    specific = os.environ.get(f"AWS_ENDPOINT_URL_{service.upper().replace(' ', '_')}")
    return specific or os.environ.get("AWS_ENDPOINT_URL")


def dns_suffix(of_region: str) -> str:
    """What the names of AWS's endpoints end in."""
    return "amazonaws.com.cn" if of_region.startswith("cn-") else "amazonaws.com"


@cache
def dynamodb() -> DynamoDbWire:
    """The wire to DynamoDB."""
    credentials = _session().get_credentials()
    if credentials is None:
        raise TerminalError(
            "no AWS credentials: give the function a role, or set AWS_ACCESS_KEY_ID and its secret"
        )
    here = region()
    return DynamoDbWire(
        endpoint("dynamodb") or f"https://dynamodb.{here}.{dns_suffix(here)}",
        here,
        credentials,
        ca_bundle=os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True),
    )


@cache
def s3() -> Any:
    """S3, signing version 4 (older presigned addresses are refused by most regions)."""
    return _client("s3", Config(signature_version="s3v4"))


@cache
def stepfunctions() -> Any:
    return _client("stepfunctions")


@cache
def ecs() -> Any:
    return _client("ecs")


@cache
def ecs_asked_once() -> Any:
    """ECS for whoever looks again soon and has other things to do: a call that fails is not made again."""
    return _client("ecs", Config(read_timeout=3, retries={"mode": "standard", "total_max_attempts": 1}))


@cache
def ecr() -> Any:
    return _client("ecr")


@cache
def codebuild() -> Any:
    return _client("codebuild", _SOON_OVER)


@cache
def ecr_of_builds() -> Any:
    """ECR, for whoever looks after builds."""
    return _client("ecr", _SOON_OVER)


@cache
def logs() -> Any:
    return _client("logs", _SOON_OVER)


@cache
def events() -> Any:
    return _client("events")


@cache
def scheduler() -> Any:
    return _client("scheduler")


@cache
def secretsmanager() -> Any:
    return _client("secretsmanager")


@cache
def connections(address: str) -> Any:
    """The connections of one WebSocket API, by its management address."""
    return _session().create_client(
        "apigatewaymanagementapi", region_name=region(), endpoint_url=address, config=_CONFIG
    )


def _client(service: str, more: Config | None = None) -> Any:
    config = _CONFIG.merge(more) if more else _CONFIG
    return _session().create_client(service, region_name=region(), config=config)
