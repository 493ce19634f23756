"""CodeBuild projects that build images with Docker and push them."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.settings import Settings

BUILDERS = {
    "x86_64": ("LINUX_CONTAINER", "aws/codebuild/amazonlinux-x86_64-standard:5.0", "linux/amd64"),
    "arm64": ("ARM_CONTAINER", "aws/codebuild/amazonlinux-aarch64-standard:3.0", "linux/arm64"),
}
"""Processor to the kind of machine that builds for it, the image that it runs, and what Docker calls the platform."""


def build_project(
    scope: Construct,
    *,
    name: str,
    description: str,
    role: iam.Role,
    source: codebuild.CfnProject.SourceProperty,
    log: logs.LogGroup,
    settings: Settings,
    minutes: int,
    why_privileged: str,
    queued_minutes: int | None = None,
    at_once: int | None = None,
) -> codebuild.CfnProject:
    """The project of a construct that builds images.

    Args:
        role: what a build may do.
        log: where it writes.
        settings: for the processor.
        minutes: of one build.
        why_privileged: the answer to the finding that its builds rule over their machine.
        queued_minutes: of a build's wait for a turn; None: as CodeBuild has it.
        at_once: builds that run at the same time; None: as many as the account may.
    """
    kind, image, _ = BUILDERS[settings.architecture]
    definition = codebuild.CfnProject
    project = definition(
        scope,
        "Project",
        name=name,
        description=description,
        service_role=role.role_arn,
        source=source,
        artifacts=definition.ArtifactsProperty(type="NO_ARTIFACTS"),
        environment=definition.EnvironmentProperty(
            type=kind, compute_type="BUILD_GENERAL1_SMALL", image=image, privileged_mode=True
        ),
        logs_config=definition.LogsConfigProperty(
            cloud_watch_logs=definition.CloudWatchLogsConfigProperty(
                status="ENABLED", group_name=log.log_group_name
            )
        ),
        concurrent_build_limit=at_once,
        timeout_in_minutes=minutes,
        queued_timeout_in_minutes=queued_minutes,
    )
    acknowledge(
        project,
        {
            "AwsSolutions-CB3": why_privileged,
            "AwsSolutions-CB4": "The project has no artifacts; images are encrypted by their repositories.",
        },
    )
    return project
