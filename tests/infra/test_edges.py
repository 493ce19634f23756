"""What the world can reach, what sandboxes can reach, and what operators see."""

import json
from typing import Any

import pytest

from tests.infra.synthesis import Assembly
from tests.infra.test_functions import NAMES

STATE_OUTPUTS = {"TableName", "PayloadBucket", "ProvidersSecretArn", "BusName"}
SERVICE_OUTPUTS = {
    *("HttpApiUrl", "HttpApiId", "LinkApiId", "LinkApiStage", "ClusterName"),
    *("AdminFunctionName", "SweeperFunctionName", "FunctionNames", "LineMachineArn"),
}


def all_properties(assembly: Assembly, kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in assembly.service.of_type(kind).values()]


def stage(assembly: Assembly, name: str) -> dict[str, Any]:
    (found,) = (
        each for each in all_properties(assembly, "AWS::ApiGatewayV2::Stage") if each["StageName"] == name
    )
    return found


def websocket_api(assembly: Assembly) -> str:
    """The logical id of the bell's API."""
    (found,) = (
        name
        for name, each in assembly.service.of_type("AWS::ApiGatewayV2::Api").items()
        if each["Properties"]["ProtocolType"] == "WEBSOCKET"
    )
    return found


def test_the_apis_have_exactly_the_routes_of_the_protocol(assembly: Assembly) -> None:
    assert sorted(each["RouteKey"] for each in all_properties(assembly, "AWS::ApiGatewayV2::Route")) == [
        *("$connect", "$default", "$default", "$disconnect"),
        *(
            "ANY /apis/{proxy+}",
            "ANY /preview/{proxy+}",
            "GET /api",
            "GET /api/{proxy+}",
            "GET /apis",
            "GET /healthz",
        ),
        *("GET /openapi.json", "GET /openapi/{proxy+}", "GET /version"),
        *("POST /link/v1/{proxy+}", "POST /mcp"),
    ]


def test_each_route_leads_to_its_function(assembly: Assembly) -> None:
    resources = assembly.service.body["Resources"]
    for route in all_properties(assembly, "AWS::ApiGatewayV2::Route"):
        integration = resources[route["Target"]["Fn::Join"][1][1]["Ref"]]["Properties"]
        is_bell = route["ApiId"]["Ref"] == websocket_api(assembly)
        to_link = is_bell or route["RouteKey"].startswith("POST /link/")
        wanted = "FunctionsLink" if to_link else "FunctionsApi"
        assert wanted in str(integration["IntegrationUri"]), route["RouteKey"]


@pytest.mark.req("NODQ-01")
def test_what_no_route_takes_is_answered_by_the_api_function_under_the_same_limits(
    assembly: Assembly,
) -> None:
    (other,) = (
        each
        for each in all_properties(assembly, "AWS::ApiGatewayV2::Route")
        if each["RouteKey"] == "$default" and each["ApiId"]["Ref"] != websocket_api(assembly)
    )
    assert other["AuthorizationType"] == "NONE"  # as of every route: keys are the function's to check
    assert "AuthorizerId" not in other
    # No route has limits of its own: those of the stage count for this one, too.
    assert "RouteSettings" not in stage(assembly, "$default")
    assert stage(assembly, "$default")["DefaultRouteSettings"]["ThrottlingRateLimit"] == 500


def test_both_stages_are_throttled_and_http_access_is_logged_without_queries_or_headers(
    assembly: Assembly,
) -> None:
    for name in ("$default", "link"):
        limits = stage(assembly, name)["DefaultRouteSettings"]
        assert (limits["ThrottlingRateLimit"], limits["ThrottlingBurstLimit"]) == (500, 1000)
    logged = json.loads(stage(assembly, "$default")["AccessLogSettings"]["Format"])
    assert {"requestId", "status", "method", "route"} <= set(logged)
    assert "$context.path" not in logged.values()  # of a preview it is a secret
    assert not [each for each in logged.values() if "query" in each.lower() or "header" in each.lower()]


def test_sandboxes_are_dialled_by_nobody_and_dial_only_the_web(assembly: Assembly) -> None:
    group = assembly.service.one("AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group
    assert not assembly.service.of_type("AWS::EC2::SecurityGroupIngress")
    ports = {(each["IpProtocol"], each["FromPort"], each["ToPort"]) for each in group["SecurityGroupEgress"]}
    assert ports == {("tcp", 443, 443), ("tcp", 80, 80)}


def test_there_is_no_gateway_to_pay_for_and_no_function_in_the_network(assembly: Assembly) -> None:
    kinds = {each["Type"] for each in assembly.service.body["Resources"].values()}
    assert not kinds & {"AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::EC2::VPCEndpoint"}
    assert not kinds & {"AWS::EC2::VPCPeeringConnection", "AWS::EC2::TransitGatewayAttachment"}
    assert len(assembly.service.of_type("AWS::EC2::Subnet")) == 2
    assert not [each for each in all_properties(assembly, "AWS::Lambda::Function") if "VpcConfig" in each]


@pytest.mark.req("NOD-157")
def test_the_sandbox_task_is_small_can_have_any_working_folder_and_stops_politely(assembly: Assembly) -> None:
    task = assembly.service.one("AWS::ECS::TaskDefinition")
    assert (task["Family"], task["Cpu"], task["Memory"]) == ("nodus-sandbox", "1024", "2048")
    assert task["RequiresCompatibilities"] == ["FARGATE"]
    (container,) = task["ContainerDefinitions"]
    assert container["Name"] == "sandbox"
    assert container["ReadonlyRootFilesystem"] is False
    assert not container.get("MountPoints")
    assert container["StopTimeout"] == 120


def test_commands_are_not_the_daemons_user_and_the_task_gets_no_capability_beyond_the_default(
    assembly: Assembly,
) -> None:
    (container,) = assembly.service.one("AWS::ECS::TaskDefinition")["ContainerDefinitions"]
    assert "Add" not in container["LinuxParameters"]["Capabilities"]
    told = {each["Name"]: each["Value"] for each in container["Environment"]}
    assert (told.pop("NODUS_COMMAND_UID"), told.pop("NODUS_COMMAND_GID")) == ("1000", "1000")
    assert told.keys() == {"NODUS_ISOLATION"}


@pytest.mark.req("NOD-457")
def test_on_fargate_the_daemon_has_to_prove_its_own_egress_guard(assembly: Assembly) -> None:
    (container,) = assembly.service.one("AWS::ECS::TaskDefinition")["ContainerDefinitions"]
    (said,) = (each["Value"] for each in container["Environment"] if each["Name"] == "NODUS_ISOLATION")
    assert json.loads(said) == {"isolated": True, "guard": None, "missing": []}


def test_spot_is_a_choice(assembly: Assembly, other: Assembly) -> None:
    for made, provider in ((assembly, "FARGATE"), (other, "FARGATE_SPOT")):
        variables = made.service.function("line")["Properties"]["Environment"]["Variables"]
        assert variables["NODUS_CAPACITY_PROVIDER"] == provider
        assert provider in made.service.one("AWS::ECS::Cluster")["CapacityProviders"]


def test_no_log_is_kept_for_ever(assembly: Assembly, other: Assembly) -> None:
    for made, days in ((assembly, 30), (other, 7)):
        groups = all_properties(made, "AWS::Logs::LogGroup")
        assert len(groups) == 9
        assert {each["RetentionInDays"] for each in groups} == {days}


def test_operators_are_told_of_what_needs_them(assembly: Assembly) -> None:
    alarms = {each["AlarmName"]: each for each in all_properties(assembly, "AWS::CloudWatch::Alarm")}
    assert set(alarms) == {
        *("nodus-reactor-failures", "nodus-reactor-late", "nodus-sweeper-stale"),
        *(f"nodus-{name}-{what}" for name in NAMES for what in ("errors", "throttles")),
    }
    stale = alarms.pop("nodus-sweeper-stale")
    assert (stale["ComparisonOperator"], stale["TreatMissingData"]) == ("LessThanThreshold", "breaching")
    assert {each["TreatMissingData"] for each in alarms.values()} == {"notBreaching"}
    assert all(each["AlarmDescription"].endswith(".") for each in alarms.values())
    assert assembly.service.one("AWS::CloudWatch::Dashboard")["DashboardName"] == "nodus"


def test_alarms_are_sent_to_an_address_when_there_is_one(assembly: Assembly, other: Assembly) -> None:
    assert other.service.one("AWS::SNS::Subscription")["Endpoint"] == "oncall@example.com"
    assert all("AlarmActions" in each for each in all_properties(other, "AWS::CloudWatch::Alarm"))
    statements = other.service.one("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    (publishing,) = (each for each in statements if each["Effect"] == "Allow")
    assert publishing["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert publishing["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert not assembly.service.of_type("AWS::SNS::Topic")


def test_outputs_carry_what_the_local_cloud_and_the_clients_need(assembly: Assembly) -> None:
    assert set(assembly.state.body["Outputs"]) >= STATE_OUTPUTS
    assert set(assembly.service.body["Outputs"]) == SERVICE_OUTPUTS
    names = assembly.service.body["Outputs"]["FunctionNames"]["Value"]["Fn::Join"][1]
    assert len([each for each in names if isinstance(each, dict)]) == 6
