"""Fixtures of the client's tests: a server in this process, a configuration of its own, a command line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import nodus
import pytest
from nodus import _waiting
from nodus._client import close_defaults
from nodus.cli import main

from tests.unit.client.fake_server import TOKEN, FakeServer


@pytest.fixture
def config_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The place of an own configuration file; nothing of the person's environment is left."""
    for name in ("SERVER", "TOKEN", "ORG", "PROJECT"):
        monkeypatch.delenv(f"NODUS_{name}", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    path = tmp_path / "home" / "config.yaml"
    monkeypatch.setenv("NODUS_CONFIG", str(path))
    return path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, config_file: Path) -> Iterator[FakeServer]:
    """A running fake server that the environment points to."""
    fake = FakeServer()
    monkeypatch.setenv("NODUS_SERVER", fake.address)
    monkeypatch.setenv("NODUS_TOKEN", TOKEN)
    monkeypatch.setattr(_waiting, "FIRST_INTERVAL_SECONDS", 0.001)
    yield fake
    close_defaults()
    fake.stop()


@pytest.fixture
def client(server: FakeServer) -> Iterator[nodus.Client]:
    """A client of the fake server."""
    with nodus.Client() as made:
        yield made


class Output(NamedTuple):
    """What a command line printed, and its exit code."""

    code: int
    out: str
    err: str


Cli = Callable[..., Output]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run `nodus WORDS…` in this process; ``stdin`` is what it reads, ``terminal`` whether it writes to one."""

    def run(*words: str, stdin: str | bytes = "", terminal: bool = False) -> Output:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            if terminal:
                patched.setattr(out, "isatty", lambda: True, raising=False)
            code = main.run(words)
            out.flush()
            err.flush()
        return Output(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]

    return run
