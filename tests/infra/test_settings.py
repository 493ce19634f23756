"""Settings come from the context, are checked before anything is built, and have documented defaults."""

import json
import sys

import pytest
from pydantic import ValidationError

from infra.names import Names
from infra.settings import Settings


def test_defaults_fit_the_machine_and_a_common_account() -> None:
    settings = Settings()
    assert settings.python_version == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert settings.architecture in {"x86_64", "arm64"}
    assert 0 < settings.line_concurrency < 500
    assert settings.protect


def test_words_of_a_command_line_become_what_the_settings_mean() -> None:
    given = {"lineConcurrency": "0", "spot": "true", "logRetentionDays": "7", "protect": "false"}
    settings = Settings.model_validate(given)
    assert (settings.line_concurrency, settings.spot, settings.log_retention_days) == (0, True, 7)
    assert not settings.protect


@pytest.mark.parametrize(
    "given",
    [
        {"stage": "Has Space"},
        {"stage": ""},
        {"lineConcurrency": "1000"},
        {"lineConcurrency": "-1"},
        {"logRetentionDays": "8"},
        {"pythonVersion": "3.9"},
        {"architecture": "mips"},
        {"alarmEmail": "nobody"},
        {"warm": "many"},
        {"keyRate": "0"},
        {"keyBurst": "10001"},
        {"serverNames": "https://api.example.com"},
        {"secretsKey": "alias/mine"},
        {"sandboxImages": "docker"},
        {"warmSandboxes": "-1"},
        {"warmSandboxes": "101"},
        {"gpu": "true"},
        {"gpu": "p5.48xlarge"},
        {"gpuMax": "0"},
        {"gpuPrice": "free"},
        {"unheardOf": "1"},
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_its_name(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate(given)
    assert next(iter(given)) in str(refused.value)


@pytest.mark.req("NODQ-63")
def test_machines_with_gpus_have_a_price_and_run_containers_for_their_processor() -> None:
    given = {"gpu": "g5.xlarge", "architecture": "x86_64"}
    assert json.loads(Settings.model_validate(given).gpus) == {
        "type": "g5.xlarge",
        "count": 1,
        "cpu": "4",
        "memory": "14",
        "usd": "1.006",
    }
    assert json.loads(Settings.model_validate({**given, "gpuPrice": "1.3"}).gpus)["usd"] == "1.3"
    assert Settings().gpus == ""
    for wrong in ({"architecture": "arm64"}, {"sandboxImages": "machine"}, {"gpuPrice": "0"}):
        with pytest.raises(ValidationError, match="gpu"):
            Settings.model_validate({**given, **wrong})


def test_the_main_stage_has_the_bare_names_and_others_their_own() -> None:
    assert (Names("main").of("line"), Names("main").path("providers")) == ("nodus-line", "nodus/providers")
    assert (Names("dev").of("line"), Names("dev").path("providers")) == (
        "nodus-dev-line",
        "nodus-dev/providers",
    )
