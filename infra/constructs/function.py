"""One Lambda function with its own role, its own log group and only its own code."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false, reportReturnType=false

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import Duration, IgnoreMode
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge, acknowledge_wildcards
from infra.constructs.layers import LEFTOVERS, ROOT, Layers, architecture, runtime
from infra.constructs.log_group import log_group
from infra.names import METRICS_NAMESPACE, Names
from infra.settings import Settings


@dataclass(frozen=True)
class Size:
    """How much of Lambda a function may use.

    Attributes:
        timeout_s: seconds until an invocation is ended.
        memory_mb: memory in MB; the share of a processor grows with it.
        reserved: reserved concurrency in concurrent invocations, or None to share the account's.
        warm: provisioned concurrency in instances; 0 for none.
    """

    timeout_s: int
    memory_mb: int
    reserved: int | None = None
    warm: int = 0


class NodusFunction(Construct):
    """A function of `functions/NAME`, started as `functions.NAME.handler.handler`.

    The asset's root is the checkout's, holding only this function's folder: `from functions.NAME.env import …`
    then means the same in Lambda and in a test.

    Args:
        name: the folder below `functions/`.
        size: time, memory and concurrency.
        environment: its variables, beside those every function gets.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        size: Size,
        environment: Mapping[str, str],
        settings: Settings,
        names: Names,
        layers: Layers,
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = name
        self.logs = log_group(self, "Logs", f"/aws/lambda/{names.of(name)}", settings)
        self.role = self._role()
        self.function = self._function(
            function_name=names.of(name),
            runtime=runtime(settings),
            architecture=architecture(settings),
            layers=[layers.core, layers.deps],
            timeout=Duration.seconds(size.timeout_s),
            memory_size=size.memory_mb,
            reserved_concurrent_executions=size.reserved,
            environment={**_common(name, settings), **environment},
            application_log_level_v2=lambda_.ApplicationLogLevel[
                settings.log_level.replace("WARNING", "WARN")
            ],
        )
        self.target = self._target(size.warm)

    def _function(self, **chosen: Any) -> lambda_.Function:
        """The function with what was chosen for it, and what holds for every one."""
        function = lambda_.Function(
            self,
            "Function",
            description=f"Nodus: {self.name}",
            handler=f"functions.{self.name}.handler.handler",
            code=_code(self.name),
            role=self.role,
            log_group=self.logs,
            logging_format=lambda_.LoggingFormat.JSON,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            tracing=lambda_.Tracing.ACTIVE,
            **chosen,
        )
        acknowledge(
            function,
            {
                "AwsSolutions-L1": "The runtime is a setting and by default the running interpreter's, since the "
                "local cloud runs the same code and layer with it; every version the setting allows is supported."
            },
        )
        return function

    def _role(self) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.logs.grant_write(role)
        acknowledge_wildcards(
            role, ["*"], "X-Ray's PutTraceSegments and PutTelemetryRecords know no resources."
        )
        return role

    def _target(self, warm: int) -> lambda_.IFunction:
        """What a caller's integration invokes: an alias that is kept warm, or the function itself."""
        if not warm:
            return self.function
        return lambda_.Alias(
            self,
            "Warm",
            alias_name="warm",
            version=self.function.current_version,
            provisioned_concurrent_executions=warm,
        )

    def allow(
        self,
        *actions: str,
        on: list[str],
        when: Mapping[str, Mapping[str, str]] | None = None,
        because: str | None = None,
    ) -> None:
        """Adds one statement to the function's role.

        Args:
            actions: what it may do, for example `dynamodb:GetItem`.
            on: the ARNs it may do it to.
            when: IAM conditions, as operator → key → value.
            because: why an ARN is a pattern, where one is.
        """
        self.role.add_to_policy(
            iam.PolicyStatement(actions=list(actions), resources=on, conditions=dict(when or {}))
        )
        if because:
            acknowledge_wildcards(self.role, on, because)


def _code(name: str) -> lambda_.AssetCode:
    return lambda_.Code.from_asset(
        str(ROOT),
        # In the order of a .gitignore: later lines win, and a folder that is left out is not walked.
        exclude=[
            "/*",
            "!/functions",
            "/functions/*",
            "!/functions/__init__.py",
            f"!/functions/{name}",
            *LEFTOVERS,
        ],
        ignore_mode=IgnoreMode.GIT,
    )


def _common(name: str, settings: Settings) -> dict[str, str]:
    return {
        "NODUS_STAGE": settings.stage,
        "POWERTOOLS_SERVICE_NAME": name,
        "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": settings.log_level,
    }
