"""One synthesis for all of these tests, one with every setting changed, one with all that must be asked for."""

import pytest

from tests.infra.synthesis import SYNTHESIS_TIMEOUT_S, Assembly, synthesize

SECRETS_KEY = "arn:aws:kms:eu-central-1:123456789012:key/12345678-1234-1234-1234-123456789012"

OTHER_SETTINGS = {
    "stage": "dev",
    "lineConcurrency": "0",
    "logRetentionDays": "7",
    "alarmEmail": "oncall@example.com",
    "warm": "2",
    "spot": "true",
    "protect": "false",
    "imageBuild": "true",
    "sandboxImage": "public.ecr.aws/example/tools:1",
    "sandboxImages": "machine",
    "runtimeImage": "public.ecr.aws/example/runtime:1",
    "secretsKey": SECRETS_KEY,
    "serverNames": "api.example.com,api.example.org:8443",
    "keyRate": "5",
    "keyBurst": "7",
    "warmSandboxes": "3",
}

ASKED_FOR = {
    "architecture": "x86_64",
    "imageBuild": "true",
    "gpu": "g5.xlarge",
    "gpuMax": "3",
    "gpuPrice": "1.25",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"assembly", "other", "asked"} & set(getattr(item, "fixturenames", ())):
            # Node loads the whole CDK for each of the syntheses, which a busy machine makes long.
            item.add_marker(pytest.mark.timeout(3 * SYNTHESIS_TIMEOUT_S))
            # With several workers, one of them synthesizes for all.
            item.add_marker(pytest.mark.xdist_group("synthesis"))


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The app with its default settings."""
    return synthesize(tmp_path_factory.mktemp("default"), {}, "nodus")


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The app as a second stage with every setting changed."""
    return synthesize(tmp_path_factory.mktemp("other"), OTHER_SETTINGS, "nodus-dev")


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The app with the parts that are only there when they are asked for, and sandboxes that are containers."""
    return synthesize(tmp_path_factory.mktemp("asked"), ASKED_FOR, "nodus")
