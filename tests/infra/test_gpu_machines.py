"""Machines with GPUs: none while nobody wants one, closed to the world and to what runs on them (NODQ-63).

The templates are looked at; nothing of this has run on AWS.
"""

import json
from typing import Any

import pytest

from tests.infra.synthesis import Assembly, as_list

KINDS = {
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::EC2::LaunchTemplate",
    "AWS::EC2::NatGateway",
    "AWS::ECS::CapacityProvider",
}


def template(asked: Assembly) -> dict[str, Any]:
    return asked.service.one("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


def variables(made: Assembly, function: str) -> dict[str, Any]:
    return made.service.function(function)["Properties"]["Environment"]["Variables"]


@pytest.mark.req("NODQ-63")
def test_without_the_setting_there_is_nothing_of_them(assembly: Assembly, other: Assembly) -> None:
    for made in (assembly, other):
        assert not KINDS & {each["Type"] for each in made.service.body["Resources"].values()}
        assert variables(made, "api")["NODUS_GPUS"] == ""
        told = variables(made, "line")
        assert (told["NODUS_GPU_PROVIDER"], told["NODUS_GPU_SUBNETS"]) == ("", "")


@pytest.mark.req("NODQ-63")
def test_the_group_is_empty_by_itself_and_grows_to_the_settings_number(asked: Assembly) -> None:
    group = asked.service.one("AWS::AutoScaling::AutoScalingGroup")
    assert (group["MinSize"], group["MaxSize"]) == ("0", "3")
    assert "DesiredCapacity" not in group
    assert group["NewInstancesProtectedFromScaleIn"] is True
    provider = asked.service.one("AWS::ECS::CapacityProvider")["AutoScalingGroupProvider"]
    assert provider["ManagedTerminationProtection"] == "ENABLED"
    assert (provider["ManagedScaling"]["Status"], provider["ManagedScaling"]["TargetCapacity"]) == (
        "ENABLED",
        100,
    )


@pytest.mark.req("NODQ-63")
def test_the_cluster_has_the_provider_and_line_knows_where_it_is(asked: Assembly) -> None:
    (provider,) = asked.service.of_type("AWS::ECS::CapacityProvider")
    cluster = asked.service.one("AWS::ECS::Cluster")
    assert cluster["CapacityProviders"] == ["FARGATE", "FARGATE_SPOT", {"Ref": provider}]
    told = variables(asked, "line")
    assert (
        told["NODUS_GPU_PROVIDER"] == asked.service.one("AWS::ECS::CapacityProvider")["Name"] == "nodus-gpu"
    )
    assert told["NODUS_CAPACITY_PROVIDER"] == "FARGATE"
    assert json.loads(variables(asked, "api")["NODUS_GPUS"]) == {
        "type": "g5.xlarge",
        "count": 1,
        "cpu": "4",
        "memory": "14",
        "usd": "1.25",
    }


def private_subnets(asked: Assembly) -> set[str]:
    return {
        name
        for name, each in asked.service.of_type("AWS::EC2::Subnet").items()
        if each["Properties"]["MapPublicIpOnLaunch"] is False
    }


def test_tasks_and_machines_are_in_subnets_whose_way_out_is_the_nat_gateway(asked: Assembly) -> None:
    subnets = private_subnets(asked)
    assert len(subnets) == 2
    told = variables(asked, "line")["NODUS_GPU_SUBNETS"]["Fn::Join"][1]
    assert {each["Ref"] for each in told if isinstance(each, dict)} == subnets
    group = asked.service.one("AWS::AutoScaling::AutoScalingGroup")
    assert {each["Ref"] for each in group["VPCZoneIdentifier"]} == subnets
    (gateway,) = asked.service.of_type("AWS::EC2::NatGateway")
    routes = [
        each["Properties"]["NatGatewayId"]["Ref"]
        for each in asked.service.of_type("AWS::EC2::Route").values()
        if "NatGatewayId" in each["Properties"]
    ]
    assert routes == [gateway] * 2


def test_sandboxes_on_fargate_stay_where_they_are(asked: Assembly, assembly: Assembly) -> None:
    for made in (asked, assembly):
        told = variables(made, "line")["NODUS_SUBNETS"]["Fn::Join"][1]
        names = [each["Ref"] for each in told if isinstance(each, dict)]
        blocks = [made.service.body["Resources"][name]["Properties"]["CidrBlock"] for name in names]
        assert blocks == ["10.64.0.0/20", "10.64.16.0/20"]


@pytest.mark.req("NODQ-63")
def test_a_task_reaches_no_role_of_its_machine_and_nobody_reaches_the_machine(asked: Assembly) -> None:
    given = template(asked)
    assert given["InstanceType"] == "g5.xlarge"
    assert given["MetadataOptions"]["HttpTokens"] == "required"
    assert given["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    lines = given["UserData"]["Fn::Base64"].splitlines()
    assert lines[0] == "#!/bin/bash"
    assert {line.removeprefix("echo ").removesuffix(" >> /etc/ecs/ecs.config") for line in lines[1:]} == {
        "ECS_CLUSTER=nodus-sandboxes",
        "ECS_AWSVPC_BLOCK_IMDS=true",
        "ECS_DISABLE_PRIVILEGED=true",
        "ECS_ENABLE_GPU_SUPPORT=true",
        "ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE=true",
    }
    assert "KeyName" not in given
    (disk,) = given["BlockDeviceMappings"]
    assert disk["Ebs"]["Encrypted"] is True
    for group in asked.service.of_type("AWS::EC2::SecurityGroup").values():
        assert "SecurityGroupIngress" not in group["Properties"]
    assert not asked.service.of_type("AWS::EC2::SecurityGroupIngress")


def test_the_image_is_the_one_that_aws_names_at_deployment(asked: Assembly) -> None:
    parameter = asked.service.body["Parameters"][template(asked)["ImageId"]["Ref"]]
    assert parameter["Type"] == "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"
    assert parameter["Default"].endswith("/amazon-linux-2023/gpu/recommended/image_id")


def test_a_machine_may_join_our_cluster_and_do_nothing_else(asked: Assembly) -> None:
    (profile,) = asked.service.of_type("AWS::IAM::InstanceProfile").values()
    (role,) = profile["Properties"]["Roles"]
    assert "ManagedPolicyArns" not in asked.service.body["Resources"][role["Ref"]]["Properties"]
    allowed = {
        action: str(statement["Resource"])
        for statement in asked.service.statements(role["Ref"])
        for action in as_list(statement["Action"])
    }
    assert {action.partition(":")[0] for action in allowed} == {"ecs"}
    assert [action for action, on in allowed.items() if on == "*"] == ["ecs:DiscoverPollEndpoint"]
    assert all("nodus-sandboxes" in on for action, on in allowed.items() if on != "*")
    assert not {"ecs:RunTask", "ecs:StartTask", "ecs:CreateCluster"} & set(allowed)


def test_no_function_gets_a_further_right_by_them(asked: Assembly, assembly: Assembly) -> None:
    def of_line(made: Assembly) -> set[str]:
        role = made.service.function("line")["Properties"]["Role"]["Fn::GetAtt"][0]
        return {action for each in made.service.statements(role) for action in as_list(each["Action"])}

    assert of_line(asked) == of_line(assembly)
