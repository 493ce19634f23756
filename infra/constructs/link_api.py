"""The WebSocket API: the bell of each sandbox."""

from aws_cdk import Stack
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.names import LINK_STAGE, Names
from infra.settings import Settings


class LinkApi(Construct):
    """The routes `$connect`, `$disconnect` and `$default`, all for `link`."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(scope, construct_id)
        self.api = apigw.WebSocketApi(self, "Api", api_name=names.of("link"))
        self.stage = apigw.WebSocketStage(
            self,
            "Stage",
            web_socket_api=self.api,
            stage_name=LINK_STAGE,
            auto_deploy=True,
            throttle=apigw.ThrottleSettings(
                rate_limit=settings.throttle_rate, burst_limit=settings.throttle_burst
            ),
        )
        acknowledge(
            self.stage,
            {
                "AwsSolutions-APIG1": "Access logs of a WebSocket API need a role set for the whole account and "
                "region, which is not one stack's to change; the function logs every connection instead."
            },
        )

    def serve(self, link: lambda_.IFunction) -> None:
        """Adds the routes."""
        for name in ("$connect", "$disconnect", "$default"):
            # One integration for each: an integration serves the route it was made for.
            integration = integrations.WebSocketLambdaIntegration(f"ToLink{name.strip('$').title()}", link)
            route = self.api.add_route(name, integration=integration)
            acknowledge(
                route,
                {
                    "AwsSolutions-APIG4": "The function checks the sandbox's own token at $connect, which "
                    "admits or refuses the connection; the other routes come from admitted ones only."
                },
            )

    def connection_arns(self) -> list[str]:
        """The ARNs that allow to ring (POST) the stage's connections, and no others'.

        Nobody closes one (DELETE): a daemon that is not wanted any more hears so when it pulls.
        """
        return [
            Stack.of(self).format_arn(
                service="execute-api",
                resource=self.api.api_id,
                resource_name=f"{LINK_STAGE}/POST/@connections/*",
            )
        ]
