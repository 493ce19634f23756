"""The cluster, and the task that holds a sandbox."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

import json

from aws_cdk import Stack
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge, acknowledge_wildcards
from infra.constructs.environment_builds import PULL, BuildNames
from infra.constructs.gpu_machines import GpuMachines
from infra.constructs.log_group import log_group
from infra.constructs.sandbox_network import SandboxNetwork
from infra.names import CATALOGUE_IMAGE, SANDBOX_CONTAINER, Names
from infra.settings import Settings

# One virtual processor, in ECS units, and memory in MiB.
CPU = "1024"
MEMORY = "2048"
# Seconds between the polite signal and the end; Fargate allows no more.
STOP_TIMEOUT_S = 120
# Who runs commands: the user `agent` of the image. The daemon stays root, so that none can reach it.
COMMAND_USER = "1000"
# Nobody but the task's own processes is on its machine. What keeps the egress policy is not for this network to say:
# the daemon has to put its guard on commands, and to prove it.
ISOLATION = {"isolated": True, "guard": None, "missing": []}
TOLD = {
    "NODUS_COMMAND_UID": COMMAND_USER,
    "NODUS_COMMAND_GID": COMMAND_USER,
    "NODUS_ISOLATION": json.dumps(ISOLATION),
}
# Docker's default capabilities that neither the daemon nor a command has a use for.
DROPPED = ["AUDIT_WRITE", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP"]


class SandboxCluster(Construct):
    """An ECS cluster on Fargate, and where it is asked for on machines with GPUs, and the task definition `sandbox`.

    The task has no role: nothing in a sandbox holds an AWS credential. The execution role, which ECS itself
    uses before a command can run, may write the task's log and, for an image in this account, pull it.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(scope, construct_id)
        self.network = SandboxNetwork(self, "Network", names=names, gpus=bool(settings.gpu))
        self.capacity_provider = "FARGATE_SPOT" if settings.spot else "FARGATE"
        self.name = names.of("sandboxes")
        self.gpus = self._gpus(settings, names)
        self.cluster = ecs.CfnCluster(
            self,
            "Cluster",
            cluster_name=self.name,
            capacity_providers=["FARGATE", "FARGATE_SPOT", *([self.gpus.provider.ref] if self.gpus else [])],
            cluster_settings=[
                ecs.CfnCluster.ClusterSettingsProperty(name="containerInsights", value="enabled")
            ],
        )
        self.logs = log_group(self, "Logs", f"/aws/ecs/{self.name}", settings)
        self.execution_role = iam.Role(
            self, "ExecutionRole", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com")
        )
        self.logs.grant_write(self.execution_role)
        self.family = names.of("sandbox")
        self.has_images = settings.sandbox_images == "registry"
        self.repository_arns: list[str] = []
        self.image = self._image("Image", settings.sandbox_image)
        self.runtime_image = self._image("RuntimeImage", settings.runtime_image) if self.has_images else ""
        if settings.builds_environments:
            self._pull_built(names)
        self.task_definition = self._task_definition(self.image, settings)
        acknowledge(
            self.task_definition,
            {
                "AwsSolutions-ECS2": "The variables name the user of commands, which is no secret and part of what "
                "the image promises; whatever is secret comes with each task and is wiped by the daemon."
            },
        )

    @property
    def gpu_places(self) -> dict[str, str]:
        """Where tasks with GPUs are started, for the function that does; empty where there are none."""
        provider, subnets = self.gpus.name if self.gpus else "", self.network.private_subnet_ids
        return {"NODUS_GPU_PROVIDER": provider, "NODUS_GPU_SUBNETS": ",".join(subnets)}

    def _gpus(self, settings: Settings, names: Names) -> GpuMachines | None:
        if not settings.gpu:
            return None
        return GpuMachines(
            self, "Gpus", network=self.network, cluster=self.name, settings=settings, names=names
        )

    @property
    def task_definition_arns(self) -> list[str]:
        """All revisions of the sandbox's task definition, since a run may still name the one before; and of those that
        are registered for other images, below its name."""
        families = [self.family, *([f"{self.family}-*"] if self.has_images else [])]
        return [self._arn("task-definition", f"{family}:*") for family in families]

    @property
    def images(self) -> dict[str, str]:
        """The catalogue of images: name to reference, or the word that there are none (docs/protocols.md §5)."""
        return {CATALOGUE_IMAGE: self.image if self.has_images else "machine"}

    @property
    def task_arns(self) -> str:
        """All tasks of this cluster and of no other."""
        return self._arn("task", f"{self.name}/*")

    def _arn(self, kind: str, name: str) -> str:
        return Stack.of(self).format_arn(service="ecs", resource=kind, resource_name=name)

    def _image(self, construct_id: str, reference: str) -> str:
        repository, _, tag = reference.partition(":")
        if "." in repository.partition("/")[0]:
            return reference
        ours = ecr.Repository.from_repository_name(self, construct_id, repository)
        ours.grant_pull(self.execution_role)
        self.repository_arns.append(ours.repository_arn)
        acknowledge(
            self.execution_role,
            {"AwsSolutions-IAM5[Resource::*]": "ecr:GetAuthorizationToken knows no resources."},
        )
        return ours.repository_uri_for_tag(tag or "latest")

    def _pull_built(self, names: Names) -> None:
        """The images that are built for projects: ECS pulls them for their sandboxes."""
        repositories = BuildNames(self, names).repositories_arn
        login = iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"])
        self.execution_role.add_to_policy(login)
        self.execution_role.add_to_policy(iam.PolicyStatement(actions=list(PULL), resources=[repositories]))
        acknowledge_wildcards(self.execution_role, ["*"], "ecr:GetAuthorizationToken knows no resources.")
        acknowledge_wildcards(
            self.execution_role,
            [repositories],
            "A repository is made for each EnvironmentImage; a task pulls the one that it was admitted with.",
        )

    def _task_definition(self, image: str, settings: Settings) -> ecs.CfnTaskDefinition:
        definition = ecs.CfnTaskDefinition
        return definition(
            self,
            "Sandbox",
            family=self.family,
            requires_compatibilities=["FARGATE"],
            network_mode="awsvpc",
            cpu=CPU,
            memory=MEMORY,
            execution_role_arn=self.execution_role.role_arn,
            runtime_platform=definition.RuntimePlatformProperty(
                cpu_architecture={"x86_64": "X86_64", "arm64": "ARM64"}[settings.architecture],
                operating_system_family="LINUX",
            ),
            container_definitions=[self._container(image)],
        )

    def _container(self, image: str) -> ecs.CfnTaskDefinition.ContainerDefinitionProperty:
        definition = ecs.CfnTaskDefinition
        return definition.ContainerDefinitionProperty(
            name=SANDBOX_CONTAINER,
            image=image,
            essential=True,
            # The daemon makes the agent's working folder wherever the agent wants it (NOD-157), which a read-only
            # root would forbid. What is written there is this task's alone and goes with it; file permissions
            # keep commands, which are no root, from the system's folders and from the daemon's.
            readonly_root_filesystem=False,
            stop_timeout=STOP_TIMEOUT_S,
            environment=[
                definition.KeyValuePairProperty(name=name, value=value) for name, value in TOLD.items()
            ],
            # The daemon is pid 1. Nothing is added: no part of it needs more than the default capabilities, its
            # egress guard none at all (docs/decisions/0008).
            linux_parameters=definition.LinuxParametersProperty(
                init_process_enabled=False,
                capabilities=definition.KernelCapabilitiesProperty(drop=DROPPED),
            ),
            log_configuration=definition.LogConfigurationProperty(
                log_driver="awslogs",
                options={
                    "awslogs-group": self.logs.log_group_name,
                    "awslogs-region": Stack.of(self).region,
                    "awslogs-stream-prefix": SANDBOX_CONTAINER,
                    "mode": "non-blocking",
                },
            ),
        )
