"""Builds projects' EnvironmentImages: who runs their setups, and what these may reach (docs/decisions/0029)."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import Stack
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge_wildcards
from infra.constructs.build_project import build_project
from infra.constructs.log_group import log_group
from infra.names import Names
from infra.settings import Settings

MINUTES = 30
"""Of one build, and of its wait for a turn."""

AT_ONCE = 10
"""Builds that run at the same time, of all organizations."""

# What AWS asks for to push. BatchGetImage reads a manifest, whose digest or tag one has to know; to read a layer takes
# another right.
PUSH = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)
PULL = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")


class BuildNames:
    """What the builder's parts are called: the stack that has them and the one that uses them agree by these names."""

    def __init__(self, scope: Construct, names: Names) -> None:
        self._stack = Stack.of(scope)
        self.project = names.of("environment-images")
        self.folder = names.path("images")

    @property
    def project_arn(self) -> str:
        return self._stack.format_arn(service="codebuild", resource="project", resource_name=self.project)

    @property
    def log_streams_arn(self) -> str:
        """Every stream of the builds' log."""
        stack = self._stack
        return f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{self.log_group}:log-stream:*"

    @property
    def repositories(self) -> str:
        """Host and path below which projects' repositories stand."""
        stack = self._stack
        return f"{stack.account}.dkr.ecr.{stack.region}.{stack.url_suffix}/{self.folder}"

    @property
    def repositories_arn(self) -> str:
        """All of them, `FOLDER/ORG/PROJECT/UID`."""
        return self._stack.format_arn(
            service="ecr", resource="repository", resource_name=f"{self.folder}/*/*/*"
        )

    @property
    def log_group(self) -> str:
        return f"/aws/codebuild/{self.project}"


class EnvironmentBuilds(Construct):
    """A CodeBuild project whose builds say themselves what they run, and its role.

    A build runs a stranger's shell as root in a container, whose walls are Docker's and no more: what the role may do
    is what the shell may do at worst. It adds images to projects' repositories, none of which any tag or digest in use
    changes with, reads the catalogue's image to start from it, and writes this project's log. It reads no layer of a
    project's image, no secret and no object, passes no role and starts nothing.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(scope, construct_id)
        self.names = BuildNames(self, names)
        self.logs = log_group(self, "Logs", self.names.log_group, settings)
        self.role = self._role(settings)
        self.project = self._project(settings)

    def _role(self, settings: Settings) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("codebuild.amazonaws.com"))
        self.logs.grant_write(role)
        everything = ["*"]
        for actions, on in (
            (("ecr:GetAuthorizationToken",), everything),
            (PUSH, [self.names.repositories_arn]),
            *((PULL, [arn]) for arn in self._catalogue(settings)),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=on))
        acknowledge_wildcards(role, everything, "ecr:GetAuthorizationToken knows no resources.")
        acknowledge_wildcards(
            role,
            [self.names.repositories_arn],
            "A repository is made for each EnvironmentImage; these are those of projects and no others.",
        )
        return role

    def _catalogue(self, settings: Settings) -> list[str]:
        """The repository of the deployment's own image, where it is in this account."""
        repository = settings.sandbox_image.partition(":")[0]
        if "." in repository.partition("/")[0]:
            return []
        return [Stack.of(self).format_arn(service="ecr", resource="repository", resource_name=repository)]

    def _project(self, settings: Settings) -> codebuild.CfnProject:
        return build_project(
            self,
            name=self.names.project,
            description="Builds projects' EnvironmentImages",
            role=self.role,
            # Each build brings its own words; one that is started by hand says that it needs some.
            source=codebuild.CfnProject.SourceProperty(
                type="NO_SOURCE",
                build_spec='{"version": "0.2", "phases": {"build": {"commands": ["echo started without a buildspec; false"]}}}',
            ),
            log=self.logs,
            settings=settings,
            minutes=MINUTES,
            why_privileged="Docker builds need it. Each build has a machine of its own, which ends with it, and a "
            "role that can add images to projects' repositories and nothing else.",
            queued_minutes=MINUTES,
            at_once=AT_ONCE,
        )
