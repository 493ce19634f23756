"""Fixtures of the client's tests: a server in this process and a configuration of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nodus
import pytest
from nodus import _waiting

from tests.unit.client.fake_server import TOKEN, FakeServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeServer]:
    """A running fake server that the environment points to."""
    fake = FakeServer()
    for name in ("NODUS_ORG", "NODUS_PROJECT", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NODUS_SERVER", fake.address)
    monkeypatch.setenv("NODUS_TOKEN", TOKEN)
    monkeypatch.setenv("NODUS_CONFIG", str(tmp_path / "config.yaml"))
    monkeypatch.setattr(_waiting, "FIRST_INTERVAL_SECONDS", 0.001)
    monkeypatch.setattr(_waiting, "LONGEST_INTERVAL_SECONDS", 0.002)
    yield fake
    fake.stop()


@pytest.fixture
def client(server: FakeServer) -> Iterator[nodus.Client]:
    """A client of the fake server."""
    with nodus.Client() as made:
        yield made
