"""CloudFormation in the local cloud: what CDK relies on and the emulator alone gets wrong."""

import json
import os
import signal
import time
from typing import Any

import boto3
import pytest

from localstack import daemons
from localstack import deploy as deployment
from localstack.testing import TestCloud

SECRET = {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": "word"}}
BASE: dict[str, Any] = {"Resources": {"Secret": SECRET}, "Outputs": {"ByRef": {"Value": {"Ref": "Secret"}}}}


class Stack:
    """Executes change sets of one stack and answers its outputs, as CDK does it."""

    def __init__(self, cloud: TestCloud, name: str) -> None:
        self._client = boto3.client("cloudformation", **cloud.cloud.client_arguments())
        self._name = name
        self._changes = 0

    def execute(self, template: dict[str, Any]) -> dict[str, str]:
        kind = "UPDATE" if self._changes else "CREATE"
        self._changes += 1
        names = {"StackName": self._name, "ChangeSetName": f"change-{self._changes}"}
        self._client.create_change_set(**names, TemplateBody=json.dumps(template), ChangeSetType=kind)
        self._client.get_waiter("change_set_create_complete").wait(**names, WaiterConfig={"Delay": 1})
        self._client.execute_change_set(**names)
        while not self.status().endswith("_COMPLETE"):
            time.sleep(0.05)
        return {each["OutputKey"]: each["OutputValue"] for each in self.description()["Outputs"]}

    def status(self) -> str:
        return self.description()["StackStatus"]

    def description(self) -> dict[str, Any]:
        return self._client.describe_stacks(StackName=self._name)["Stacks"][0]


def test_a_reference_to_a_secret_is_its_arn_and_outputs_alone_are_a_change(
    bare_cloud: TestCloud,
) -> None:
    stack = Stack(bare_cloud, "references")
    arn = stack.execute(BASE)["ByRef"]
    assert arn.startswith("arn:aws:secretsmanager:")
    more = {**BASE["Outputs"], "More": {"Value": "value", "Export": {"Name": "more"}}}
    assert stack.execute({**BASE, "Outputs": more}) == {"ByRef": arn, "More": "value"}

    client = boto3.client("cloudformation", **bare_cloud.cloud.client_arguments())
    assert "more" in {each["Name"] for each in client.list_exports()["Exports"]}
    secrets = boto3.client("secretsmanager", **bare_cloud.cloud.client_arguments())
    assert secrets.get_secret_value(SecretId=arn)["SecretString"] == "word"

    changed = {**SECRET, "Properties": {"SecretString": "other", "Description": "changed"}}
    assert stack.execute({**BASE, "Resources": {"Secret": changed}})["ByRef"] == arn
    assert secrets.get_secret_value(SecretId=arn)["SecretString"] == "other"


def test_stacks_survive_a_restart(bare_cloud: TestCloud) -> None:
    stack = Stack(bare_cloud, "survivor")
    arn = stack.execute(BASE)["ByRef"]
    stack.execute({**BASE, "Outputs": {**BASE["Outputs"], "More": {"Value": "value"}}})
    bare_cloud.run("down")
    bare_cloud.run("up", "--no-deploy")
    assert "failed to load" not in (bare_cloud.state.logs / "cloud.log").read_text()
    assert Stack(bare_cloud, "survivor").description()["Outputs"][0]["OutputValue"] == arn


@pytest.mark.timeout(240, func_only=True)
def test_a_kill_right_after_the_bootstrap_undoes_no_more_than_its_note(bare_cloud: TestCloud) -> None:
    """Else every later deploy would fail at a bootstrap that was noted and is not there."""
    deployment.bootstrap(bare_cloud.state, bare_cloud.cloud)
    os.kill(bare_cloud.cloud.pids[daemons.CLOUD], signal.SIGKILL)
    bare_cloud.run("up", "--no-deploy")
    assert (bare_cloud.state.deployment / "bootstrapped").exists()
    assert Stack(bare_cloud, "CDKToolkit").status() == "CREATE_COMPLETE"
