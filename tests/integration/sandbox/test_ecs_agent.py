"""The agent against the emulator: tasks are the only thing that starts and ends a sandbox."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest

from localstack import daemons
from localstack.endpoints import Cloud
from localstack.paths import CLOUD_PYTHON, ROOT, State
from tests.integration.sandbox.bench import HERE, Guest, alive, find_bwraps, running_with, wait_until

CLUSTER = "nodus-agent-test"


@pytest.fixture(scope="module")
def cloud() -> Iterator[tuple[State, Cloud]]:
    """An emulator of its own, with nothing deployed: the `up` of others would start an agent of its own."""
    if not CLOUD_PYTHON.exists():
        pytest.skip("the local cloud's environment is not installed (`make setup`)")
    if not find_bwraps():
        pytest.skip("no bwrap on this machine")
    state = State(Path(tempfile.mkdtemp(prefix="nodus-agent-")))
    state.create()
    made = daemons.new_cloud(state)
    made.save(state)
    daemon = daemons.cloud_daemon(state, made)
    with daemon.log.open("ab") as log:
        process = subprocess.Popen(
            list(daemon.command), cwd=ROOT, env=dict(daemon.environment), stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_until(lambda: daemons.answers(made) or process.poll() is not None, "the emulator answers")
        assert process.poll() is None, daemon.log.read_text()
        yield state, made
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(state.folder)


class Link:
    """Takes refusals."""

    def __init__(self) -> None:
        self.refusals: dict[str, dict[str, Any]] = {}
        link = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                link.refusals[self.path] = body
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/link/v1"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Bench:
    """A cluster, a link, and agents for them."""

    def __init__(self, state: State, cloud: Cloud) -> None:
        self.state = state
        self.cloud = cloud
        self.ecs: Any = boto3.client("ecs", **cloud.client_arguments())
        self.ecs.create_cluster(clusterName=CLUSTER)
        self.ecs.register_task_definition(
            family="sandbox",
            cpu="512",
            memory="1024",
            networkMode="awsvpc",
            requiresCompatibilities=["FARGATE"],
            containerDefinitions=[{"name": "sandbox", "image": "nodus/agent-tools"}],
        )
        self.link = Link()
        self.log = state.logs / "agent-test.log"
        self.log.write_text("")
        self.agent: subprocess.Popen[bytes] | None = None

    def start_agent(self, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        before = self.log.read_text().count(" ready: ")
        environment = {
            "NODUS_STATE": str(self.state.folder),
            "PATH": os.environ["PATH"],
            "HOME": "/",
            **variables,
        }
        command = [str(CLOUD_PYTHON), "-m", "localstack.ecs_agent", "--cluster", CLUSTER]
        with self.log.open("ab") as log:
            self.agent = subprocess.Popen(
                [*command, "--daemon", str(HERE / "standin"), "--grace-s", "0.5", *words],
                cwd=ROOT,
                env=environment,
                stderr=log,
            )
        agent = self.agent
        wait_until(
            lambda: agent.poll() is not None or self.log.read_text().count(" ready: ") > before,
            "the agent is ready",
        )
        assert agent.poll() is None, self.log.read_text()
        return agent

    def run_task(self, sandbox_id: str, **more: str) -> str:
        variables = {
            "NODUS_SANDBOX_ID": sandbox_id,
            "NODUS_LINK_HTTP": self.link.url,
            "NODUS_LINK_WS": self.link.url.replace("http", "ws"),
            "NODUS_ENROL_CODE": "enrol-secret",
            "NODUS_HARD_DEADLINE_S": "600",
            **more,
        }
        environment = [{"name": name, "value": value} for name, value in variables.items() if value]
        answer = self.ecs.run_task(
            cluster=CLUSTER,
            taskDefinition="sandbox",
            startedBy=sandbox_id,
            launchType="FARGATE",
            networkConfiguration={"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
            overrides={"containerOverrides": [{"name": "sandbox", "environment": environment}]},
            tags=[{"key": "nodus:sandbox", "value": sandbox_id}],
        )
        return answer["tasks"][0]["taskArn"]

    def task(self, arn: str) -> dict[str, Any]:
        return self.ecs.describe_tasks(cluster=CLUSTER, tasks=[arn])["tasks"][0]

    def guest(self, sandbox_id: str) -> Guest:
        record = self.state.sandboxes / sandbox_id / "sandbox.json"

        def pids() -> list[int]:
            return sorted(map(int, json.loads(record.read_text())["processes"])) if record.exists() else []

        wait_until(lambda: len(pids()) == 2, f"{sandbox_id} runs")
        bwrap, pid = pids()
        return Guest(sandbox_id, pid, bwrap, record.parent)

    def stopped(self, arn: str) -> Callable[[], bool]:
        return lambda: self.task(arn)["lastStatus"] == "STOPPED"

    def gone(self, sandbox_id: str) -> Callable[[], bool]:
        return lambda: not (self.state.sandboxes / sandbox_id).exists()

    def close(self) -> None:
        if self.agent is not None and self.agent.poll() is None:
            self.agent.terminate()
            self.agent.wait(30)
        for arn in self.ecs.list_tasks(cluster=CLUSTER)["taskArns"]:
            self.ecs.stop_task(cluster=CLUSTER, task=arn)
        self.ecs.close()
        self.link.close()
        for folder in self.state.sandboxes.glob("sbx-*"):
            shutil.rmtree(folder)


@pytest.fixture
def bench(cloud: tuple[State, Cloud]) -> Iterator[Bench]:
    made = Bench(*cloud)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.req("NOD-042", "NOD-453")
def test_a_task_becomes_a_sandbox(bench: Bench) -> None:
    bench.start_agent()
    bench.run_task("sbx-a")
    guest = bench.guest("sbx-a")
    assert guest.sh("python3 --version").out.startswith("Python 3")
    assert json.loads(guest.ask({})["isolation"])["isolated"] is True
    if os.geteuid() == 0:
        assert json.loads(guest.ask({})["limits"])["enforced"]["memoryBytes"] == 1024 * 1024 * 1024
    (line,) = [line for line in bench.log.read_text().splitlines() if "sandbox sbx-a started" in line]
    assert f"pid={guest.pid}" in line
    assert "enrol-secret" not in bench.log.read_text()


@pytest.mark.req("NOD-042")
def test_two_tasks_are_two_sandboxes(bench: Bench) -> None:
    bench.start_agent()
    for sandbox_id in ("sbx-a", "sbx-b"):
        bench.run_task(sandbox_id)
    first, second = bench.guest("sbx-a"), bench.guest("sbx-b")
    assert first.sh("echo first > /tmp/x && cat /tmp/x").out == "first\n"
    assert second.sh("cat /tmp/x").code != 0


def test_a_task_from_before_the_agent_is_started(bench: Bench) -> None:
    bench.run_task("sbx-a")
    bench.start_agent()
    assert bench.guest("sbx-a").sh("echo here").out == "here\n"


@pytest.mark.req("NOD-043", "NOD-044", "FLD-09")
def test_a_stopped_task_ends_its_sandbox_with_all_it_started(bench: Bench) -> None:
    bench.start_agent()
    arn = bench.run_task("sbx-a")
    guest = bench.guest("sbx-a")
    guest.sh("(trap '' TERM; exec setsid sleep 8688.1) >/dev/null 2>&1 &")
    wait_until(lambda: running_with("8688.1"), "it runs")
    bench.ecs.stop_task(cluster=CLUSTER, task=arn, reason="released")
    wait_until(lambda: not alive(guest.pid) and not running_with("8688.1"), "everything ends")
    wait_until(bench.gone("sbx-a"), "its folder is removed")
    assert bench.task(arn)["stoppedReason"] == "released"


@pytest.mark.req("NOD-044")
def test_the_end_of_a_sandbox_stops_its_task_with_a_reason(bench: Bench) -> None:
    bench.start_agent()
    arn = bench.run_task("sbx-a")
    os.kill(bench.guest("sbx-a").pid, signal.SIGKILL)
    wait_until(bench.stopped(arn), "the task is stopped")
    assert bench.task(arn)["stoppedReason"].startswith("NodusSandboxEnded: exit code")
    wait_until(bench.gone("sbx-a"), "its folder is removed")


@pytest.mark.req("NOD-044")
def test_sigterm_ends_all_sandboxes_and_stops_their_tasks(bench: Bench) -> None:
    agent = bench.start_agent()
    arns = [bench.run_task("sbx-a"), bench.run_task("sbx-b")]
    pids = [bench.guest("sbx-a").pid, bench.guest("sbx-b").pid]
    agent.terminate()
    assert agent.wait(30) == 0
    assert not any(alive(pid) for pid in pids)
    assert all(bench.stopped(arn)() for arn in arns)
    assert list(bench.state.sandboxes.glob("sbx-*")) == []


@pytest.mark.req("NOD-044")
def test_a_killed_agent_takes_its_sandboxes_along_and_the_next_one_says_so(bench: Bench) -> None:
    agent = bench.start_agent()
    arn = bench.run_task("sbx-a")
    guest = bench.guest("sbx-a")
    agent.kill()
    agent.wait()
    wait_until(lambda: not alive(guest.pid), "the sandbox ends with the agent")
    assert not bench.stopped(arn)()
    bench.start_agent()
    wait_until(bench.stopped(arn), "the task is stopped")
    assert bench.task(arn)["stoppedReason"].startswith("NodusAgentRestarted")
    assert bench.gone("sbx-a")()
    other = bench.run_task("sbx-b")
    assert bench.guest("sbx-b").sh("echo fine").out == "fine\n"
    assert not bench.stopped(other)()


@pytest.mark.req("NOD-458")
@pytest.mark.parametrize(
    ("agent", "egress", "reason"),
    [
        (
            {"NODUS_SANDBOX_UNISOLATED": "i-understand"},
            "AllowList",
            "without isolation nothing keeps commands to",
        ),
        (
            {"NODUS_SANDBOX_GUARD": "seccomp"},
            "Open",
            "leaves the sandbox without a network, which the guard's proxy needs for Open",
        ),
        ({}, "Ajar", "'Ajar' is not a policy that lets anything out"),
    ],
)
def test_egress_that_cannot_be_enforced_is_refused(
    bench: Bench, agent: dict[str, str], egress: str, reason: str
) -> None:
    bench.start_agent(**agent)
    arn = bench.run_task("sbx-a", NODUS_EGRESS=egress, NODUS_EGRESS_ALLOW="example.com")
    wait_until(bench.stopped(arn), "the task is stopped")
    assert reason in bench.task(arn)["stoppedReason"]
    wait_until(lambda: bench.link.refusals, "the link is told")
    told = bench.link.refusals["/link/v1/sandboxes/sbx-a/refused"]
    assert told["enrolCode"] == "enrol-secret"
    assert reason in told["reason"]
    assert "spec.network.egress" in told["remedy"]


@pytest.mark.req("NOD-042")
def test_without_isolation_commands_are_not_run(bench: Bench) -> None:
    bench.start_agent(NODUS_BWRAP="/bin/false")
    arn = bench.run_task("sbx-a")
    wait_until(bench.stopped(arn), "the task is stopped")
    wait_until(lambda: bench.link.refusals, "the link is told")
    told = bench.link.refusals["/link/v1/sandboxes/sbx-a/refused"]
    assert told["reason"].startswith("No isolation on this machine (bwrap: ")
    assert "Commands are not run" in told["reason"]
    assert told["reason"].endswith("NODUS_SANDBOX_UNISOLATED=i-understand")
    assert "bubblewrap" in told["remedy"]


def test_the_opt_in_says_that_nothing_is_isolated(bench: Bench) -> None:
    bench.start_agent(NODUS_SANDBOX_UNISOLATED="i-understand")
    arn = bench.run_task("sbx-a")
    folder = bench.state.sandboxes / "sbx-a"
    wait_until((folder / "daemon" / "secret").exists, "the daemon runs")
    guest = Guest("sbx-a", 0, 0, folder)
    about = guest.ask({})
    isolation = json.loads(about["isolation"])
    assert isolation["isolated"] is False
    assert isolation["guard"] is None
    assert isolation["optIn"] is True
    assert {"filesystem", "network"} <= set(isolation["missing"])
    assert guest.sh("pwd; echo $HOME").out.split() == [str(folder / "workspace"), str(folder / "home")]
    bench.ecs.stop_task(cluster=CLUSTER, task=arn)
    wait_until(lambda: not alive(about["pid"]), "the daemon ends")


def test_more_tasks_than_slots_wait(bench: Bench) -> None:
    bench.start_agent("--max-sandboxes", "1")
    first = bench.run_task("sbx-a")
    bench.guest("sbx-a")
    second = bench.run_task("sbx-b")
    wait_until(lambda: "all slots are taken" in bench.log.read_text(), "the agent says so")
    assert not (bench.state.sandboxes / "sbx-b").exists()
    bench.ecs.stop_task(cluster=CLUSTER, task=first)
    assert bench.guest("sbx-b").sh("echo now").out == "now\n"
    assert not bench.stopped(second)()


def test_tasks_that_are_no_sandboxes_are_left_alone(bench: Bench) -> None:
    bench.start_agent()
    foreign = bench.run_task("sbx-x", NODUS_SANDBOX_ID="")
    bench.run_task("sbx-a")
    bench.guest("sbx-a")
    assert not bench.stopped(foreign)()


@pytest.mark.parametrize("name", ["../../etc", "a/b", ".."])
def test_a_hostile_id_is_refused(bench: Bench, name: str) -> None:
    bench.start_agent()
    arn = bench.run_task("sbx-x", NODUS_SANDBOX_ID=name)
    wait_until(bench.stopped(arn), "the task is stopped")
    assert "cannot be made here" in bench.task(arn)["stoppedReason"]


def test_a_second_agent_for_the_same_state_does_not_start(bench: Bench) -> None:
    bench.start_agent()
    second = subprocess.run(
        [str(CLOUD_PYTHON), "-m", "localstack.ecs_agent", "--cluster", CLUSTER],
        cwd=ROOT,
        env={"NODUS_STATE": str(bench.state.folder), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert "another agent" in second.stderr
