"""The HTTP API: REST for people and programs, and the sandboxes' calls."""

import json

from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.constructs.log_group import log_group
from infra.names import HTTP_STAGE, Names
from infra.settings import Settings

# The route and not the path, which of a preview is a secret; the function logs the others' paths. Never the query, either.
ACCESS_LOG = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "route": "$context.routeKey",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "latencyMs": "$context.responseLatency",
    "integrationError": "$context.integrationErrorMessage",
}


DOCUMENTS = (
    *("/healthz", "/version", "/api", "/api/{proxy+}", "/apis"),
    *("/openapi.json", "/openapi/{proxy+}"),
)
"""What is read beside the resources: health, and what the API says of itself."""


class HttpApi(Construct):
    """`POST /link/v1/{proxy+}` for `link`; for `api` its own routes, and whatever else is asked for."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(scope, construct_id)
        self.api = apigw.HttpApi(self, "Api", api_name=names.of("http"), create_default_stage=False)
        logs = log_group(self, "AccessLogs", f"/aws/apigateway/{names.of('http')}", settings)
        self.stage = apigw.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name=HTTP_STAGE,
            auto_deploy=True,
            throttle=apigw.ThrottleSettings(
                rate_limit=settings.throttle_rate, burst_limit=settings.throttle_burst
            ),
        )
        stage = self.stage.node.default_child
        assert isinstance(stage, apigw.CfnStage)  # noqa: S101 - tells the type checker what an HttpStage is made of
        stage.access_log_settings = apigw.CfnStage.AccessLogSettingsProperty(
            destination_arn=logs.log_group_arn, format=json.dumps(ACCESS_LOG)
        )

    def serve(self, api: lambda_.IFunction, link: lambda_.IFunction) -> None:
        """Adds the routes."""
        to_api = integrations.HttpLambdaIntegration("ToApi", api)
        to_link = integrations.HttpLambdaIntegration("ToLink", link)
        routes = [
            *self.api.add_routes(path="/mcp", methods=[apigw.HttpMethod.POST], integration=to_api),
            *self.api.add_routes(
                path="/preview/{proxy+}", methods=[apigw.HttpMethod.ANY], integration=to_api
            ),
            *self.api.add_routes(path="/apis/{proxy+}", methods=[apigw.HttpMethod.ANY], integration=to_api),
            *(
                route
                for path in DOCUMENTS
                for route in self.api.add_routes(
                    path=path, methods=[apigw.HttpMethod.GET], integration=to_api
                )
            ),
            *self.api.add_routes(
                path="/link/v1/{proxy+}", methods=[apigw.HttpMethod.POST], integration=to_link
            ),
            # What no route takes is refused in the words of the API (a `Status`), which API Gateway does not speak.
            apigw.HttpRoute(
                self, "Other", http_api=self.api, route_key=apigw.HttpRouteKey.DEFAULT, integration=to_api
            ),
        ]
        for route in routes:
            acknowledge(
                route,
                {
                    "AwsSolutions-APIG4": "The function checks the bearer key itself, with keys hashed in the "
                    "journal: an authorizer would be a second function call for every request."
                },
            )
