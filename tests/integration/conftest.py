"""The deployed local cloud, once for the session: see `localstack.testing`."""

import pytest

from localstack.testing import bare_cloud, limit_test_time_only, local_cloud

__all__ = ["bare_cloud", "local_cloud"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    limit_test_time_only(items)
