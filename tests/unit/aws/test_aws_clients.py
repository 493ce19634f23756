"""Addresses, clients, clock and ids."""

from collections.abc import Iterator

import pytest
from nodus_core.aws import clients
from nodus_core.aws.endpoints import Endpoints
from nodus_core.aws.system import FreshIds, SystemClock
from nodus_core.kernel.errors import TerminalError
from nodus_core.kernel.times import moment, stamp

IDS = {"NODUS_HTTP_API_ID": "h1", "NODUS_LINK_API_ID": "w1", "NODUS_LINK_STAGE": "link"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process of its own: no clients yet, no configuration but the test's."""
    for name in (
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_DYNAMODB",
        "AWS_REGION",
        "AWS_PROFILE",
        "AWS_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    _forget_clients()
    yield monkeypatch
    _forget_clients()


def _forget_clients() -> None:
    for made in vars(clients).values():
        if hasattr(made, "cache_clear"):
            made.cache_clear()


def test_addresses_on_aws() -> None:
    endpoints = Endpoints.from_environment(IDS, "eu-central-1")

    assert endpoints.link_http == "https://h1.execute-api.eu-central-1.amazonaws.com/link/v1"
    assert endpoints.link_ws == "wss://w1.execute-api.eu-central-1.amazonaws.com/link"
    assert endpoints.connections == "https://w1.execute-api.eu-central-1.amazonaws.com/link"
    china = Endpoints.from_environment(IDS, "cn-north-1")
    assert china.link_http == "https://h1.execute-api.cn-north-1.amazonaws.com.cn/link/v1"


def test_addresses_below_an_endpoint() -> None:
    endpoints = Endpoints.from_environment({**IDS, "AWS_ENDPOINT_URL": "http://127.0.0.1:4566/"}, "us-east-1")

    assert endpoints.link_http == "http://127.0.0.1:4566/_aws/execute-api/h1/$default/link/v1"
    assert endpoints.link_ws == "ws://127.0.0.1:4566/_aws/execute-api/w1/link"
    assert endpoints.connections == "http://127.0.0.1:4566/_aws/execute-api/w1/link"


@pytest.mark.parametrize(
    "make", [clients.s3, clients.stepfunctions, clients.ecs, clients.events, clients.secretsmanager]
)
def test_a_client_is_made_once_and_gives_up_in_time(environment: pytest.MonkeyPatch, make) -> None:
    client = make()

    assert make() is client
    assert client.meta.region_name == "eu-central-1"
    assert (client.meta.config.connect_timeout, client.meta.config.read_timeout) == (2, 5)
    assert client.meta.config.retries["total_max_attempts"] == 4


def test_clients_follow_the_endpoint_of_the_environment(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")

    assert clients.ecs().meta.endpoint_url == "http://127.0.0.1:4566"
    assert clients.endpoint("dynamodb") == "http://127.0.0.1:4566"
    environment.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:8000")
    assert clients.endpoint("dynamodb") == "http://127.0.0.1:8000"


def test_the_bell_goes_to_its_own_address(environment: pytest.MonkeyPatch) -> None:
    address = "http://127.0.0.1:4566/_aws/execute-api/w1/link"

    assert clients.connections(address).meta.endpoint_url == address


def test_the_wire_to_dynamodb_is_made_once(environment: pytest.MonkeyPatch) -> None:
    assert clients.dynamodb() is clients.dynamodb()
    assert clients.dynamodb().address == "https://dynamodb.eu-central-1.amazonaws.com/"


def test_no_region_is_said_so(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_DEFAULT_REGION")

    with pytest.raises(TerminalError, match="AWS_REGION"):
        clients.ecs()


def test_no_credentials_are_said_so(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(TerminalError, match="credentials"):
        clients.dynamodb()


def test_the_clock_shows_what_is_stored() -> None:
    clock = SystemClock()
    before, now, after = clock.now(), clock.now(), clock.now()

    assert before <= now <= after
    assert moment(stamp(now)) == now


def test_ids_are_fresh() -> None:
    ids = FreshIds()

    assert len({ids.fresh("c") for _ in range(1000)}) == 1000
    assert ids.fresh("run").startswith("run-")
