"""Groups and sandboxes from Python: what is sent, and what is said while nothing acts on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import nodus
import pytest
from nodus import errors
from nodus._wire import Answer, Request

from tests.unit.client.fake_server import FakeServer
from tests.unit.client.fake_wire import Played, Player, answer, refusal

Play = Callable[[Iterable[Played]], Player]
NOT_YET = {
    "type": "Ready",
    "status": "False",
    "reason": "NotAvailable",
    "message": "Groups take no members yet.",
}


@pytest.fixture(params=["blocking", "awaiting"])
def play(request: pytest.FixtureRequest) -> Play:
    """A client of each kind."""
    return lambda answers: Player(awaits=request.param == "awaiting", answers=answers)


def group(**status: Any) -> Answer:
    spec = {"agent": "worker"}
    return answer({"kind": "AgentGroup", "metadata": {"name": "g"}, "spec": spec, "status": status})


def body(request: Request) -> dict[str, Any]:
    return json.loads(request.content or b"null")


def handle(client: Any) -> Any:
    kind: Any = nodus.AgentGroup if isinstance(client, nodus.Client) else nodus.AsyncAgentGroup
    return kind.from_name("g", client=client)


def made(client: Any, **arguments: Any) -> Any:
    kind: Any = nodus.AgentGroup if isinstance(client, nodus.Client) else nodus.AsyncAgentGroup
    return kind.create("g", client=client, **arguments)


@pytest.mark.req("NOD-518")
def test_nex_42_a_group_as_it_is_created(play: Play) -> None:
    player = play([group(), group()])
    evaluation = {"split": "test", "tasks": 2, "repetitions": 1, "seed": 42, "timeout": "10m"}
    created = player.result(
        lambda client: made(client, agent="worker", max_active=2, max_cost="0.20", evaluation=evaluation)
    )
    assert (created.name, created.project) == ("g", "default")
    assert body(player.wire.seen[0]) == {
        "apiVersion": "nodus.dev/v1",
        "kind": "AgentGroup",
        "metadata": {"name": "g"},
        "spec": {
            "agent": "worker",
            "limits": {"maxActive": 2},
            "maxCostUSD": "0.20",
            "evaluation": evaluation,
        },
    }
    player.result(lambda client: made(client, agent="worker", evaluation={"environment": "sums@2"}))
    assert body(player.wire.seen[1])["spec"]["evaluation"]["environment"] == {"name": "sums", "version": "2"}


@pytest.mark.parametrize(
    "act",
    [
        lambda client: handle(client).wait(timeout=660),
        lambda client: handle(client).results(),
        lambda client: handle(client).submit("x", key="a"),
    ],
)
def test_a_group_that_nothing_acts_on_says_so_at_once(play: Play, act: Callable[[Any], Any]) -> None:
    player = play([group(phase="Pending", conditions=[NOT_YET])])
    with pytest.raises(errors.NotAvailableError, match="agentgroup/g: Groups take no members yet") as caught:
        player.result(act)
    assert (caught.value.reason, caught.value.details) == (
        "NotAvailable",
        {"kind": "AgentGroup", "name": "g"},
    )
    assert (len(player.wire.seen), player.wire.pauses) == (1, [])


def test_the_results_of_a_group_that_nothing_acts_on_are_not_asked_for(play: Play) -> None:
    player = play([group(phase="Pending", conditions=[NOT_YET])])
    with pytest.raises(errors.NotAvailableError, match="agentgroup/g: Groups take no members yet"):
        player.first(None, lambda client: client.agentgroups.results("g"))
    assert [request.url.rpartition("/")[2] for request in player.wire.seen] == ["g"]


def test_the_results_of_a_group_come_page_by_page(play: Play) -> None:
    pages = [
        answer({"metadata": {"continue": "at-1"}, "items": [{"taskId": "a"}]}),
        answer({"metadata": {}, "items": [{"taskId": "b"}]}),
    ]
    player = play([group(), *pages])
    found = player.first(None, lambda client: client.agentgroups.results("g"))
    assert [case.task_id for case in found] == ["a", "b"]
    player = play([group(), *pages])
    assert player.result(lambda client: handle(client).results()) == found
    assert len(player.wire.seen) == 3


@pytest.mark.req("NODQ-72")
def test_a_member_is_a_run_of_the_group_s_agent(play: Play) -> None:
    player = play([group(), answer({}, 201), group(), refusal(422, "NotAvailable")])
    run = player.result(
        lambda client: handle(client).submit("x", key="c", depends_on=["a", "b"], deadline="2h")
    )
    assert run.name == "g-c"
    assert body(player.wire.seen[1]) == {
        "apiVersion": "nodus.dev/v1",
        "kind": "AgentRun",
        "metadata": {"name": "g-c"},
        "spec": {
            "agent": "worker",
            "input": "x",
            "group": "g",
            "taskKey": "c",
            "dependsOn": ["a", "b"],
            "deadline": "2h",
        },
    }
    with pytest.raises(errors.NotAvailableError):
        player.result(lambda client: handle(client).submit("x", key="d"))


def test_sealing_is_a_patch_and_deleting_waits(play: Play) -> None:
    player = play([group(phase="Pending"), group(), group(), refusal(404, "NotFound")])
    assert player.result(lambda client: handle(client).seal()).phase == "Pending"
    assert body(player.wire.seen[0]) == {"spec": {"sealed": True}}
    assert player.result(lambda client: handle(client).delete()) is None
    assert [request.method for request in player.wire.seen] == ["PATCH", "DELETE", "GET", "GET"]


@pytest.mark.parametrize("shown", [{}, {"spec": 7}, {"spec": {"agent": ["x"]}, "status": "x"}])
def test_a_group_of_the_wrong_shape_is_said(play: Play, shown: dict[str, Any]) -> None:
    with pytest.raises(errors.UnexpectedAnswerError):
        play([answer(shown)]).result(lambda client: handle(client).submit("x", key="a"))


@pytest.mark.req("NODQ-100")
def test_a_sandbox_as_it_is_created(play: Play) -> None:
    stored = answer({"kind": "Sandbox", "metadata": {"name": "dev"}, "status": {"phase": "Pending"}})
    player = play([stored, stored, stored, refusal(404, "NotFound")])

    def create(client: Any) -> Any:
        kind: Any = nodus.Sandbox if isinstance(client, nodus.Client) else nodus.AsyncSandbox
        return kind.create(
            "dev",
            client=client,
            image="nodus/agent-tools",
            cpu=0.5,
            memory="2",
            idle_timeout="10m",
            ttl="24h",
            network=nodus.Egress.allow(["github.com"]),
            state_dir="/workspace",
            max_cost="1.00",
            env={"MODE": "ci"},
            secrets={"DEPLOY_KEY": ("deploy", "token")},
        )

    sandbox = player.result(create)
    assert body(player.wire.seen[0])["spec"] == {
        "image": "nodus/agent-tools",
        "resources": {"cpu": "0.5", "memory": "2"},
        "idleTimeout": "10m",
        "ttl": "24h",
        "network": {"egress": {"policy": "AllowList", "allow": ["github.com"]}},
        "continuity": {"mode": "Snapshotted", "stateDir": "/workspace"},
        "maxCostUSD": "1.00",
        "env": [{"name": "MODE", "value": "ci"}],
        "secrets": [{"name": "deploy", "env": "DEPLOY_KEY", "key": "token"}],
    }
    assert player.result(lambda client: sandbox.status).phase == "Pending"
    assert player.result(lambda client: sandbox.delete()) is None


def test_a_sandbox_takes_no_unknown_settings() -> None:
    with pytest.raises(TypeError, match="imagge"):
        nodus.Sandbox.create("dev", client=nodus.Client(server="http://x", token="t"), imagge="x")  # type: ignore[call-arg]


def test_a_status_cannot_be_set() -> None:
    sandbox = nodus.Sandbox("dev", client=nodus.Client(server="http://x", token="t"))
    with pytest.raises(AttributeError, match="status"):
        sandbox.status = "x"  # type: ignore[assignment]
    assert not asyncio.iscoroutinefunction(nodus.Sandbox.status)


@pytest.mark.req("NOD-398", "NODQ-62")
@pytest.mark.parametrize(
    ("size", "resources"),
    [
        ("Starter", {"cpu": "1", "memory": "2"}),
        ("Standard", {"cpu": "2", "memory": "4"}),
        ("Performance", {"cpu": "4", "memory": "8"}),
    ],
)
def test_a_size_in_a_word_stands_for_processors_and_memory(
    server: FakeServer, size: str, resources: dict[str, str]
) -> None:
    with nodus.Client() as client:
        nodus.Sandbox.create(size.lower(), size=size, client=client)
        assert client.sandboxes.get(size.lower()).spec.resources.to_dict() == resources
        with pytest.raises(ValueError, match="give it alone"):
            nodus.Sandbox.create("other", size=size, cpu=2, client=client)
        with pytest.raises(ValueError, match="must be one of"):
            nodus.Sandbox.create("other", size=size.lower(), client=client)
        assert [each.metadata.name for each in client.sandboxes.list()] == [size.lower()]


@pytest.mark.req("NODQ-63")
def test_gpus_come_beside_a_size_in_words_or_in_numbers(server: FakeServer) -> None:
    with nodus.Client() as client:
        nodus.Sandbox.create("word", size="Performance", gpu=1, client=client)
        nodus.Sandbox.create("numbers", cpu=4, memory=14, gpu=2, client=client)
        found = [client.sandboxes.get(name).spec.resources.to_dict() for name in ("word", "numbers")]
    assert found == [{"cpu": "4", "memory": "8", "gpu": 1}, {"cpu": "4", "memory": "14", "gpu": 2}]
