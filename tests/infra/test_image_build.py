"""The sandbox image's build: there only when it is asked for, and able to do nothing else."""

import json
import re

import pytest

from infra.constructs.image_build import BASES, IMAGES
from tests.infra.synthesis import Assembly, as_list


def build_commands(other: Assembly) -> list[str]:
    written = other.images.one("AWS::CodeBuild::Project")["Source"]["BuildSpec"]
    parts = written["Fn::Join"][1]  # the repository's address is known at deployment only
    spec = json.loads("".join(part if isinstance(part, str) else "X" for part in parts))
    return spec["phases"]["build"]["commands"]


def test_it_is_not_deployed_unasked(assembly: Assembly) -> None:
    assert sorted(path.name for path in assembly.folder.glob("*.template.json")) == [
        "nodus-service.template.json",
        "nodus-state.template.json",
    ]


def test_deploying_it_needs_no_docker(other: Assembly) -> None:
    manifest = other.images.path.with_name(other.images.path.name.replace("template", "assets"))
    assert json.loads(manifest.read_text())["dockerImages"] == {}
    (sources,) = (folder for folder in other.folder.glob("asset.*") if (folder / "agent-tools").is_dir())
    assert (sources / "agent-tools" / "Dockerfile").read_text() == (
        IMAGES / "agent-tools/Dockerfile"
    ).read_text()
    assert (sources / "sandboxd" / "guardprobe.py").is_file()
    assert not list(sources.rglob("__pycache__"))


def test_it_builds_what_the_page_on_operations_says_and_pushes_nothing_that_failed(other: Assembly) -> None:
    login, *builds, push, push_runtime = build_commands(other)
    assert len(builds) == 2
    for build, pushed, target in zip(builds, (push, push_runtime), ("agent-tools", "runtime"), strict=True):
        image = pushed.removeprefix("docker push ")
        assert image.endswith(":latest")
        assert login.endswith(f" | docker login --username AWS --password-stdin {image.partition('/')[0]}")
        assert f"--file agent-tools/Dockerfile --target {target} " in build
        assert f"--tag {image} ." in build
    assert other.images.one("AWS::CodeBuild::Project")["Environment"]["PrivilegedMode"] is True


def test_the_mirrored_bases_are_the_dockerfiles() -> None:
    bases = dict(
        re.findall(r"^ARG (DEBIAN|NODE)=(\S+)$", (IMAGES / "agent-tools/Dockerfile").read_text(), re.M)
    )
    assert {name: image.rpartition("/")[2] for name, image in BASES.items()} == bases


@pytest.mark.req("NOD-453")
def test_its_role_reads_the_sources_and_fills_its_repositories(other: Assembly) -> None:
    ((role, _),) = other.images.of_type("AWS::IAM::Role").items()
    allowed = {
        action: statement["Resource"]
        for statement in other.images.statements(role)
        for action in as_list(statement["Action"])
    }
    assert {action.partition(":")[0] for action in allowed} == {"s3", "logs", "ecr"}
    assert [action for action, resource in allowed.items() if resource == "*"] == [
        "ecr:GetAuthorizationToken"
    ]
    repositories = other.images.of_type("AWS::ECR::Repository")
    filled = [
        resource
        for statement in other.images.statements(role)
        for resource in as_list(statement["Resource"])
        if "ecr:PutImage" in as_list(statement["Action"])
    ]
    assert filled == [{"Fn::GetAtt": [repository, "Arn"]} for repository in repositories]
    assert [each["Properties"]["RepositoryName"] for each in repositories.values()] == [
        "nodus-dev/agent-tools",
        "nodus-dev/sandboxd-runtime",
    ]
