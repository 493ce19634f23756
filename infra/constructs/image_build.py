"""Builds the sandbox image in the account, since no deployment here needs Docker."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

import json
from collections.abc import Mapping
from pathlib import Path

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge_wildcards
from infra.constructs.build_project import BUILDERS, build_project
from infra.constructs.log_group import log_group
from infra.names import Names
from infra.settings import Settings

IMAGES = Path(__file__).resolve().parents[2] / "sandbox_images"
FILE = "agent-tools/Dockerfile"
TARGETS = {"agent-tools": "agent-tools", "runtime": "sandboxd-runtime"}
"""The Dockerfile's targets, and the repositories that they go to."""

# The Dockerfile's bases as AWS mirrors them: Docker Hub limits pulls by address, and CodeBuild shares its addresses.
BASES = {
    "DEBIAN": "public.ecr.aws/docker/library/debian:bookworm-slim",
    "NODE": "public.ecr.aws/docker/library/node:24-bookworm-slim",
}
UNTAGGED_DAYS = 7


class ImageBuild(Construct):
    """Repositories, and a CodeBuild project that builds `sandbox_images/agent-tools` and pushes both images there.

    Deploying uploads the sources and builds nothing: whoever wants the image starts the project.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(scope, construct_id)
        self.repositories = {
            target: self._repository(target, name, settings, names) for target, name in TARGETS.items()
        }
        self.sources = s3_assets.Asset(self, "Sources", path=str(IMAGES), exclude=["**/__pycache__"])
        self.name = names.of("image-build")
        self.logs = log_group(self, "Logs", f"/aws/codebuild/{self.name}", settings)
        self.role = self._role()
        self.project = self._project(settings)

    def _repository(self, target: str, name: str, settings: Settings, names: Names) -> ecr.Repository:
        return ecr.Repository(
            self,
            "Repository" if target == name else f"{target.title()}Repository",
            repository_name=names.path(name),
            image_scan_on_push=True,
            lifecycle_rules=[
                ecr.LifecycleRule(
                    description="images that `latest` has left",
                    tag_status=ecr.TagStatus.UNTAGGED,
                    max_image_age=Duration.days(UNTAGGED_DAYS),
                )
            ],
            removal_policy=RemovalPolicy.RETAIN if settings.protect else RemovalPolicy.DESTROY,
            empty_on_delete=not settings.protect,
        )

    def _role(self) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[self.sources.bucket.arn_for_objects(self.sources.s3_object_key)],
            )
        )
        self.logs.grant_write(role)
        for repository in self.repositories.values():
            repository.grant_pull_push(role)
        acknowledge_wildcards(role, ["*"], "ecr:GetAuthorizationToken knows no resources.")
        return role

    def _project(self, settings: Settings) -> codebuild.CfnProject:
        return build_project(
            self,
            name=self.name,
            description="Builds the sandbox image and pushes it",
            role=self.role,
            source=codebuild.CfnProject.SourceProperty(
                type="S3",
                location=f"{self.sources.s3_bucket_name}/{self.sources.s3_object_key}",
                build_spec=json.dumps(build_spec(settings, self.repositories)),
            ),
            log=self.logs,
            settings=settings,
            minutes=60,
            why_privileged="Docker builds need it; the project builds this repository's own sources only.",
        )


def build_spec(settings: Settings, repositories: Mapping[str, ecr.IRepository]) -> dict[str, object]:
    """What the project runs.

    Args:
        settings: for the processor.
        repositories: target of the Dockerfile to where its image goes.
    """
    platform = BUILDERS[settings.architecture][2]
    bases = " ".join(f"--build-arg {name}={image}" for name, image in BASES.items())
    registry = next(iter(repositories.values())).registry_uri
    login = f"docker login --username AWS --password-stdin {registry}"
    images = {target: f"{each.repository_uri}:latest" for target, each in repositories.items()}
    return {
        "version": "0.2",
        "env": {"variables": {"DOCKER_BUILDKIT": "1"}},
        "phases": {
            # One phase, so that nothing is pushed when something before it failed.
            "build": {
                "commands": [
                    f"aws ecr get-login-password | {login}",
                    *(
                        f"docker build --platform {platform} --file {FILE} --target {target} {bases} --tag {image} ."
                        for target, image in images.items()
                    ),
                    *(f"docker push {image}" for image in images.values()),
                ]
            }
        },
    }
