"""Settings come from the context, are checked before anything is built, and have documented defaults."""

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
        {"warmSandboxes": "2"},
        {"gpu": "true"},
        {"unheardOf": "1"},
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_its_name(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate(given)
    assert next(iter(given)) in str(refused.value)


def test_the_main_stage_has_the_bare_names_and_others_their_own() -> None:
    assert (Names("main").of("line"), Names("main").path("providers")) == ("nodus-line", "nodus/providers")
    assert (Names("dev").of("line"), Names("dev").path("providers")) == (
        "nodus-dev-line",
        "nodus-dev/providers",
    )
