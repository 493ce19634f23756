"""What the functions are given: code, variables, time, logs, and events."""

import importlib
import inspect
import json
from typing import Any

import pytest
from pydantic import BaseModel

from tests.infra.synthesis import ROOT, Assembly

NAMES = ("api", "link", "line", "reactor", "sweeper", "admin")
TIMEOUTS_S = {"api": 29, "link": 15, "line": 900, "reactor": 10, "sweeper": 55, "admin": 60}


def properties(assembly: Assembly, name: str) -> dict[str, Any]:
    return assembly.service.function(name)["Properties"]


def as_deployed(variables: dict[str, Any]) -> dict[str, str]:
    """The variables with a stand-in where CloudFormation will put a value."""
    return {
        key: value if isinstance(value, str) else f"value-of-{key.lower()}"
        for key, value in variables.items()
    }


def models_of(name: str) -> list[type[BaseModel]]:
    module = importlib.import_module(f"functions.{name}.env")
    return [
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, BaseModel) and each.__module__ == module.__name__
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_variables_satisfy_the_functions_own_model(assembly: Assembly, name: str) -> None:
    variables = as_deployed(properties(assembly, name)["Environment"]["Variables"])
    models = models_of(name)
    assert models, f"functions/{name}/env.py has no model"
    for model in models:
        assert model.model_validate(variables)


@pytest.mark.parametrize("name", NAMES)
def test_the_handler_lies_where_lambda_looks_and_other_functions_do_not(
    assembly: Assembly, name: str
) -> None:
    folder = assembly.asset_of(assembly.service.function(name))
    assert (folder / "functions" / name / "handler.py").is_file()
    assert {each.name for each in folder.iterdir()} == {"functions"}
    assert {each.name for each in (folder / "functions").iterdir()} == {"__init__.py", name}
    assert not list(folder.rglob("__pycache__"))


@pytest.mark.parametrize("name", NAMES)
def test_every_function_has_bounded_time_traces_and_json_logs(assembly: Assembly, name: str) -> None:
    given = properties(assembly, name)
    assert given["Timeout"] == TIMEOUTS_S[name]
    assert given["TracingConfig"] == {"Mode": "Active"}
    assert given["LoggingConfig"]["LogFormat"] == "JSON"
    group = given["LoggingConfig"]["LogGroup"]["Ref"]
    assert (
        assembly.service.body["Resources"][group]["Properties"]["LogGroupName"] == f"/aws/lambda/nodus-{name}"
    )
    assert given["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == name
    assert len(given["Layers"]) == 2


def test_waiting_lines_leave_room_for_whatever_wakes_them(assembly: Assembly) -> None:
    reserved = {name: properties(assembly, name).get("ReservedConcurrentExecutions") for name in NAMES}
    assert reserved.pop("line") == 100
    assert set(reserved.values()) == {None}


def test_a_small_account_can_switch_the_reservation_off(other: Assembly) -> None:
    assert "ReservedConcurrentExecutions" not in properties(other, "line")


def test_code_and_layers_are_for_the_python_and_the_processor_of_the_settings(assembly: Assembly) -> None:
    functions = assembly.service.of_type("AWS::Lambda::Function").values()
    runtimes = {each["Properties"]["Runtime"] for each in functions}
    architectures = {tuple(each["Properties"]["Architectures"]) for each in functions}
    layers = [each["Properties"] for each in assembly.service.of_type("AWS::Lambda::LayerVersion").values()]
    assert len(runtimes) == len(architectures) == 1
    assert len(layers) == 2
    assert all(tuple(each["CompatibleRuntimes"]) == tuple(runtimes) for each in layers)
    assert all(tuple(each["CompatibleArchitectures"]) in architectures for each in layers)


def test_the_stream_wakes_the_reactor_for_the_outbox_only_and_loses_nothing_silently(
    assembly: Assembly,
) -> None:
    mapping = assembly.service.one("AWS::Lambda::EventSourceMapping")
    (given,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(given["Pattern"])["dynamodb"] == {"NewImage": {"outbox": {"S": [{"exists": True}]}}}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert 0 < mapping["MaximumRetryAttempts"] < 10
    queue = mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert assembly.service.body["Resources"][queue]["Type"] == "AWS::SQS::Queue"


def rules(assembly: Assembly) -> list[dict[str, Any]]:
    return [each["Properties"] for each in assembly.service.of_type("AWS::Events::Rule").values()]


def test_dead_executions_and_stopped_sandboxes_wake_the_reactor(assembly: Assembly) -> None:
    by_source = {
        each["EventPattern"]["source"][0]: each for each in rules(assembly) if "EventPattern" in each
    }
    assert set(by_source) == {"aws.states", "aws.ecs"}
    detail = by_source["aws.states"]["EventPattern"]["detail"]
    assert sorted(detail["status"]) == ["ABORTED", "FAILED", "TIMED_OUT"]
    assert "LineMachine" in str(detail["stateMachineArn"])
    assert by_source["aws.ecs"]["EventPattern"]["detail"]["lastStatus"] == ["STOPPED"]
    for rule in by_source.values():
        (target,) = rule["Targets"]
        assert "Reactor" in str(target["Arn"])
        assert target["DeadLetterConfig"]


def queued(assembly: Assembly, name: str) -> dict[str, Any]:
    """What Lambda does with the function's queued events."""
    ours = assembly.service.function(name)
    configs = [
        each["Properties"] for each in assembly.service.of_type("AWS::Lambda::EventInvokeConfig").values()
    ]
    (found,) = (
        each for each in configs if assembly.service.body["Resources"][each["FunctionName"]["Ref"]] == ours
    )
    return found


def test_an_event_that_the_reactor_took_and_failed_at_is_kept(assembly: Assembly) -> None:
    queue = queued(assembly, "reactor")["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert assembly.service.body["Resources"][queue]["Properties"]["QueueName"] == "nodus-reactor-failures"


def test_a_sweep_is_over_before_the_next_one_and_never_repeated(assembly: Assembly) -> None:
    given = queued(assembly, "sweeper")
    assert (given["MaximumRetryAttempts"], given["MaximumEventAgeInSeconds"]) == (0, 60)


def test_the_sweeper_runs_every_minute(assembly: Assembly) -> None:
    (schedule,) = (each for each in rules(assembly) if "ScheduleExpression" in each)
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert "Sweeper" in str(schedule["Targets"])


def test_the_line_machine_is_standard_logged_without_data_and_calls_line(assembly: Assembly) -> None:
    machine = assembly.service.one("AWS::StepFunctions::StateMachine")
    assert machine["StateMachineType"] == "STANDARD"
    assert machine["TracingConfiguration"] == {"Enabled": True}
    assert machine["LoggingConfiguration"]["IncludeExecutionData"] is False
    assert list(machine["DefinitionSubstitutions"]) == ["LineFunctionArn"]
    definition = (ROOT / "statemachines" / "line.asl.json").read_text()
    assert "${LineFunctionArn}" in definition
    assert json.loads(definition)["StartAt"]


def test_the_functions_that_callers_wait_for_can_be_kept_warm(other: Assembly, assembly: Assembly) -> None:
    aliases = other.service.of_type("AWS::Lambda::Alias").values()
    amounts = [each["Properties"]["ProvisionedConcurrencyConfig"] for each in aliases]
    assert amounts == [{"ProvisionedConcurrentExecutions": 2}] * 2
    integrations = other.service.of_type("AWS::ApiGatewayV2::Integration").values()
    assert all("Warm" in str(each["Properties"]["IntegrationUri"]) for each in integrations)
    assert not assembly.service.of_type("AWS::Lambda::Alias")


def test_the_api_is_told_its_names_and_the_rate_of_keys(assembly: Assembly, other: Assembly) -> None:
    told = [
        made.service.function("api")["Properties"]["Environment"]["Variables"] for made in (assembly, other)
    ]
    names = ("NODUS_SERVER_NAMES", "NODUS_KEY_RATE", "NODUS_KEY_BURST")
    assert [[variables[name] for name in names] for variables in told] == [
        ["", "100", "200"],
        ["api.example.com,api.example.org:8443", "5", "7"],
    ]
    assert all("Ref" in variables["NODUS_HTTP_API_ID"] for variables in told)
