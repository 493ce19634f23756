"""The network that sandboxes stand in."""

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.names import Names

EGRESS_PORTS = {443: "https, and the link", 80: "http, for package mirrors"}

PUBLIC = ("Public", ec2.SubnetType.PUBLIC)
PRIVATE = ("Private", ec2.SubnetType.PRIVATE_WITH_EGRESS)


class SandboxNetwork(Construct):
    """A VPC of public subnets in two zones, and a security group that lets nothing in.

    A sandbox on Fargate dials out by an address of its own and is never dialled, so it needs no NAT gateway, no endpoint
    and no open port. On a machine of EC2 ECS gives a task no public address: where there are GPUs, private subnets are
    added for these, and one NAT gateway, by which they reach the link (`gpus`). The
    VPC holds nothing but sandboxes and is joined to no other network: private ranges lead nowhere, and one
    sandbox cannot reach another, since none admits ingress.

    This network enforces no egress policy: the daemon needs the link, whose addresses are API Gateway's and change,
    so that whatever the security group gives the daemon a command has too. Nor does a network ACL see the addresses
    that matter (link-local metadata, the VPC's resolver). The guard that the daemon puts on commands does
    (docs/decisions/0008); where it does not hold, the link refuses the sandbox (docs/decisions/0007).
    """

    def __init__(self, scope: Construct, construct_id: str, *, names: Names, gpus: bool = False) -> None:
        super().__init__(scope, construct_id)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            vpc_name=names.of("sandboxes"),
            ip_addresses=ec2.IpAddresses.cidr("10.64.0.0/16"),
            max_azs=2,
            nat_gateways=1 if gpus else 0,
            subnet_configuration=[
                ec2.SubnetConfiguration(name=name, subnet_type=kind, cidr_mask=20)
                for name, kind in (PUBLIC, *((PRIVATE,) if gpus else ()))
            ],
        )
        acknowledge(
            self.vpc,
            {
                "AwsSolutions-VPC7": "Flow logs would record every connection of every command, without the run "
                "that made it; sandboxes hold no data but their run's, and their commands are in the journal."
            },
        )
        self.security_group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=self.vpc,
            description="Sandboxes: nothing in, web out",
            allow_all_outbound=False,
        )
        for port, why in EGRESS_PORTS.items():
            self.security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port), why)

    @property
    def subnet_ids(self) -> list[str]:
        """The subnets a task may be started in."""
        return [subnet.subnet_id for subnet in self.vpc.public_subnets]

    @property
    def private_subnet_ids(self) -> list[str]:
        """Those with the NAT gateway as their way out; none without GPUs."""
        return [subnet.subnet_id for subnet in self.vpc.private_subnets]
