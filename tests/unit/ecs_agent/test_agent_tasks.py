"""What ECS says, and what the agent makes of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from localstack.ecs_agent.agent import Agent
from localstack.ecs_agent.errors import SandboxStartError
from localstack.ecs_agent.isolation import Isolation, Mode, Refusal
from localstack.ecs_agent.launcher import Order
from localstack.ecs_agent.means import Means
from localstack.ecs_agent.tasks import CloudUnreachableError, Cluster


class FakeEcs:
    """Tasks in memory, in pages of two."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.away = False

    def add(self, arn: str, **variables: str) -> None:
        environment = [{"name": name, "value": value} for name, value in variables.items()]
        self.tasks[arn] = {
            "taskArn": arn,
            "desiredStatus": "RUNNING",
            "lastStatus": "RUNNING",
            "cpu": "512",
            "memory": "1024",
            "overrides": {"containerOverrides": [{"name": "sandbox", "environment": environment}]},
        }

    def list_tasks(self, cluster: str, desiredStatus: str, nextToken: str = "0") -> dict[str, Any]:
        if self.away:
            raise EndpointConnectionError(endpoint_url="http://x")
        arns = [arn for arn, task in self.tasks.items() if task["desiredStatus"] == desiredStatus]
        start = int(nextToken)
        more = {"nextToken": str(start + 2)} if len(arns) > start + 2 else {}
        return {"taskArns": arns[start : start + 2], **more}

    def describe_tasks(self, cluster: str, tasks: list[str]) -> dict[str, Any]:
        return {"tasks": [self.tasks[arn] for arn in tasks if arn in self.tasks]}

    def stop_task(self, cluster: str, task: str, reason: str) -> dict[str, Any]:
        if task not in self.tasks:
            raise ClientError({"Error": {"Code": "InvalidParameterException"}}, "StopTask")
        self.tasks[task] |= {"desiredStatus": "STOPPED", "stoppedReason": reason}
        return {}


class FakeSandbox:
    def __init__(self, sandbox_id: str, slot: int) -> None:
        self.sandbox_id, self.slot, self.pid = sandbox_id, slot, 1
        self.code: int | None = None
        self.group = self.folder = self
        self.enforced: frozenset[str] = frozenset()
        self.asked = 0

    def poll(self) -> int | None:
        return self.code

    def ask_to_end(self) -> None:
        self.asked += 1

    def kill(self) -> None:
        self.code = -9

    def close(self) -> None:
        assert self.code is not None

    def remove(self) -> None:
        assert self.code is not None

    def log_tail(self) -> str:
        return ""


class FakeLauncher:
    def __init__(self) -> None:
        self.started: list[FakeSandbox] = []
        self.orders: list[Order] = []

    def start(self, order: Order, isolation: Isolation, slot: int) -> FakeSandbox:
        self.orders.append(order)
        self.started.append(FakeSandbox(order.sandbox_id, slot))
        return self.started[-1]


@pytest.fixture
def ecs() -> FakeEcs:
    return FakeEcs()


@pytest.fixture
def launcher() -> FakeLauncher:
    return FakeLauncher()


@pytest.fixture
def agent(ecs: FakeEcs, launcher: FakeLauncher) -> Agent:
    return agent_with(ecs, launcher, [Isolation(Mode.USER)])


def agent_with(ecs: FakeEcs, launcher: FakeLauncher, decisions: list[Isolation | Refusal]) -> Agent:
    """An agent that decides what is next in `decisions`; it may not decide more often than that."""
    given: Any = launcher
    means = Means(given, lambda same: (same, decisions.pop(0)), lambda _: None)
    return Agent(Cluster(ecs, "c"), means, max_sandboxes=2, grace_s=0)


def test_only_the_daemons_variables_and_the_link_are_taken(
    ecs: FakeEcs, launcher: FakeLauncher, agent: Agent
) -> None:
    ecs.add(
        "t1",
        NODUS_SANDBOX_ID="a",
        NODUS_LINK_HTTP="http://h:1/l",
        NODUS_LINK_WS="ws://h:2/l",
        LD_PRELOAD="/x",
    )
    agent.look()
    (order,) = launcher.orders
    assert set(order.variables) == {"NODUS_SANDBOX_ID", "NODUS_LINK_HTTP", "NODUS_LINK_WS"}
    assert order.allowed == {("h", 1), ("h", 2)}
    assert order.limits.memory_bytes == 1024 * 1024 * 1024


def test_a_task_is_started_once_however_often_one_looks(
    ecs: FakeEcs, launcher: FakeLauncher, agent: Agent
) -> None:
    ecs.add("t1", NODUS_SANDBOX_ID="a")
    for _ in range(3):
        agent.look()
    assert len(launcher.started) == 1
    launcher.started[0].code = 0
    for _ in range(3):
        agent.look()
    assert len(launcher.started) == 1
    assert ecs.tasks["t1"]["stoppedReason"] == "NodusSandboxEnded: exit code 0"


def test_a_refusal_is_thought_over_for_a_new_sandbox_and_only_then(
    ecs: FakeEcs, launcher: FakeLauncher
) -> None:
    agent = agent_with(ecs, launcher, [Refusal("no", "do x"), Refusal("no", "do x"), Isolation(Mode.USER)])
    ecs.add("t1", NODUS_SANDBOX_ID="a")
    agent.look()
    agent.look()
    assert launcher.started == []
    assert "No isolation on this machine (no)" in ecs.tasks["t1"]["stoppedReason"]
    ecs.add("t2", NODUS_SANDBOX_ID="b")  # somebody has followed the remedy
    agent.look()
    assert [each.sandbox_id for each in launcher.started] == ["b"]


def test_a_start_that_fails_refuses_its_task_and_frees_its_slot(
    ecs: FakeEcs, launcher: FakeLauncher, agent: Agent
) -> None:
    def start(order: Order, isolation: Isolation, slot: int) -> FakeSandbox:
        raise SandboxStartError("[Errno 28] No space left on device")

    working, launcher.start = launcher.start, start
    for n in range(3):
        ecs.add(f"t{n}", NODUS_SANDBOX_ID=f"s{n}")
    agent.look()
    agent.look()
    assert "No space left" in ecs.tasks["t2"]["stoppedReason"]
    launcher.start = working
    ecs.add("t9", NODUS_SANDBOX_ID="later")
    agent.look()
    assert [each.sandbox_id for each in launcher.started] == ["later"]


def test_every_page_is_read(ecs: FakeEcs, launcher: FakeLauncher, agent: Agent) -> None:
    for n in range(5):
        ecs.add(f"t{n}")
    ecs.add("t9", NODUS_SANDBOX_ID="last")
    agent.look()
    assert [each.sandbox_id for each in launcher.started] == ["last"]


def test_a_stopped_task_ends_its_sandbox_politely_then_by_force(
    ecs: FakeEcs, launcher: FakeLauncher, agent: Agent
) -> None:
    ecs.add("t1", NODUS_SANDBOX_ID="a")
    agent.look()
    (sandbox,) = launcher.started
    ecs.tasks["t1"]["desiredStatus"] = "STOPPED"
    agent.look()
    assert (sandbox.asked, sandbox.code) == (1, None)
    agent.look()
    assert (sandbox.asked, sandbox.code) == (1, -9)


def test_a_task_that_the_cloud_lost_was_not_stopped(
    ecs: FakeEcs, launcher: FakeLauncher, agent: Agent
) -> None:
    ecs.add("t1", NODUS_SANDBOX_ID="a")
    agent.look()
    ecs.tasks.clear()
    for _ in range(3):
        agent.look()
    (sandbox,) = launcher.started
    assert (sandbox.asked, sandbox.code) == (0, None)
    sandbox.code = 0
    agent.look()  # StopTask of an unknown task is no error


def test_sandboxes_run_on_while_the_cloud_is_away(ecs: FakeEcs, launcher: FakeLauncher, agent: Agent) -> None:
    ecs.add("t1", NODUS_SANDBOX_ID="a")
    agent.look()
    ecs.away = True
    with pytest.raises(CloudUnreachableError):
        agent.look()
    assert launcher.started[0].asked == 0
    ecs.away = False
    agent.look()
    assert len(launcher.started) == 1


def test_slots_are_used_again_and_never_twice(ecs: FakeEcs, launcher: FakeLauncher, agent: Agent) -> None:
    for n in range(3):
        ecs.add(f"t{n}", NODUS_SANDBOX_ID=f"s{n}")
    agent.look()
    assert [each.slot for each in launcher.started] == [0, 1]
    launcher.started[1].code = 0
    agent.look()
    assert [(each.sandbox_id, each.slot) for each in launcher.started[2:]] == [("s2", 1)]


def test_the_end_of_the_agent_ends_all(ecs: FakeEcs, launcher: FakeLauncher, agent: Agent) -> None:
    ecs.add("t1", NODUS_SANDBOX_ID="a")
    agent.look()
    stop = threading.Event()
    stop.set()
    agent.run(stop, 0.01)
    assert launcher.started[0].asked == 1
    assert launcher.started[0].code is not None
    assert ecs.tasks["t1"]["desiredStatus"] == "STOPPED"
