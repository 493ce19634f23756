"""A run as on Fargate: no network namespace counts, and the daemon's own filter keeps commands from every network."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace

import httpx2
import nodus
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
    beyond = "curl -sS -m 1 http://1.1.1.1 2>&1 || true"
    run = person.start("guarded", in_turn("git init -q . && python3 --version", beyond, LOOPBACK))
    status = run.succeeded()
    assert conditions(status) == {"Isolated": ("True", None), "EgressEnforced": ("True", "Guard"), **PINNED}
    assert "timed out" in run.step("tool.run_command.2")["preview"]
    assert "connected" in run.answer()


@pytest.mark.req("NOD-457", "NOD-417")
@pytest.mark.usefixtures("own_guard")
def test_behind_it_a_web_service_has_a_preview(
    local_cloud: TestCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODUS_CONFIG", str(local_cloud.configuration))
    with nodus.Client() as client:
        box = nodus.Sandbox.create(f"guarded-{uuid.uuid4().hex[:8]}", client=client)
        try:
            box.start()
            serve = "nohup python3 -m http.server 8000 --bind 127.0.0.1 > log 2>&1 & echo hello > page.txt; "
            begun = box.run(
                f"{serve} until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.1; done"
            )
            assert begun.exit_code == 0, begun
            with httpx2.Client(timeout=40) as visitor:
                assert visitor.get(f"{box.preview(8000).url}page.txt").text == "hello\n"
        finally:
            box.delete()


@pytest.mark.req("NOD-457")
def test_without_it_the_network_namespace_does_and_leaves_loopback(person: Person) -> None:
    person.agent("namespaced")
    run = person.start("namespaced", in_turn("curl -sS -m 5 http://1.1.1.1 2>&1 || true", LOOPBACK))
    status = run.succeeded()
    assert conditions(status) == {"Isolated": ("True", None), "EgressEnforced": ("True", "Network"), **PINNED}
    assert "connected" in run.answer()
