"""Who uses the session's cloud."""

from collections.abc import Iterator

import pytest

from localstack.testing import TestCloud
from tests.integration.runs.person import Person


@pytest.fixture
def person(local_cloud: TestCloud) -> Iterator[Person]:
    made = Person(local_cloud)
    yield made
    made.leave()
