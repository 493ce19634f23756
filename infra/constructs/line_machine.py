"""The state machine of which each execution advances one line for one active stretch."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.constructs.layers import ROOT
from infra.constructs.log_group import log_group
from infra.names import Names
from infra.settings import Settings

DEFINITION = ROOT / "statemachines" / "line.asl.json"


class LineMachine(Construct):
    """`statemachines/line.asl.json` as a Standard state machine that may invoke `line` and nothing else.

    Executions are logged without their data: states carry ids only, and the log proves it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        line: lambda_.IFunction,
        settings: Settings,
        names: Names,
    ) -> None:
        super().__init__(scope, construct_id)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[line.function_arn])
        )
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=names.of("line"),
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_file(str(DEFINITION)),
            definition_substitutions={"LineFunctionArn": line.function_arn},
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(
                destination=log_group(self, "Logs", f"/aws/vendedlogs/states/{names.of('line')}", settings),
                level=sfn.LogLevel.ALL,
                include_execution_data=False,
            ),
        )
        acknowledge(
            role,
            {
                "AwsSolutions-IAM5[Resource::*]": "Log delivery and X-Ray know no resources; the machine's only "
                "other right is to invoke the line function."
            },
        )
