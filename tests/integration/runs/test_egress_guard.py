"""A run as on Fargate: no network namespace counts, and the daemon's own filter keeps commands from every network."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from localstack.testing import TestCloud
from tests.integration.runs.person import Person, in_turn

pytestmark = [
    pytest.mark.timeout(180, func_only=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root gives commands another user than the daemon's"),
]

LOOPBACK = (
    'python3 -c \'import socket as s, threading as t; a = s.create_server(("127.0.0.1", 0)); '
    't.Thread(target=a.accept).start(); s.create_connection(a.getsockname()); print("connected")\' 2>&1 | tail -1'
)


def told(cloud: TestCloud, guard: str) -> None:
    """Says to the sandboxes' agent what keeps the egress policy; it is started anew."""
    replace(cloud, extra={**cloud.extra, "NODUS_SANDBOX_GUARD": guard}).run("up")


@pytest.fixture
def own_guard(local_cloud: TestCloud) -> Iterator[None]:
    told(local_cloud, "seccomp")
    yield
    told(local_cloud, "network")


def conditions(status: dict[str, object]) -> dict[str, tuple[str, str | None]]:
    found = status["conditions"]
    assert isinstance(found, list)
    return {each["type"]: (each["status"], each.get("reason")) for each in found}


PINNED = {"ImagePinned": ("False", "MachineTools")}


@pytest.mark.req("NOD-457")
@pytest.mark.usefixtures("own_guard")
def test_the_daemons_guard_lets_a_run_work_and_reach_no_network(person: Person) -> None:
    person.agent("guarded")
    run = person.start("guarded", in_turn("git init -q . && python3 --version", LOOPBACK))
    status = run.succeeded()
    assert conditions(status) == {"Isolated": ("True", None), "EgressEnforced": ("True", "Guard"), **PINNED}
    assert "Address family not supported by protocol" in run.answer()


@pytest.mark.req("NOD-457")
def test_without_it_the_network_namespace_does_and_leaves_loopback(person: Person) -> None:
    person.agent("namespaced")
    run = person.start("namespaced", in_turn("curl -sS -m 5 http://1.1.1.1 2>&1 || true", LOOPBACK))
    status = run.succeeded()
    assert conditions(status) == {"Isolated": ("True", None), "EgressEnforced": ("True", "Network"), **PINNED}
    assert "connected" in run.answer()
