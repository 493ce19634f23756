"""Each role may do exactly what is listed here, to exactly that, and a new right is a change of this file."""

from itertools import product

import pytest

from tests.infra.conftest import SECRETS_KEY
from tests.infra.synthesis import Assembly, Resource, as_list

JOURNAL = {
    f"dynamodb:{action}"
    for action in (
        *("BatchGetItem", "ConditionCheckItem", "DeleteItem"),
        *("GetItem", "PutItem", "Query", "UpdateItem"),
    )
}
PAYLOADS = {"s3:GetObject", "s3:PutObject", "s3:ListBucket"}
KEEP_SANDBOXES = {"ecs:ListTasks", "ecs:DescribeTasks", "ecs:StopTask"}
SANDBOXES = KEEP_SANDBOXES | {"ecs:RunTask", "ecs:TagResource", "iam:PassRole"}
DEFINE = {"ecs:DescribeTaskDefinition", "ecs:RegisterTaskDefinition"}
STREAM = {
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
}
TELEMETRY = {"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTraceSegments", "xray:PutTelemetryRecords"}
KEEP = {"secretsmanager:CreateSecret", "secretsmanager:PutSecretValue"}
DROP, READ_VALUE = "secretsmanager:DeleteSecret", "secretsmanager:GetSecretValue"
START, BELL, EVENTS = "states:StartExecution", "execute-api:ManageConnections", "events:PutEvents"

ALLOWED = {
    "api": JOURNAL
    | PAYLOADS
    | KEEP
    | {
        START,
        BELL,
        "s3:DeleteObject",
        DROP,
        "scheduler:CreateSchedule",
        "iam:PassRole",
        "ecr:DescribeImages",
    },
    "link": JOURNAL | PAYLOADS | {BELL, READ_VALUE},
    "line": JOURNAL | PAYLOADS | SANDBOXES | DEFINE | {BELL, "s3:DeleteObject", READ_VALUE},
    "reactor": JOURNAL
    | STREAM
    | {START, EVENTS, "sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"},
    "sweeper": JOURNAL | PAYLOADS | KEEP_SANDBOXES | {START, DROP, "s3:DeleteObject"},
    "admin": JOURNAL | PAYLOADS,
}
# AWS knows no narrower resource for these.
WITHOUT_RESOURCE = {
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "ecs:ListTasks",
    *DEFINE,
    "dynamodb:ListStreams",
}


def role_of(function: Resource) -> str:
    return function["Properties"]["Role"]["Fn::GetAtt"][0]


def statements(assembly: Assembly, name: str) -> list[dict]:
    return assembly.service.statements(role_of(assembly.service.function(name)))


def with_action(assembly: Assembly, name: str, action: str) -> list[dict]:
    return [each for each in statements(assembly, name) if action in as_list(each["Action"])]


@pytest.mark.parametrize("name", ALLOWED)
def test_a_function_may_do_what_it_needs_and_no_more(assembly: Assembly, name: str) -> None:
    found = statements(assembly, name)
    assert {each["Effect"] for each in found} == {"Allow"}
    assert {action for each in found for action in as_list(each["Action"])} == ALLOWED[name] | TELEMETRY


@pytest.mark.parametrize("name", ALLOWED)
def test_only_actions_that_know_no_resource_are_allowed_on_all(assembly: Assembly, name: str) -> None:
    everywhere = [each for each in statements(assembly, name) if "*" in as_list(each["Resource"])]
    assert {action for each in everywhere for action in as_list(each["Action"])} <= WITHOUT_RESOURCE


def test_each_function_has_a_role_of_its_own_without_managed_policies(assembly: Assembly) -> None:
    functions = assembly.service.of_type("AWS::Lambda::Function").values()
    roles = [role_of(each) for each in functions]
    assert len(set(roles)) == len(ALLOWED) == len(roles)
    for role in roles:
        assert "ManagedPolicyArns" not in assembly.service.body["Resources"][role]["Properties"]


def test_journal_rights_end_at_the_table_and_only_the_sweeper_reads_the_index(assembly: Assembly) -> None:
    for name in ALLOWED:
        resources = {
            str(resource)
            for each in with_action(assembly, name, "dynamodb:Query")
            for resource in as_list(each["Resource"])
        }
        assert all("JournalTable" in resource for resource in resources)
        assert any("/index/due" in resource for resource in resources) == (name == "sweeper")
        assert not any("*" in resource for resource in resources)


@pytest.mark.req("FLD-10")
def test_the_sweeper_starts_sandboxes_only_where_some_are_kept_warm(
    assembly: Assembly, other: Assembly
) -> None:
    for made, size in ((assembly, "0"), (other, "3")):
        for name in ("line", "sweeper"):
            told = made.service.function(name)["Properties"]["Environment"]["Variables"]
            assert told["NODUS_WARM_SANDBOXES"] == size
            assert bool(with_action(made, "sweeper", "ecs:RunTask")) == (size != "0")
        tagging = with_action(made, "line", "ecs:TagResource")
        assert any("Condition" not in each for each in tagging) == (size != "0")
        assert all("task/nodus" in str(each["Resource"]) for each in tagging)
    (cluster,) = other.service.of_type("AWS::ECS::Cluster")
    ours = {"Fn::GetAtt": [cluster, "Arn"]}
    for statement in with_action(other, "sweeper", "ecs:RunTask"):
        limited = statement.get("Condition") == {"ArnEquals": {"ecs:cluster": ours}}
        assert limited or statement["Resource"] == ours


def test_sandbox_rights_end_at_our_cluster(assembly: Assembly) -> None:
    (cluster,) = assembly.service.of_type("AWS::ECS::Cluster")
    ours = {"Fn::GetAtt": [cluster, "Arn"]}
    for name, action in [("line", "ecs:RunTask"), *product(("line", "sweeper"), sorted(KEEP_SANDBOXES))]:
        granted = with_action(assembly, name, action)
        assert granted
        for statement in granted:
            limited = statement.get("Condition") == {"ArnEquals": {"ecs:cluster": ours}}
            assert limited or statement["Resource"] == ours
    (tagging,) = with_action(assembly, "line", "ecs:TagResource")
    assert tagging["Condition"] == {"StringEquals": {"ecs:CreateAction": "RunTask"}}
    running = [each for each in with_action(assembly, "line", "ecs:RunTask") if "Condition" in each]
    assert ["task-definition/nodus-sandbox:*" in str(each["Resource"]) for each in running] == [True]


@pytest.mark.req("NODQ-82", "NOD-448")
def test_other_images_have_task_definitions_below_the_sandboxes_name(assembly: Assembly) -> None:
    running = [each for each in with_action(assembly, "line", "ecs:RunTask") if "Condition" in each]
    families = str(as_list(running[0]["Resource"]))
    assert families.count("task-definition/nodus-sandbox:*") == 1
    assert families.count("task-definition/nodus-sandbox-*:*") == 1
    assert len(as_list(running[0]["Resource"])) == 2
    told = assembly.service.function("line")["Properties"]["Environment"]["Variables"]
    assert "nodus/sandboxd-runtime:latest" in str(told["NODUS_RUNTIME_IMAGE"])
    listed = assembly.service.function("api")["Properties"]["Environment"]["Variables"]["NODUS_IMAGES"]
    assert '{"nodus/agent-tools":"' in str(listed).replace("\\", "")
    (asking,) = with_action(assembly, "api", "ecr:DescribeImages")
    assert [str(each).count("repository/nodus/") for each in as_list(asking["Resource"])] == [1, 1]


@pytest.mark.req("NOD-021")
def test_where_there_are_no_images_nothing_is_asked_for_and_no_task_defined(other: Assembly) -> None:
    assert not with_action(other, "line", "ecs:RegisterTaskDefinition")
    assert not with_action(other, "api", "ecr:DescribeImages")
    told = other.service.function("api")["Properties"]["Environment"]["Variables"]
    assert told["NODUS_IMAGES"] == '{"nodus/agent-tools":"machine"}'
    assert (
        other.service.function("line")["Properties"]["Environment"]["Variables"]["NODUS_RUNTIME_IMAGE"] == ""
    )


def test_only_the_sandboxes_execution_role_can_be_passed_and_only_to_ecs(assembly: Assembly) -> None:
    (statement,) = with_action(assembly, "line", "iam:PassRole")
    task = assembly.service.one("AWS::ECS::TaskDefinition")
    assert statement["Resource"] == task["ExecutionRoleArn"]
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}


def test_schedules_can_only_be_made_and_can_only_invoke_the_reactor(assembly: Assembly) -> None:
    (making,) = with_action(assembly, "api", "scheduler:CreateSchedule")
    assert len(as_list(making["Resource"])) == 3
    assert all("schedule/" in str(each) and str(each) != "*" for each in as_list(making["Resource"]))
    for line in ("run-", "sandbox-"):  # the local cloud looks at the default group alone
        assert any(f"schedule/default/{line}*" in str(each) for each in as_list(making["Resource"]))
    (passing,) = with_action(assembly, "api", "iam:PassRole")
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
    role = passing["Resource"]["Fn::GetAtt"][0]
    reactor = next(
        key
        for key, each in assembly.service.of_type("AWS::Lambda::Function").items()
        if each == assembly.service.function("reactor")
    )
    (invoking,) = assembly.service.statements(role)
    assert (invoking["Action"], invoking["Resource"]) == (
        "lambda:InvokeFunction",
        {"Fn::GetAtt": [reactor, "Arn"]},
    )
    trust = assembly.service.body["Resources"][role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [each["Principal"]["Service"] for each in trust] == ["scheduler.amazonaws.com"]
    assert "aws:SourceAccount" in str(trust[0]["Condition"])


def test_bells_can_be_rung_and_not_closed_on_our_link_stage_only(assembly: Assembly) -> None:
    (statement,) = with_action(assembly, "line", BELL)
    written = [str(each) for each in as_list(statement["Resource"])]
    assert sorted(each.split("/link/")[1].split("/")[0] for each in written) == ["POST"]
    assert all("LinkApi" in each for each in written)


def test_the_line_machine_may_invoke_the_line_function_and_nothing_else(assembly: Assembly) -> None:
    role = assembly.service.one("AWS::StepFunctions::StateMachine")["RoleArn"]["Fn::GetAtt"][0]
    found = assembly.service.statements(role)
    invoking = [each for each in found if "lambda:InvokeFunction" in as_list(each["Action"])]
    line = next(
        key
        for key, each in assembly.service.of_type("AWS::Lambda::Function").items()
        if each == assembly.service.function("line")
    )
    assert [each["Resource"] for each in invoking] == [{"Fn::GetAtt": [line, "Arn"]}]
    others = {action for each in found if each not in invoking for action in as_list(each["Action"])}
    assert {action.split(":")[0] for action in others} == {"logs", "xray"}


def test_a_sandbox_holds_no_aws_credential_and_its_execution_role_only_logs_and_pulls(
    assembly: Assembly,
) -> None:
    task = assembly.service.one("AWS::ECS::TaskDefinition")
    assert "TaskRoleArn" not in task
    found = assembly.service.statements(task["ExecutionRoleArn"]["Fn::GetAtt"][0])
    assert {action for each in found for action in as_list(each["Action"])} == {
        *("logs:CreateLogStream", "logs:PutLogEvents", "ecr:GetAuthorizationToken"),
        *("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"),
    }


def test_an_image_of_a_public_registry_needs_no_right_to_pull(other: Assembly) -> None:
    task = other.service.one("AWS::ECS::TaskDefinition")
    found = other.service.statements(task["ExecutionRoleArn"]["Fn::GetAtt"][0])
    assert {action for each in found for action in as_list(each["Action"])} == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
    }


def test_values_of_secrets_are_read_by_line_and_link_alone_and_lie_three_levels_deep(
    assembly: Assembly,
) -> None:
    for name in ALLOWED:
        actions = [KEEP, {DROP}, {READ_VALUE}]
        found = [each for action in set().union(*actions) for each in with_action(assembly, name, action)]
        below = [str(each["Resource"]) for each in found if "Providers" not in str(each["Resource"])]
        assert all(":secret:nodus/*/*/*" in resource for resource in below)
    readers = {name for name in ALLOWED if with_action(assembly, name, READ_VALUE)}
    assert readers == {"line", "link"}


@pytest.mark.req("NOD-465")
def test_values_of_secrets_are_encrypted_by_a_key_that_the_stack_names(
    assembly: Assembly, other: Assembly
) -> None:
    for made, key in ((assembly, "alias/aws/secretsmanager"), (other, SECRETS_KEY)):
        variables = made.service.function("api")["Properties"]["Environment"]["Variables"]
        assert variables["NODUS_SECRETS_KEY"] == key
    rights: dict[str, set[str]] = {}
    for name in ALLOWED:
        for each in statements(other, name):
            actions = {action for action in as_list(each["Action"]) if action.startswith("kms:")}
            if actions:
                rights[name] = actions
                assert each["Resource"] == SECRETS_KEY
                assert "secretsmanager." in str(each["Condition"]["StringEquals"]["kms:ViaService"])
        assert not any("kms:" in str(each["Action"]) for each in statements(assembly, name))
    assert rights == {
        "api": {"kms:Decrypt", "kms:GenerateDataKey"},
        "line": {"kms:Decrypt"},
        "link": {"kms:Decrypt"},
    }
