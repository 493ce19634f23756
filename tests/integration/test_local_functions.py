"""Functions in the local cloud: what AWS promises about them and the emulator alone does not."""

import io
import json
import textwrap
import zipfile
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from localstack.testing import TestCloud, discard, new_cloud

TRUST = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}

HANDLER = """
    import os, sys, time
    import in_layer

    class NoSuchThing(Exception):
        pass

    calls = 0

    def handler(event, context):
        global calls
        calls += 1
        print("a line on stdout")
        match event.get("do"):
            case "raise":
                raise NoSuchThing("thing 7")
            case "exit":
                os._exit(3)
            case "sleep":
                time.sleep(30)
            case "import":
                __import__(event["module"])
        return {
            "layer": in_layer.NAME, "calls": calls, "environment": dict(os.environ), "path": sys.path,
            "remaining": context.get_remaining_time_in_millis(), "arn": context.invoked_function_arn,
        }
"""


def archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, text in files.items():
            file.writestr(name, textwrap.dedent(text))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def owned_cloud() -> Iterator[TestCloud]:
    """A cloud that a person with a provider's key in the environment has started."""
    cloud = new_cloud({"ANTHROPIC_API_KEY": "sk-secret-of-the-person"})
    try:
        cloud.run("up", "--no-deploy")
        yield cloud
    finally:
        discard(cloud)


@pytest.fixture(scope="module")
def function(owned_cloud: TestCloud) -> Any:
    """Invokes a deployed function: event -> (error class or None, answer)."""
    client = deployed(owned_cloud)

    def invoke(**event: Any) -> tuple[str | None, Any]:
        answer = client.invoke(FunctionName="probe", Payload=json.dumps(event).encode())
        body = json.load(answer["Payload"])
        return (body["errorType"] if "FunctionError" in answer else None), body

    return invoke


def deployed(cloud: TestCloud) -> Any:
    arguments = cloud.cloud.client_arguments()
    document = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    iam = boto3.client("iam", **arguments)
    role = iam.create_role(RoleName="probe", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    client = boto3.client("lambda", **arguments)
    layer = client.publish_layer_version(
        LayerName="probe", Content={"ZipFile": archive({"python/in_layer.py": "NAME = 'from the layer'\n"})}
    )
    client.create_function(
        FunctionName="probe",
        Runtime="python3.12",
        Role=role,
        Handler="pack.module.handler",
        Timeout=2,
        Code={"ZipFile": archive({"pack/__init__.py": "", "pack/module.py": HANDLER})},
        Layers=[layer["LayerVersionArn"]],
        Environment={"Variables": {"OWN": "value", "AWS_ACCESS_KEY_ID": "forged"}},
    )
    return client


def test_sees_its_code_its_layers_and_its_own_variables(function: Any) -> None:
    error, answer = function()
    assert error is None
    assert answer["layer"] == "from the layer"
    assert answer["environment"]["OWN"] == "value"
    assert answer["environment"]["AWS_ACCESS_KEY_ID"].startswith("ASIA")
    assert answer["arn"].endswith(":function:probe")
    assert 0 < answer["remaining"] <= 2000


def test_sees_nothing_of_the_person_or_of_the_emulator(function: Any) -> None:
    _, answer = function()
    assert "sk-secret-of-the-person" not in json.dumps(answer["environment"])
    assert not any("site-packages" in path or path.endswith("localstack/cloud") for path in answer["path"])


@pytest.mark.parametrize("module", ["ministack", "botocore", "localstack", "yaml"])
def test_cannot_import_what_its_layers_lack(function: Any, module: str) -> None:
    error, _ = function(do="import", module=module)
    assert error == "ModuleNotFoundError"


def test_an_error_goes_by_its_class_and_the_environment_stays_warm(function: Any) -> None:
    _, before = function()
    error, body = function(do="raise")
    assert error == "NoSuchThing"
    assert body["errorMessage"] == "thing 7"
    assert any("pack/module.py" in line for line in body["stackTrace"])
    _, after = function()
    assert after["calls"] == before["calls"] + 2


def test_an_exit_and_a_time_out_are_told_apart_and_survived(function: Any) -> None:
    assert function(do="exit")[0] == "Runtime.ExitError"
    error, body = function(do="sleep")
    assert error == "Sandbox.Timedout"
    assert body["errorMessage"] == "Task timed out after 2.00 seconds"
    assert function()[0] is None
