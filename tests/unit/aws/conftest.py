"""Clients of botocore whose answers are prepared (`stub`) or come from moto (`moto`)."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

REGION = "eu-central-1"


def new_client(service: str, **more: Any) -> Any:
    session = botocore.session.Session()
    session.set_credentials("AKIATEST", "secret")
    config = Config(retries={"total_max_attempts": 1})
    return session.create_client(service, region_name=REGION, config=config, **more)


@pytest.fixture
def stub() -> Iterator[Callable[[str], tuple[Any, Stubber]]]:
    """A client and its stubber; every prepared answer must be asked for, with exactly the right arguments."""
    stubbers: list[Stubber] = []

    def made(service: str) -> tuple[Any, Stubber]:
        client = new_client(service)
        stubber = Stubber(client)
        stubber.activate()
        stubbers.append(stubber)
        return client, stubber

    yield made
    for stubber in stubbers:
        stubber.assert_no_pending_responses()


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Clients of moto's AWS."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield new_client


@pytest.fixture
def unused_port() -> Callable[[], int]:
    """Gives a port at which nobody listens."""

    def found() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    return found
