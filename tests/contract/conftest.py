"""Backends of the contract suites: the doubles, MiniStack, and MiniStack behind a network that fails.

A backend that cannot be had is skipped with the reason, never passed.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.credentials import Credentials
from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.aws.dynamodb_wire import DynamoDbWire
from nodus_core.aws.patience import Patience
from nodus_core.journal.store import Store
from nodus_core.testing.faults import Faults, FaultyWire
from nodus_core.testing.memory_store import MemoryStore

from tests.contract import emulator as emulators
from tests.contract.emulator import REGION, Emulator

# As patient as the real thing, in less time: three in ten requests fail below.
PATIENCE = Patience(tries=40, seconds=20, first_s=0.001, most_s=0.01)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    python = emulators.cloud_python()
    if python is None:
        pytest.skip("no local cloud's environment (.state/venv): run `make setup`")
    running = emulators.start(python, tmp_path_factory.mktemp("ministack"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def client(emulator: Emulator) -> Callable[[str], Any]:
    """Makes botocore clients of the emulator's services."""
    session = botocore.session.Session()
    session.set_credentials(emulator.access_key, emulator.secret_key)
    config = Config(retries={"total_max_attempts": 1}, signature_version="v4")

    def made(service: str) -> Any:
        return session.create_client(
            service,
            region_name=REGION,
            endpoint_url=emulator.endpoint,
            config=config.merge(Config(signature_version="s3v4")) if service == "s3" else config,
        )

    return made


@pytest.fixture(scope="session")
def new_table(client: Callable[[str], Any]) -> Callable[[], str]:
    """Makes tables of the journal's shape."""
    dynamodb, numbers = client("dynamodb"), itertools.count(1)

    def made() -> str:
        name = f"journal-{next(numbers)}"
        dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": attribute, "AttributeType": "S"}
                for attribute in ("pk", "sk", "dueShard", "dueAt")
            ],
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "due",
                    "KeySchema": [
                        {"AttributeName": "dueShard", "KeyType": "HASH"},
                        {"AttributeName": "dueAt", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        )
        return name

    return made


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[DynamoDbWire]:
    made = DynamoDbWire(emulator.endpoint, REGION, Credentials(emulator.access_key, emulator.secret_key))
    yield made
    made.close()


@pytest.fixture
def faults() -> Faults:
    """The faults of the `faulty_wire`; a test plans them."""
    return Faults()


@pytest.fixture
def faulty_wire(emulator: Emulator, faults: Faults) -> Iterator[DynamoDbWire]:
    with FaultyWire(f"127.0.0.1:{emulator.port}", faults) as proxy:
        made = DynamoDbWire(proxy.address, REGION, Credentials(emulator.access_key, emulator.secret_key))
        yield made
        made.close()


@pytest.fixture(params=["memory", "ministack", "faulty"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(backend: str, request: pytest.FixtureRequest) -> Store:
    """An empty store of each backend."""
    if backend == "memory":
        return MemoryStore()
    table = request.getfixturevalue("new_table")()
    if backend == "ministack":
        return DynamoDbStore(request.getfixturevalue("wire"), table)
    dice: Faults = request.getfixturevalue("faults")
    dice.roll(zlib.crc32(request.node.name.encode()))
    return DynamoDbStore(request.getfixturevalue("faulty_wire"), table, PATIENCE)


@pytest.fixture(scope="session")
def s3_with(client: Callable[[str], Any]) -> Callable[[str], Any]:
    """A client of S3, after it has made a bucket of that name."""
    s3 = client("s3")

    @cache
    def made(bucket: str) -> Any:
        s3.create_bucket(Bucket=bucket)
        return s3

    return made
