"""Machines with GPUs for sandboxes: started when one is asked for, ended when none is left (docs/decisions/0030)."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import Fn, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge, acknowledge_wildcards
from infra.constructs.sandbox_network import SandboxNetwork
from infra.names import Names
from infra.settings import Settings

AMI = "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id"
"""Where AWS names its image with the ECS agent and NVIDIA's drivers; read at each deployment."""

DISK_GIB = 200
"""Images with CUDA have many GiB, and what sandboxes write is on it, too."""

# Of the agent. Tasks do not reach the machine's own role: in their network mode the agent blocks the way, and beside
# that an answer of the metadata service travels one hop only, which ends before any container.
AGENT = {
    "ECS_ENABLE_GPU_SUPPORT": "true",
    "ECS_AWSVPC_BLOCK_IMDS": "true",
    "ECS_DISABLE_PRIVILEGED": "true",
    "ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE": "true",
}


class GpuMachines(Construct):
    """A group of instances of one type, none while no task wants one, and the capacity provider that moves it.

    Args:
        network: where they stand; it has private subnets with a way out.
        cluster: the cluster's name, which each machine joins by itself.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        network: SandboxNetwork,
        cluster: str,
        settings: Settings,
        names: Names,
    ) -> None:
        super().__init__(scope, construct_id)
        self._network, self._cluster, self._settings = network, cluster, settings
        self.name = names.of("gpu")
        self.role = self._role()
        self.group = self._group(self._template())
        self.provider = ecs.CfnCapacityProvider(
            self,
            "Provider",
            name=self.name,
            auto_scaling_group_provider=ecs.CfnCapacityProvider.AutoScalingGroupProviderProperty(
                auto_scaling_group_arn=self.group.ref,
                managed_scaling=ecs.CfnCapacityProvider.ManagedScalingProperty(
                    status="ENABLED",
                    target_capacity=100,
                    minimum_scaling_step_size=1,
                    maximum_scaling_step_size=1,
                ),
                # A machine with a sandbox on it is not ended when the group shrinks.
                managed_termination_protection="ENABLED",
            ),
        )

    def _role(self) -> iam.Role:
        """Of the machines: to be members of this cluster. Images are pulled and logs are written by the execution role."""
        stack = Stack.of(self)
        cluster = stack.format_arn(service="ecs", resource="cluster", resource_name=self._cluster)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        instances = stack.format_arn(
            service="ecs", resource="container-instance", resource_name=f"{self._cluster}/*"
        )
        everything = ["*"]
        for actions, on in (
            (("ecs:RegisterContainerInstance", "ecs:DeregisterContainerInstance"), [cluster]),
            (
                (
                    "ecs:SubmitAttachmentStateChanges",
                    "ecs:SubmitContainerStateChange",
                    "ecs:SubmitTaskStateChange",
                ),
                [cluster],
            ),
            (("ecs:Poll", "ecs:StartTelemetrySession", "ecs:UpdateContainerInstancesState"), [instances]),
            (("ecs:DiscoverPollEndpoint",), everything),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=on))
        acknowledge_wildcards(role, everything, "ecs:DiscoverPollEndpoint knows no resources.")
        acknowledge_wildcards(
            role, [instances], "A machine's id is given when it joins; these are the machines of one cluster."
        )
        return role

    def _template(self) -> ec2.CfnLaunchTemplate:
        profile = iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name])
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=self._network.vpc,
            description="Machines of sandboxes with GPUs: nothing in, https out",
            allow_all_outbound=False,
        )
        group.add_egress_rule(
            ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "ECS, ECR, and the registries of images"
        )
        told = {"ECS_CLUSTER": self._cluster, **AGENT}
        lines = [
            "#!/bin/bash",
            *(f"echo {name}={value} >> /etc/ecs/ecs.config" for name, value in told.items()),
        ]
        template = ec2.CfnLaunchTemplate
        return template(
            self,
            "Template",
            launch_template_data=template.LaunchTemplateDataProperty(
                image_id=ssm.StringParameter.value_for_typed_string_parameter_v2(
                    self, AMI, ssm.ParameterValueType.AWS_EC2_IMAGE_ID
                ),
                instance_type=self._settings.gpu,
                iam_instance_profile=template.IamInstanceProfileProperty(arn=profile.attr_arn),
                security_group_ids=[group.security_group_id],
                metadata_options=template.MetadataOptionsProperty(
                    http_endpoint="enabled",
                    http_tokens="required",
                    http_put_response_hop_limit=1,
                    instance_metadata_tags="disabled",
                ),
                block_device_mappings=[
                    template.BlockDeviceMappingProperty(
                        device_name="/dev/xvda",
                        ebs=template.EbsProperty(
                            volume_size=DISK_GIB,
                            volume_type="gp3",
                            encrypted=True,
                            delete_on_termination=True,
                        ),
                    )
                ],
                user_data=Fn.base64("\n".join(lines) + "\n"),
            ),
        )

    def _group(self, template: ec2.CfnLaunchTemplate) -> autoscaling.CfnAutoScalingGroup:
        group = autoscaling.CfnAutoScalingGroup
        made = group(
            self,
            "Group",
            min_size="0",
            max_size=str(self._settings.gpu_max),
            vpc_zone_identifier=self._network.private_subnet_ids,
            launch_template=group.LaunchTemplateSpecificationProperty(
                launch_template_id=template.ref, version=template.attr_latest_version_number
            ),
            new_instances_protected_from_scale_in=True,
            tags=[
                # What ECS itself would put on a group that it manages; without it CloudFormation would take it off.
                group.TagPropertyProperty(key="AmazonECSManaged", value="true", propagate_at_launch=True),
                group.TagPropertyProperty(key="Name", value=self.name, propagate_at_launch=True),
            ],
        )
        acknowledge(
            made,
            {
                "AwsSolutions-AS3": "ECS moves the group with each sandbox that comes and goes; the journal has these, and "
                "nobody would read a message of each."
            },
        )
        return made
