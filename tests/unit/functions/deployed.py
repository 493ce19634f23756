"""The four functions of the middle over one world in memory, called with events as AWS sends them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, cast

from nodus_core.aws.dynamodb_values import encode_row
from nodus_core.bootstrap import Core
from nodus_core.conversations.build_keeping import BuildKeeping
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.reactions import Reactions
from nodus_core.conversations.sweeper import Sweeper
from nodus_core.conversations.task_sweep import TaskSweep
from nodus_core.conversations.worker import Worker
from nodus_core.journal.ports import Event
from nodus_core.journal.store import Key
from nodus_core.sandboxes.relay import Relay
from nodus_core.testing.scripted_builder import ScriptedBuilder
from nodus_core.testing.world import World

ACCOUNT, REGION = "123456789012", "eu-central-1"


@dataclass
class LambdaContext:
    """What the handlers use of Lambda's context."""

    function_name: str = "nodus"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:nodus"
    aws_request_id: str = "00000000-0000-0000-0000-000000000000"
    seconds: float = 900.0

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@dataclass
class Bus:
    """The event bus; `sick` is raised by it."""

    events: list[Event] = field(default_factory=list[Event])
    sick: Exception | None = None

    def put(self, events: Sequence[Event]) -> None:
        if self.sick is not None:
            raise self.sick
        self.events += events


class NoWires:
    """Connections that have all ended."""

    def post(self, connection: str, text: str) -> bool:
        return False


class MemoryCore(Core):
    """A `Core` whose parts are those of a world: nothing real is built."""

    def __init__(self, world: World, bus: Bus) -> None:
        super().__init__({})
        self.__dict__["builder"] = ScriptedBuilder(world.clock)
        builds = BuildKeeping(world.batches.shelf, self.builder)
        kicks = Kicks(world.kicks.journal, world.executions, world.clock)
        parts = {
            "journal": world.kicks.journal,
            "payloads": world.payloads,
            "clock": world.clock,
            "kicks": kicks,
            "link": world.sandboxes.link,
            "relay": Relay(world.sandboxes.link.journal, NoWires(), world.clock),
            "reactions": Reactions(kicks, bus),
            "sweeper": Sweeper(
                kicks,
                TaskSweep(world.sandboxes, kicks),
                world.pool,
                Reclaim(world.kicks.journal, world.vault, world.clock),
                Expiry(world.kicks.journal, world.payloads, world.clock),
                world.batches,
                builds,
            ),
            "builds": builds,
            "worker": Worker(world.ports),
        }
        for name, part in parts.items():
            self.__dict__[name] = part  # where a cached property keeps what it has built


class Deployed:
    """A world, its bus, and `call` for each function."""

    def __init__(self, world: World, replace_core: Callable[[ModuleType, Core], None]) -> None:
        self.world, self.bus = world, Bus()
        self._replace_core = replace_core

    def call(self, function: ModuleType, event: dict[str, Any], *, seconds: float = 900.0) -> dict[str, Any]:
        """What the function answers; the answer is JSON, as Lambda demands."""
        self._replace_core(function, MemoryCore(self.world, self.bus))
        answer = function.handler(json.loads(json.dumps(event)), cast("Any", LambdaContext(seconds=seconds)))
        return json.loads(json.dumps(answer))

    # --- events as AWS sends them ---

    def record(self, key: Key, number: int = 1, name: str = "MODIFY") -> dict[str, Any]:
        """The stream record of a row as it is now."""
        (row,) = self.world.store.get([key])
        assert row is not None
        return {
            "eventID": f"{number:032x}",
            "eventName": name,
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": REGION,
            "dynamodb": {
                "ApproximateCreationDateTime": 1893456000.0,
                "Keys": {"pk": {"S": key.pk}, "sk": {"S": key.sk}},
                "NewImage": encode_row(row),
                "SequenceNumber": f"{number:021d}",
                "SizeBytes": 100,
                "StreamViewType": "NEW_IMAGE",
            },
            "eventSourceARN": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/journal/stream/2030-01-01T00:00:00.000",
        }


def http(path: str, body: Any, *, token: str | None = None, method: str = "POST") -> dict[str, Any]:
    """A call of the HTTP API, payload format 2.0."""
    return {
        "version": "2.0",
        "routeKey": "POST /link/v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "content-type": "application/json",
            "host": f"abc.execute-api.{REGION}.amazonaws.com",
            **({"authorization": f"Bearer {token}"} if token is not None else {}),
        },
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "abc",
            "domainName": f"abc.execute-api.{REGION}.amazonaws.com",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": "id=",
            "stage": "$default",
            "timeEpoch": 1893456000000,
        },
        "body": body if isinstance(body, str) else json.dumps(body),
        "isBase64Encoded": False,
    }


def websocket(kind: str, connection: str = "L0SM9cOFvHcCIhw=", **more: Any) -> dict[str, Any]:
    """An event of the WebSocket API: `CONNECT`, `MESSAGE` or `DISCONNECT`."""
    routes = {"CONNECT": "$connect", "MESSAGE": "$default", "DISCONNECT": "$disconnect"}
    return {
        "requestContext": {
            "routeKey": routes.get(kind, kind),
            "eventType": kind,
            "extendedRequestId": "id=",
            "requestTime": "01/Jan/2030:00:00:00 +0000",
            "messageDirection": "IN",
            "stage": "link",
            "connectedAt": 1893456000000,
            "requestTimeEpoch": 1893456000000,
            "requestId": "id=",
            "domainName": f"ws.execute-api.{REGION}.amazonaws.com",
            "connectionId": connection,
            "apiId": "ws",
        },
        "isBase64Encoded": False,
        **more,
    }


def execution_ended(name: str, status: str = "FAILED") -> dict[str, Any]:
    """Step Functions' event of an execution's end, by way of EventBridge."""
    machine = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:line"
    return {
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": ACCOUNT,
        "time": "2030-01-01T00:00:00Z",
        "region": REGION,
        "resources": [f"{machine}:{name}"],
        "detail": {
            "executionArn": f"arn:aws:states:{REGION}:{ACCOUNT}:execution:line:{name}",
            "stateMachineArn": machine,
            "name": name,
            "status": status,
            "startDate": 1893456000000,
            "stopDate": 1893456001000,
            "input": None,
            "output": None,
            "error": "LineDied",
            "cause": "…",
        },
    }


def build_ended(build: str | None, status: str = "SUCCEEDED") -> dict[str, Any]:
    """CodeBuild's event of a build's end, by way of EventBridge; `build` is our name of it, None: it has none."""
    number = "nodus-environment-images:8745a7a9-c340-456a-9166-edf953571bEX"
    variables = [{"name": "NODUS_BUILD", "type": "PLAINTEXT", "value": build}] if build else []
    return {
        "version": "0",
        "id": "bfdc1220-60ff-44ad-bfa7-3b6e6ba3b2d0",
        "detail-type": "CodeBuild Build State Change",
        "source": "aws.codebuild",
        "account": ACCOUNT,
        "time": "2030-01-01T00:00:00Z",
        "region": REGION,
        "resources": [f"arn:aws:codebuild:{REGION}:{ACCOUNT}:build/{number}"],
        "detail": {
            "build-status": status,
            "project-name": "nodus-environment-images",
            "build-id": f"arn:aws:codebuild:{REGION}:{ACCOUNT}:build/{number}",
            "additional-information": {
                "environment": {"compute-type": "BUILD_GENERAL1_SMALL", "environment-variables": variables},
                "build-complete": True,
                "initiator": "nodus-sweeper",
            },
            "current-phase": "COMPLETED",
            "version": "1",
        },
    }


def task_ended(started_by: str | None, **detail: Any) -> dict[str, Any]:
    """ECS's event of a task's end, by way of EventBridge; the ARN is as `ScriptedSandboxes` gives it."""
    arn = f"task/{started_by}"
    return {
        "version": "0",
        "id": "3317b2af-7005-947d-b652-f55e762e571a",
        "detail-type": "ECS Task State Change",
        "source": "aws.ecs",
        "account": ACCOUNT,
        "time": "2030-01-01T00:00:00Z",
        "region": REGION,
        "resources": [arn],
        "detail": {
            "clusterArn": f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/sandboxes",
            "taskArn": arn,
            "lastStatus": "STOPPED",
            "desiredStatus": "STOPPED",
            **({"startedBy": started_by} if started_by is not None else {}),
            **detail,
        },
    }
