"""What a person gets from `make up` and `make demo`, and after `make down`."""

import subprocess

import pytest
import yaml

from localstack.endpoints import Cloud
from localstack.paths import APP_BIN, CLOUD_PYTHON, ROOT
from localstack.processes import marked
from localstack.testing import TestCloud

pytestmark = pytest.mark.timeout(300)


def demo(cloud: TestCloud) -> str:
    done = subprocess.run(
        [CLOUD_PYTHON, "-m", "localstack.demo"],
        cwd=ROOT,
        env=cloud.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def nodus(cloud: TestCloud, *words: str) -> str:
    done = subprocess.run(
        [APP_BIN / "nodus", *words], env=cloud.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_demo_runs_again_and_again_also_after_a_restart(local_cloud: TestCloud) -> None:
    first = demo(local_cloud)
    assert "turn-1.tool.run_command.1" in first
    assert "The Python version is 3." in first
    assert "scripted/" in first  # never shown as if a real model had answered

    local_cloud.run("down")
    assert marked(local_cloud.state.folder) == []
    up = local_cloud.run("up")
    assert "deploy" not in up.stdout
    assert "Succeeded" in nodus(local_cloud, "get", "agentrun/hello-agent-run")

    again = demo(local_cloud)
    assert "agentrun/hello-agent-run deleted" in again
    assert "The Python version is 3." in again

    # Others in this session's cloud make an agent and a run of these names too, and want to be the first.
    nodus(local_cloud, "delete", "agentrun/hello-agent-run")
    nodus(local_cloud, "delete", "agent/hello-agent")


def test_a_second_up_deploys_nothing_and_keeps_the_key(local_cloud: TestCloud) -> None:
    before = local_cloud.configuration.read_text(), local_cloud.state.cloud_file.read_text()
    assert "deploy" not in local_cloud.run("up").stdout
    assert (local_cloud.configuration.read_text(), local_cloud.state.cloud_file.read_text()) == before


def test_other_contexts_of_the_configuration_are_kept(local_cloud: TestCloud) -> None:
    before = local_cloud.configuration.read_text()
    other = {"server": "https://nodus.example", "org": "acme", "project": "p", "token": "other"}
    mixed = yaml.safe_load(before)
    mixed["contexts"] = {"work": other, **mixed["contexts"]}
    mixed["current-context"] = "work"
    mixed["contexts"]["local"]["server"] = "http://127.0.0.1:1/moved"
    local_cloud.configuration.write_text(yaml.safe_dump(mixed))
    try:
        said = local_cloud.run("up").stdout
        after = yaml.safe_load(local_cloud.configuration.read_text())
    finally:
        local_cloud.configuration.write_text(before)
    assert after["current-context"] == "work"
    assert after["contexts"]["work"] == other
    assert after["contexts"]["local"] == yaml.safe_load(before)["contexts"]["local"]
    assert "the current context is 'work'" in said


def test_a_broken_configuration_is_not_overwritten(local_cloud: TestCloud) -> None:
    before = local_cloud.configuration.read_text()
    local_cloud.configuration.write_text("contexts: [")
    try:
        failed = local_cloud.run("up", check=False)
        assert failed.returncode == 1
        assert "NODUS_CONFIG" in failed.stderr
        assert local_cloud.configuration.read_text() == "contexts: ["
    finally:
        local_cloud.configuration.write_text(before)


def test_cloud_json_says_how_to_reach_everything(local_cloud: TestCloud) -> None:
    cloud = Cloud.load(local_cloud.state)
    assert cloud.api_url.startswith(f"{cloud.endpoint}/_aws/execute-api/")
    assert set(cloud.pids) == {"cloud", "ecs-agent", "scripted"}
    for name in ("TableName", "PayloadBucket", "ClusterName", "LineMachineArn", "AdminFunctionName"):
        assert cloud.output(name)
