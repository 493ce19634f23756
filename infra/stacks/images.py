"""The stack that builds the sandbox image, and projects' images; only there when it is asked for."""

from aws_cdk import App, CfnOutput, Stack

from infra.constructs.environment_builds import EnvironmentBuilds
from infra.constructs.image_build import TARGETS, ImageBuild
from infra.names import Names
from infra.settings import Settings


class ImagesStack(Stack):
    """The sandbox image's repository, the project that fills it, and the one that builds projects' images."""

    def __init__(self, scope: App, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(scope, construct_id, description="Nodus: images and their builds")
        build = ImageBuild(self, "ImageBuild", settings=settings, names=names)
        for target, name in TARGETS.items():
            prefix = "" if target == name else target.title()
            CfnOutput(self, f"{prefix}ImageRepository", value=build.repositories[target].repository_uri)
        CfnOutput(self, "ImageBuildProject", value=build.name)
        if settings.builds_environments:
            EnvironmentBuilds(self, "EnvironmentBuilds", settings=settings, names=names)
