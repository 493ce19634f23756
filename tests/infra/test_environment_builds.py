"""Who builds projects' images, and what a stranger's setup could reach at worst (NODQ-104, NODQ-82).

The templates are looked at; nothing of this has run on AWS.
"""

import json
from typing import Any

import pytest

from tests.infra.synthesis import Assembly, as_list
from tests.infra.test_permissions import (
    ALLOWED,
    TELEMETRY,
    WITHOUT_RESOURCE,
    role_of,
    statements,
    with_action,
)

FOLDER = "repository/nodus/images/*/*/*"
BUILDS = {"codebuild:StartBuild", "codebuild:BatchGetBuilds", "codebuild:StopBuild"}
REPOSITORIES = {"ecr:CreateRepository", "ecr:DeleteRepository", "ecr:DescribeImages"}


def builder(asked: Assembly) -> dict[str, Any]:
    (found,) = (
        each["Properties"]
        for each in asked.images.of_type("AWS::CodeBuild::Project").values()
        if each["Properties"]["Name"] == "nodus-environment-images"
    )
    return found


def rights(asked: Assembly) -> dict[str, list[str]]:
    """Action → the resources it may be done to, as texts, of the role of builds."""
    found: dict[str, list[str]] = {}
    for statement in asked.images.statements(builder(asked)["ServiceRole"]["Fn::GetAtt"][0]):
        assert statement["Effect"] == "Allow"
        for action in as_list(statement["Action"]):
            found.setdefault(action, []).extend(map(str, as_list(statement["Resource"])))
    return found


@pytest.mark.req("NODQ-104")
def test_a_setup_can_add_images_to_projects_repositories_at_worst_and_read_the_catalogues(
    asked: Assembly,
) -> None:
    found = rights(asked)
    assert found.pop("ecr:GetAuthorizationToken") == ["*"]
    assert {action.partition(":")[0] for action in found} == {"ecr", "logs"}
    assert not [action for action, on in found.items() if "*" in on]
    for action in (
        "ecr:PutImage",
        "ecr:InitiateLayerUpload",
        "ecr:UploadLayerPart",
        "ecr:CompleteLayerUpload",
    ):
        (on,) = found[action]
        assert FOLDER in on
    (layers_of,) = found["ecr:GetDownloadUrlForLayer"]
    assert "repository/nodus/agent-tools" in layers_of
    assert FOLDER not in layers_of
    assert {action for action in found if action.startswith("ecr:")} == {
        *("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"),
        *("ecr:PutImage", "ecr:InitiateLayerUpload", "ecr:UploadLayerPart", "ecr:CompleteLayerUpload"),
    }


def test_a_build_has_an_end_a_turn_and_a_log_and_no_words_of_its_own(asked: Assembly) -> None:
    project = builder(asked)
    assert (project["TimeoutInMinutes"], project["QueuedTimeoutInMinutes"]) == (30, 30)
    assert project["ConcurrentBuildLimit"] == 10
    assert project["Source"]["Type"] == "NO_SOURCE"
    assert json.loads(project["Source"]["BuildSpec"])["phases"]["build"]["commands"] == [
        "echo started without a buildspec; false"
    ]
    assert "EnvironmentVariables" not in project["Environment"]
    assert "VpcConfig" not in project


@pytest.mark.req("NODQ-104")
def test_the_sweeper_alone_starts_looks_at_and_stops_builds_and_passes_no_role(asked: Assembly) -> None:
    for name in ALLOWED:
        more = BUILDS | REPOSITORIES | {"logs:GetLogEvents"} if name == "sweeper" else set()
        found = {action for each in statements(asked, name) for action in as_list(each["Action"])}
        assert found == ALLOWED[name] | TELEMETRY | more
        everywhere = [each for each in statements(asked, name) if "*" in as_list(each["Resource"])]
        assert {action for each in everywhere for action in as_list(each["Action"])} <= WITHOUT_RESOURCE
    (starting,) = with_action(asked, "sweeper", "codebuild:StartBuild")
    assert str(starting["Resource"]).count("project/nodus-environment-images") == 1
    (making,) = with_action(asked, "sweeper", "ecr:DeleteRepository")
    assert FOLDER in str(making["Resource"])
    (reading,) = with_action(asked, "sweeper", "logs:GetLogEvents")
    assert "log-group:/aws/codebuild/nodus-environment-images:log-stream:*" in str(reading["Resource"])


def told(assembly: Assembly, name: str) -> dict[str, Any]:
    variables = assembly.service.function(name)["Properties"]["Environment"]["Variables"]
    return {name: value for name, value in variables.items() if name.startswith("NODUS_IMAGE_")}


def test_api_and_sweeper_know_where_images_go_and_that_nobody_builds_where_it_was_not_asked_for(
    asked: Assembly, assembly: Assembly, other: Assembly
) -> None:
    assert ".dkr.ecr." in str(told(asked, "api")["NODUS_IMAGE_REPOSITORIES"])
    assert (
        told(asked, "api")["NODUS_IMAGE_REPOSITORIES"] == told(asked, "sweeper")["NODUS_IMAGE_REPOSITORIES"]
    )
    assert told(asked, "sweeper")["NODUS_IMAGE_PROJECT"] == "nodus-environment-images"
    assert told(asked, "sweeper")["NODUS_IMAGE_PLATFORM"] in ("linux/amd64", "linux/arm64")
    # `other` asks for the sandbox image's build, and its sandboxes are no containers.
    for made in (assembly, other):
        assert set(told(made, "sweeper").values()) == set(told(made, "api").values()) == {""}
        assert not with_action(made, "sweeper", "codebuild:StartBuild")
    assert len(other.images.of_type("AWS::CodeBuild::Project")) == 1


@pytest.mark.req("NOD-449")
def test_tasks_pull_what_was_built_and_the_end_of_a_build_wakes_the_sweeper(asked: Assembly) -> None:
    task = asked.service.one("AWS::ECS::TaskDefinition")
    pulling = [
        str(each["Resource"])
        for each in asked.service.statements(task["ExecutionRoleArn"]["Fn::GetAtt"][0])
        if "ecr:GetDownloadUrlForLayer" in as_list(each["Action"])
    ]
    assert [FOLDER in each for each in pulling].count(True) == 1
    (rule,) = (
        each["Properties"]
        for each in asked.service.of_type("AWS::Events::Rule").values()
        if "aws.codebuild" in str(each["Properties"].get("EventPattern"))
    )
    assert rule["EventPattern"]["detail"]["project-name"] == ["nodus-environment-images"]
    assert "IN_PROGRESS" not in rule["EventPattern"]["detail"]["build-status"]
    (target,) = rule["Targets"]
    assert "Sweeper" in str(target["Arn"])


def test_another_role_than_the_builds_can_be_given_to_no_build(asked: Assembly) -> None:
    for name in ALLOWED:
        for statement in with_action(asked, name, "iam:PassRole"):
            assert "codebuild" not in str(statement)
    assert role_of(asked.service.function("sweeper")) != role_of(asked.service.function("api"))
