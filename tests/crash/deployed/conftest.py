"""Kills on the deployed local cloud: its own session's, as in `tests/integration`."""

import pytest

from localstack.testing import limit_test_time_only, local_cloud
from tests.integration.runs.conftest import person

__all__ = ["local_cloud", "person"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    limit_test_time_only(items)
