"""Task definitions for other images than the deployment's own (NOD-449, NODQ-82)."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.stub import ANY
from nodus_core.aws.ecr import EcrRegistry
from nodus_core.aws.task_definitions import ENTRY_POINT, TaskDefinitions
from nodus_core.kernel.errors import RetryableError, TerminalError

HOST = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
OWN = f"{HOST}/nodus/agent-tools"
RUNTIME = f"{HOST}/nodus/sandboxd-runtime:latest"
DIGEST = f"sha256:{'a' * 64}"
PYTHON = f"public.ecr.aws/docker/library/python@{DIGEST}"
LOGS = {"logDriver": "awslogs", "options": {"awslogs-group": "/aws/ecs/nodus-sandboxes"}}
BASE: dict[str, Any] = {
    "taskDefinitionArn": "arn:aws:ecs:eu-central-1:123456789012:task-definition/nodus-sandbox:7",
    "family": "nodus-sandbox",
    "revision": 7,
    "status": "ACTIVE",
    "networkMode": "awsvpc",
    "requiresCompatibilities": ["FARGATE"],
    "cpu": "1024",
    "memory": "2048",
    "executionRoleArn": "arn:aws:iam::123456789012:role/execution",
    "containerDefinitions": [
        {
            "name": "sandbox",
            "image": f"{OWN}:latest",
            "essential": True,
            "environment": [{"name": "NODUS_COMMAND_UID", "value": "1000"}],
            "linuxParameters": {"capabilities": {"drop": ["NET_RAW"]}, "initProcessEnabled": False},
            "logConfiguration": LOGS,
        }
    ],
}


@pytest.fixture
def ecs(stub: Callable[[str], Any]) -> tuple[TaskDefinitions, Any]:
    client, answers = stub("ecs")
    return TaskDefinitions(client, "nodus-sandbox", "sandbox", RUNTIME), answers


def described(answers: Any, *, known: bool = False) -> None:
    answers.add_response(
        "describe_task_definition", {"taskDefinition": BASE}, {"taskDefinition": "nodus-sandbox"}
    )
    if known:
        answers.add_response("describe_task_definition", {"taskDefinition": {"status": "ACTIVE"}})
    else:
        answers.add_client_error("describe_task_definition", "ClientException", "Unable to describe it.")


def registered(answers: Any, **more: Any) -> None:
    answers.add_response(
        "register_task_definition",
        {"taskDefinition": {}},
        {
            "family": ANY,
            "networkMode": "awsvpc",
            "requiresCompatibilities": ["FARGATE"],
            "cpu": "1024",
            "memory": "2048",
            "executionRoleArn": BASE["executionRoleArn"],
            **more,
        },
    )


def test_without_an_image_it_is_the_deployments_own_and_nobody_is_asked(ecs: tuple[Any, Any]) -> None:
    assert ecs[0].of_image(None) == "nodus-sandbox"


@pytest.mark.req("NOD-448", "NOD-450")
def test_a_version_of_the_own_image_is_started_as_it_is(ecs: tuple[Any, Any]) -> None:
    definitions, answers = ecs
    described(answers)
    container = {**BASE["containerDefinitions"][0], "image": f"{OWN}@{DIGEST}"}
    registered(answers, containerDefinitions=[container])
    assert definitions.of_image(f"{OWN}@{DIGEST}").startswith("nodus-sandbox-")
    answers.assert_no_pending_responses()


@pytest.mark.req("NOD-449")
def test_a_foreign_image_gets_the_daemon_from_an_init_container(ecs: tuple[Any, Any]) -> None:
    definitions, answers = ecs
    described(answers)
    init = {
        "name": "runtime",
        "image": RUNTIME,
        "essential": False,
        "mountPoints": [
            {"sourceVolume": "runtime", "containerPath": "/nodus", "readOnly": False},
            {"sourceVolume": "home", "containerPath": "/nodus-home", "readOnly": False},
        ],
        "logConfiguration": LOGS,
    }
    sandbox = {
        **BASE["containerDefinitions"][0],
        "image": PYTHON,
        "entryPoint": ENTRY_POINT,
        "command": [],
        "user": "0:0",
        "workingDirectory": "/",
        "environment": [
            {"name": "NODUS_COMMAND_UID", "value": "1000"},
            {"name": "HOME", "value": "/home/agent"},
            {"name": "USER", "value": "agent"},
            {"name": "LOGNAME", "value": "agent"},
            {"name": "LANG", "value": "C.UTF-8"},
        ],
        "dependsOn": [{"containerName": "runtime", "condition": "SUCCESS"}],
        "mountPoints": [
            {"sourceVolume": "runtime", "containerPath": "/opt/sandboxd", "readOnly": True},
            {"sourceVolume": "home", "containerPath": "/home/agent", "readOnly": False},
        ],
    }
    registered(
        answers,
        volumes=[{"name": "runtime"}, {"name": "home"}],
        containerDefinitions=[init, sandbox],
    )
    family = definitions.of_image(PYTHON)
    described(answers, known=True)
    assert definitions.of_image(PYTHON) == family
    answers.assert_no_pending_responses()


@pytest.mark.req("NODQ-63")
def test_with_gpus_a_sandboxs_container_has_them_on_a_machine_of_ec2(ecs: tuple[Any, Any]) -> None:
    definitions, answers = ecs
    needs = {"resourceRequirements": [{"type": "GPU", "value": "1"}]}
    own = {**BASE["containerDefinitions"][0], **needs}
    families = {definitions.of_image(None)}
    for image in (None, f"{OWN}@{DIGEST}"):
        described(answers)
        shown = own if image is None else {**own, "image": image}
        registered(answers, requiresCompatibilities=["EC2"], containerDefinitions=[shown])
        families.add(definitions.of_image(image, 1))
    described(answers, known=True)
    families.add(definitions.of_image(f"{OWN}@{DIGEST}"))
    described(answers, known=True)
    families.add(definitions.of_image(f"{OWN}@{DIGEST}", 2))
    assert len(families) == 5
    answers.assert_no_pending_responses()


def test_of_a_foreign_image_the_sandbox_alone_has_the_gpus(ecs: tuple[Any, Any]) -> None:
    definitions, answers = ecs
    described(answers)
    answers.add_response("register_task_definition", {"taskDefinition": {}})
    asked: list[dict[str, Any]] = []
    definitions._client.meta.events.register(
        "provide-client-params.ecs.RegisterTaskDefinition", lambda params, **_: asked.append(params)
    )
    definitions.of_image(PYTHON, 4)
    needs = {each["name"]: each.get("resourceRequirements") for each in asked[0]["containerDefinitions"]}
    assert needs == {"runtime": None, "sandbox": [{"type": "GPU", "value": "4"}]}


def test_images_have_families_of_their_own(ecs: tuple[Any, Any]) -> None:
    definitions, answers = ecs
    families: set[str] = set()
    for letter in "ab":
        described(answers, known=True)
        families.add(definitions.of_image(f"{OWN}@sha256:{letter * 64}"))
    assert len(families) == 2


def test_without_the_runtimes_image_only_the_own_one_is_run(stub: Callable[[str], Any]) -> None:
    client, answers = stub("ecs")
    described(answers)
    with pytest.raises(TerminalError, match="no image of the runtime"):
        TaskDefinitions(client, "nodus-sandbox", "sandbox", None).of_image(PYTHON)


@pytest.mark.parametrize(
    ("code", "expected"), [("ThrottlingException", RetryableError), ("AccessDeniedException", TerminalError)]
)
def test_errors_say_whether_to_try_again(ecs: tuple[Any, Any], code: str, expected: type[Exception]) -> None:
    definitions, answers = ecs
    answers.add_client_error("describe_task_definition", code)
    with pytest.raises(expected, match="registering the task definition"):
        definitions.of_image(PYTHON)


@pytest.mark.req("NOD-448")
@pytest.mark.parametrize(("version", "by"), [("latest", "imageTag"), (DIGEST, "imageDigest")])
def test_the_accounts_registry_tells_a_digest(stub: Callable[[str], Any], version: str, by: str) -> None:
    client, answers = stub("ecr")
    asked = {"repositoryName": "nodus/agent-tools", "imageIds": [{by: version}]}
    answers.add_response("describe_images", {"imageDetails": [{"imageDigest": DIGEST}]}, asked)
    assert EcrRegistry(client).digest("nodus/agent-tools", version, HOST) == DIGEST


@pytest.mark.parametrize("code", ["ImageNotFoundException", "RepositoryNotFoundException"])
def test_an_image_that_was_not_built_says_so(stub: Callable[[str], Any], code: str) -> None:
    client, answers = stub("ecr")
    answers.add_client_error("describe_images", code)
    with pytest.raises(TerminalError, match="the operator has to build it"):
        EcrRegistry(client).digest("nodus/agent-tools", "latest", HOST)
