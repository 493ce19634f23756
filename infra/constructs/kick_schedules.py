"""Where one-off kicks at deadlines are kept until they are made."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.names import Names

_KINDS_OF_LINES = ("run", "sandbox")
"""How the names of lines begin that have a deadline, and so of their schedules."""


class KickSchedules(Construct):
    """A group of EventBridge schedules, which go with it, and the role by which they invoke one function.

    A schedule is a kick: it may be lost or late, and the sweeper makes up for it.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, target: lambda_.IFunction, names: Names
    ) -> None:
        super().__init__(scope, construct_id)
        self.target = target
        self.name = names.of("kicks")
        self._group = scheduler.CfnScheduleGroup(self, "Group", name=self.name)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            ),
        )
        self.role.add_to_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[target.function_arn])
        )

    @property
    def environment(self) -> dict[str, str]:
        """What a function that makes schedules is told."""
        return {
            "NODUS_SCHEDULE_GROUP": self._group.ref,
            "NODUS_SCHEDULE_TARGET": self.target.function_arn,
            "NODUS_SCHEDULE_ROLE": self.role.role_arn,
        }

    @property
    def schedule_arns(self) -> list[str]:
        """Every schedule of the group; and the lines' names in the default group, see `permissions.schedule_kicks`."""
        return [self._arn(f"{self.name}/*"), *(self._arn(f"default/{kind}-*") for kind in _KINDS_OF_LINES)]

    def _arn(self, name: str) -> str:
        return Stack.of(self).format_arn(
            service="scheduler",
            resource="schedule",
            resource_name=name,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
